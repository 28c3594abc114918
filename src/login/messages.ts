import { AgentAuthError } from "../errors.js";
import type { DevicePrompt, EndpointsPrompt } from "../oauth/login/login-method.js";
import { duration } from "../oauth/login/login-timeout.js";
import { escapeText, quote } from "../redact.js";
import { checkBrowserUrl } from "./browser-url.js";

/** Where to sign in. The host stands apart, in ASCII, for it is what a person should look at. */
export function signInText(resource: string, url: string): string {
  return [
    `To sign in to ${escapeText(resource)}, open this address (at ${new URL(url).host}):`,
    "",
    `  ${escapeText(url)}`,
    "",
  ].join("\n");
}

/** Who else has a part in a sign-in. */
export interface CodeTaker {
  /** Where the code of the sign-in is sent. */
  tokenEndpoint?: string | undefined;
  /** Whether the page where the person signs in names its issuer in the callback (RFC 9207). */
  promisesIss?: boolean | undefined;
}

/**
 * Who gets the code of a sign-in, where that is somebody else than the person is sent to; undefined where it is not. A
 * server may name the page of an honest issuer and have the code for itself (RFC 9207 section 1).
 */
export function codeTakerText(url: string, { tokenEndpoint, promisesIss }: CodeTaker): string | undefined {
  if (tokenEndpoint === undefined || new URL(tokenEndpoint).origin === new URL(url).origin) return undefined;
  const { host } = new URL(tokenEndpoint);
  const told = `The sign-in at ${new URL(url).host} is handed to ${host}, which gives the token.`;
  if (promisesIss === true) return told;
  return [
    `warning: ${told}`,
    `Nothing proves that the two belong together. Sign in only if you trust ${host} with it;`,
    "--same-origin-endpoints refuses such servers.",
  ].join("\n");
}

/** Names both origins of a login that is handed over, and asks whether they belong together. */
export function endpointsText({ resource, issuer, authorizationEndpoint, tokenEndpoint }: EndpointsPrompt): string {
  const [from, to] = [new URL(authorizationEndpoint).origin, new URL(tokenEndpoint).origin];
  return [
    `The login for ${escapeText(resource)} begins at ${from} and is handed to ${to}, which issues the token.`,
    `Nothing but the issuer ${escapeText(issuer)} says that the two belong together. If you do not know ${to}, answer no:`,
    `it could use your login at ${from} for itself. Your answer is remembered for this issuer if it is yes.`,
    "Continue?",
  ].join("\n");
}

/** How to finish by hand. */
export function pasteText(redirectUri: string, how: { isOnly: boolean; isHidden: boolean }): string {
  return [
    how.isOnly
      ? `After the sign-in the browser ends up at ${redirectUri}, where nothing answers: that is expected.`
      : `If the browser ends up at ${redirectUri} and cannot reach it:`,
    `${how.isOnly ? "Copy" : "copy"} the whole address from its address bar, paste it here${how.isHidden ? " (it stays invisible)" : ""} and press Enter.`,
    "Never paste that address anywhere else: whoever has it may sign in as you.",
  ].join("\n");
}

export const BROWSER_OPENED = "Your browser should open by itself.";
export const BROWSER_FAILED = "No browser could be started: open the address yourself.";

/** How long there is. */
export function waitingText(seconds: number): string {
  return `Waiting for the sign-in (${duration(seconds)}; Ctrl-C ends it).`;
}

/** Something sends wrong callbacks. */
export function probeText(redirectUri: string): string {
  return (
    `warning: something on this computer, or a web page, is probing port ${new URL(redirectUri).port}: ` +
    "50 wrong callbacks were turned away. The sign-in goes on."
  );
}

/**
 * Where to type which code.
 *
 * @throws AgentAuthError `bad_address` for an address that nobody should visit, `bad_code` for a code that cannot be shown
 */
export function deviceText(prompt: DevicePrompt): string {
  const { userCode, verificationUriComplete: complete } = prompt;
  if (userCode === "" || userCode.length > 100 || escapeText(userCode) !== userCode) {
    throw new AgentAuthError("bad_code", `user_code ${quote(userCode)} cannot be shown to a person`, {
      class: "refused",
    });
  }
  const url = checkBrowserUrl(prompt.verificationUri, "verification_uri", "the device authorization answer");
  const lines = [`To sign in, open this address on any device (at ${new URL(url).host}):`, "", `  ${url}`, ""];
  lines.push("and enter this code:", "", `  ${userCode}`, "");
  if (complete !== undefined) {
    const field = "verification_uri_complete";
    lines.push("Or open this one, which has the code in it, and compare:", "");
    lines.push(`  ${checkBrowserUrl(complete, field, "the device authorization answer")}`, "");
  }
  lines.push(waitingText(prompt.expiresIn));
  return lines.join("\n");
}
