import { AgentAuthError } from "../errors.js";
import type { DevicePrompt } from "../oauth/login/login-method.js";
import { escapeText, quote } from "../redact.js";
import { checkBrowserUrl } from "./browser.js";
import { type LoginDisplay, waitingText } from "./messages.js";

/**
 * Where to type which code.
 *
 * @throws AgentAuthError `bad_address` for an unsafe address, `bad_code` for a code that cannot be shown
 */
export function deviceText(prompt: DevicePrompt): string {
  const { code, complete, waiting } = deviceTexts(prompt);
  return [code, ...complete, waiting].join("\n");
}

/**
 * Prints where to type which code, with a QR code in place of the address that contains the code, where the display can
 * draw one.
 *
 * @throws like {@link deviceText}
 */
export async function showDeviceCode(
  prompt: DevicePrompt,
  { say, display }: { say: (text: string) => void; display?: LoginDisplay | undefined },
): Promise<void> {
  const { code, complete, address, waiting } = deviceTexts(prompt);
  say(code);
  if ((await display?.qrCode(address)) === true) {
    say(
      complete.length === 0 ? "Scanned, it opens that address." : "Scanned, it opens a page with the code: compare it.",
    );
  } else if (complete.length > 0) say(complete.join("\n"));
  say(waiting);
}

function deviceTexts({ userCode, verificationUri, verificationUriComplete, expiresInSeconds }: DevicePrompt) {
  if (userCode === "" || userCode.length > 100 || escapeText(userCode) !== userCode) {
    throw new AgentAuthError("bad_code", `user_code ${quote(userCode)} cannot be displayed`, {
      class: "refused",
    });
  }
  const from = "the device authorization answer";
  const url = checkBrowserUrl(verificationUri, "verification_uri", from);
  const address =
    verificationUriComplete === undefined
      ? url
      : checkBrowserUrl(verificationUriComplete, "verification_uri_complete", from);
  const host = new URL(url).host;
  return {
    address,
    code: [
      `To log in, open this address on any device (at ${host}):`,
      "",
      `  ${url}`,
      "",
      "and enter this code:",
      "",
      `  ${userCode}`,
      "",
    ].join("\n"),
    complete:
      verificationUriComplete === undefined
        ? []
        : ["Or open this address, which contains the code, and compare:", "", `  ${address}`, ""],
    waiting: waitingText(expiresInSeconds),
  };
}
