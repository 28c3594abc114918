import { AgentAuthError } from "../errors.js";
import type { DevicePrompt } from "../oauth/login.js";
import { escapeText, quote, shellWord } from "../redact.js";
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
  lines.push(`Waiting for the sign-in (the code is good for ${duration(prompt.expiresIn)}; Ctrl-C ends it).`);
  return lines.join("\n");
}

/** Nobody came back. */
export function timeoutError(resource: string, seconds: number): AgentAuthError {
  return new AgentAuthError("timeout", `nobody finished the sign-in within ${duration(seconds)}`, {
    class: "auth",
    hint: `run agentauth login ${shellWord(resource)} again; --login-timeout <seconds> gives more time`,
  });
}

function duration(seconds: number): string {
  const [count, unit] = seconds >= 120 ? [Math.floor(seconds / 60), "minute"] : [Math.round(seconds), "second"];
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}
