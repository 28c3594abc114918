import type { ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { AgentAuthError } from "../errors.js";
import { isLoopbackHost, parseUrl } from "../http/address.js";
import { refusalError } from "../http/refuse.js";
import type { DevicePrompt } from "../oauth/login/login-method.js";
import { loadSpawn, system, withoutOurs } from "../platform.js";
import { escapeText, quote } from "../redact.js";
import { commandWords } from "./command-words.js";
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
  if (userCode === "" || userCode.length > 100 || escapeText(userCode) !== userCode)
    throw new AgentAuthError("bad_code", `user_code ${quote(userCode)} cannot be displayed`, { class: "refused" });
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

/** A program that cannot open the address exits within this time. One that runs longer is taken for the browser itself. */
const WATCH_MS = 3_000;

export interface BrowserOptions {
  /** A command that gets the address as its last argument, or `none`. Default: `$BROWSER`, then the system's browser. */
  command?: string | undefined;
  /** The environment of the command, and the source of `BROWSER`. */
  env: Readonly<Record<string, string | undefined>>;
  /** Stops watching the browser; does not close it. */
  signal?: AbortSignal | undefined;
}

/** `opened` as far as is known; `failed` when the user must open the address; `skipped` when no browser is wanted. */
export type BrowserResult = "opened" | "failed" | "skipped";

/** Opens the user's browser at an address. */
export type OpenBrowser = (url: string, options: BrowserOptions) => Promise<BrowserResult>;

/**
 * Opens the user's browser at an address; the caller has printed the address already, because this may fail. No shell is
 * involved, and a browser that cannot be started is no error.
 *
 * @throws AgentAuthError `bad_address` for an address that no browser should be sent to
 */
export const openBrowser: OpenBrowser = async (url, { command, env, signal }) => {
  const target = checkBrowserUrl(url, "the login address", "the authorization server");
  const chosen = command ?? chosenByEnvironment(env);
  if (chosen === "none") return "skipped";
  try {
    const child =
      chosen === undefined ? await startDefault(target) : startCommand(chosen, target, env, await loadSpawn());
    return await watch(child, signal);
  } catch {
    return "failed";
  }
};

/** The value of `$BROWSER`; a blank one is unset. */
export function chosenByEnvironment(env: BrowserOptions["env"]): string | undefined {
  const value = env["BROWSER"]?.trim();
  return value === "" ? undefined : value;
}

async function startDefault(target: string): Promise<ChildProcess> {
  const { open } = await import("#packages/open");
  return open(target);
}

function startCommand(
  command: string,
  target: string,
  env: BrowserOptions["env"],
  spawn: Awaited<ReturnType<typeof loadSpawn>>,
): ChildProcess {
  const [program = "", ...words] = commandWords(command, existsSync);
  return spawn(program, [...words, target], {
    // Explicit, because the address comes from a server.
    shell: false,
    stdio: "ignore",
    // A separate process group, so that Ctrl-C does not end the browser. On Windows it would open a console instead.
    detached: system.name !== "win32",
    windowsHide: true,
    env: withoutOurs(env),
  });
}

function watch(child: ChildProcess, signal: AbortSignal | undefined): Promise<BrowserResult> {
  child.unref();
  return new Promise((resolve) => {
    const settle = (result: BrowserResult) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      resolve(result);
    };
    const stop = () => settle("opened");
    const timer = setTimeout(stop, WATCH_MS);
    signal?.addEventListener("abort", stop, { once: true });
    child.once("error", () => settle("failed"));
    child.once("exit", (code) => settle(code === 0 ? "opened" : "failed"));
    // It may have exited before the listener was added.
    if (child.exitCode !== null) settle(child.exitCode === 0 ? "opened" : "failed");
    else if (signal?.aborted) stop();
  });
}

/** The longest address that every system's opener takes, in bytes. */
const MAX_BYTES = 8 * 1024;
const PLAIN_HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/;

/**
 * Checks an address that the user's browser is sent to: https, or http on this machine; no user, password, control,
 * bidirectional or invisible characters; at most 8 KB.
 *
 * @param field the name of the address, for the error
 * @param from where it came from
 * @returns the normalised address: the host in ASCII, and no quote, parenthesis or other character that means
 * something to a shell or to an opener, apart from `&`, `;`, `$`, `!` and `*`, which are part of addresses
 * @throws AgentAuthError `bad_address`
 */
export function checkBrowserUrl(value: string, field: string, from: string): string {
  const error = (rule: string) => refusalError("bad_address", { field, value, from, rule });
  if (value.length > MAX_BYTES) throw error(`must not be longer than ${MAX_BYTES} bytes`);
  if (escapeText(value) !== value) throw error("must not contain control, bidirectional or invisible characters");
  const url = parseUrl(value);
  if (url === undefined) throw error("must be an absolute URL");
  // This error does not quote the password.
  if (url.username !== "" || url.password !== "")
    throw new AgentAuthError("bad_address", `${field} must not contain a user name or password`, { class: "refused" });
  if (url.protocol !== "https:" && url.protocol !== "http:") throw error("must be an https address");
  if (url.protocol === "http:" && !isLoopbackHost(url.hostname)) throw error("must be an https address");
  if (!PLAIN_HOST.test(url.hostname)) throw error("must have a plain host name");
  const written = percentEncode(url.href);
  if (written.length > MAX_BYTES) throw error(`must not be longer than ${MAX_BYTES} bytes`);
  return written;
}

/** Encodes percent signs that begin no escape, so that `%NAME%` is no variable, and what the URL standard leaves as it is. */
function percentEncode(href: string): string {
  return href
    .replace(/%(?![0-9a-f]{2})/gi, "%25")
    .replace(/['()`^|\\{}"<>]/g, (found) => `%${found.charCodeAt(0).toString(16).toUpperCase()}`);
}
