import { formatSeconds } from "../oauth/login/login-method.js";
import { escapeText } from "../redact.js";
import { type OptionText, pasteText, sdkOption } from "./messages.js";
import type { LoginEnvironment } from "./platform.js";

/** The key that shows the other ways. */
export const HELP_KEY = "?";

/** Where the user logs in. */
export function briefLoginText(resource: string, url: string): string {
  return `Log in to ${escapeText(resource)} at ${new URL(url).host}`;
}

/** Comes before the short link. */
export function briefLinkText(opensBrowser: boolean): string {
  return opensBrowser
    ? "Your browser should open now. If it does not, open this link:"
    : "Open this link in a browser on this computer:";
}

/** How long the login waits. */
export function briefWaitingText(seconds: number): string {
  return `Waiting for the login (${formatSeconds(seconds)}; ${HELP_KEY} shows other ways, Ctrl-C cancels it).`;
}

/** What works where the short link does not: the whole address, a forwarded port, pasting, and other flows. */
export function otherWaysText(
  url: string,
  redirectUri: string,
  how: {
    environment: LoginEnvironment;
    hasDeviceFlow?: boolean | undefined;
    listensAt?: string | undefined;
    optionText?: OptionText | undefined;
  },
): string {
  const { environment, hasDeviceFlow, listensAt = redirectUri, optionText = sdkOption } = how;
  const { port } = new URL(redirectUri);
  const isForwarded = listensAt !== redirectUri;
  return [
    `Without the link, open this address (at ${new URL(url).host}):`,
    "",
    `  ${escapeText(url)}`,
    "",
    ...(environment.ssh || isForwarded
      ? []
      : [
          "If your browser is on another computer, run this there first:",
          `  ssh -L ${port}:127.0.0.1:${port} <user@host>`,
        ]),
    ...(isForwarded ? [] : environment.hints(redirectUri, optionText, hasDeviceFlow)),
    pasteText(redirectUri, { isOnly: false, isHidden: true }),
    ...(hasDeviceFlow
      ? [`To log in with a code on any device, cancel this login and add ${optionText("flow", "device")}.`]
      : []),
  ].join("\n");
}

/** Warns that the short link no longer works, and shows the address that it led to. */
export function linkWithdrawnText(url: string, listensAt: string): string {
  return [
    `warning: something on this computer, or a web page, is probing port ${new URL(listensAt).port}:`,
    "50 requests for other paths were rejected, so the link no longer works.",
    "The login continues at this address:",
    "",
    `  ${escapeText(url)}`,
    "",
  ].join("\n");
}
