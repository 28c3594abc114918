import { createInterface, type Interface } from "node:readline";
import type { Readable } from "node:stream";
import { AgentAuthError, abortedError } from "../errors.js";
import { parseUrl } from "../http/address.js";
import { quote } from "../redact.js";
import { HELP_KEY } from "./brief-messages.js";
import { repeatedParameter, sameSecret } from "./callback-handler.js";

/** The input that the user pastes into: standard input, or any other stream. */
export type PasteInput = Readable & {
  setRawMode?: (isRaw: boolean) => unknown;
  ref?: () => unknown;
  unref?: () => unknown;
};

/** How a pasted callback is read. */
export interface PasteOptions extends PasteRules {
  input: PasteInput;
  /** Prints why a line was not accepted. */
  say: (text: string) => void;
  /** Called for Ctrl-C where the terminal delivers it as a key. */
  onInterrupt: () => void;
  /** Called for the key `?` before any other, or for a line of it. Without it, `?` is text like any other. */
  onHelp?: (() => void) | undefined;
  signal: AbortSignal;
}

/**
 * Reads lines until one is the callback. For every other line it prints the reason, and continues.
 *
 * @throws AgentAuthError `login_required` when the input ends; the reason of the signal when it fires
 */
export function readPaste(options: PasteOptions): Promise<URLSearchParams> {
  const { input, say, signal, onHelp } = options;
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(abortedError(signal));
    if (input.destroyed || input.readableEnded) return reject(endedError());
    input.ref?.();
    const reader = openReader(input);
    const onKeys = () => {
      // Pasted text may begin with the query of the address; all of it is in the line by now.
      if (reader.line !== HELP_KEY) return;
      reader.write(null, { ctrl: true, name: "u" });
      onHelp?.();
    };
    // After the reader's own listener, so that the keys are in the line already.
    if (onHelp !== undefined && isTerminal(input)) input.on("data", onKeys);
    let isSettled = false;
    const finish = (settle: () => void) => {
      if (isSettled) return;
      isSettled = true;
      signal.removeEventListener("abort", onAbort);
      settle();
      input.off("data", onKeys);
      reader.close();
      // A stream reads ahead, so an input that stays open would keep the program from exiting.
      input.unref?.();
    };
    const onAbort = () => finish(() => reject(abortedError(signal)));
    const onEnd = () => finish(() => reject(endedError()));
    signal.addEventListener("abort", onAbort, { once: true });
    // The reader emits the errors of its input.
    reader.on("error", onEnd);
    reader.on("SIGINT", options.onInterrupt);
    reader.on("close", onEnd);
    reader.on("line", (line) => {
      if (onHelp !== undefined && !isSettled && line.trim() === HELP_KEY) return onHelp();
      // The rest of a chunk is still emitted after the line that settled it.
      const result = isSettled ? undefined : checkPaste(line, options);
      if (result === undefined) return;
      if ("parameters" in result) finish(() => resolve(result.parameters));
      else say(`That was not accepted: ${result.reason}. Still waiting.`);
    });
  });
}

function openReader(input: PasteInput): Interface {
  return createInterface({
    input,
    // Key by key: a terminal in line mode truncates lines, on some systems after 1024 characters. Without
    // an output nothing is echoed, as is right for a code.
    terminal: isTerminal(input),
    crlfDelay: Number.POSITIVE_INFINITY,
  });
}

/** Whether pasted text is not echoed. */
export function isTerminal(input: PasteInput): boolean {
  return input.setRawMode !== undefined;
}

function endedError(): AgentAuthError {
  return inputError("the input ended before the redirect address was pasted");
}

/** The error where the user cannot paste the callback. */
export function inputError(message: string): AgentAuthError {
  const hint = "run the program in a terminal";
  const remedy = { action: "configure", option: "flow" } as const;
  return new AgentAuthError("login_required", message, { class: "auth", hint, remedy });
}

/** What a pasted line must match. */
export interface PasteRules {
  redirectUri: string;
  state: string;
  /** The address that the user was sent to. */
  loginUrl: string;
  allowBareCode: boolean;
}

/** The parameters of a callback, or why a line is none; undefined for a blank line. */
export type PasteResult = { parameters: URLSearchParams } | { reason: string } | undefined;

const MAX_LENGTH = 16 * 1024;
/** A code cannot be guessed (RFC 6749 section 10.10): a word that a user types is none, and must not end the login. */
const CODE = /^(?=.*[\dA-Z]).{16,}$/;
const WHOLE = "copy the whole address from the address bar of the browser, after the login";

/** Checks a pasted line. A reason never quotes the line, which may hold a code. */
export function checkPaste(line: string, rules: PasteRules): PasteResult {
  const text = unwrap(line.trim());
  if (text === "") return undefined;
  if (text.length > MAX_LENGTH) return { reason: `it is longer than ${MAX_LENGTH} characters` };
  const address = readAddress(text, rules.redirectUri);
  if (address !== undefined) return checkPastedAddress(address, rules);
  if (/(?:^|[?&])(?:code|state|error)=/.test(text)) return { reason: `it is only a part of the address: ${WHOLE}` };
  return checkPastedCode(text, rules);
}

/** Terminals and chat programs put quotes or angle brackets around an address. */
function unwrap(text: string): string {
  const [, , inner] = /^(["'])(.*)\1$/.exec(text) ?? /^()<(.*)>$/.exec(text) ?? [];
  return (inner ?? text).trim();
}

/** Some browsers copy a local address without its scheme. */
function readAddress(text: string, redirectUri: string): URL | undefined {
  const [scheme = "", bare = ""] = redirectUri.split(/(?<=:\/\/)/);
  const full = text.startsWith(bare) ? scheme + text : text;
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(full) ? parseUrl(full) : undefined;
}

function checkPastedAddress(url: URL, rules: PasteRules): PasteResult {
  const expected = new URL(rules.redirectUri);
  if (url.host !== expected.host || url.protocol !== expected.protocol || url.pathname !== expected.pathname) {
    const login = new URL(rules.loginUrl);
    if (url.host === login.host && url.pathname === login.pathname)
      return { reason: `it is the login address, not the one where the browser ends up: ${WHOLE}` };
    const isOfLogin = sameSecret(url.searchParams.get("state") ?? "", rules.state);
    // The issuer sent the browser there, so no part before the query is a secret.
    const where = isOfLogin
      ? `: the browser ended up at ${quote(url.origin + url.pathname)}, not at ${rules.redirectUri}; does the issuer have only the first for this client?`
      : `, which begins with ${rules.redirectUri}?`;
    return { reason: `it is not the redirect address${where}` };
  }
  if (url.username !== "" || url.password !== "") return { reason: "it contains a user name or password" };
  const parameters = url.searchParams;
  const repeated = repeatedParameter(parameters);
  if (repeated !== undefined) return { reason: `it contains ${repeated} more than once` };
  const state = parameters.get("state");
  if (state === null) return { reason: `it has no state: ${WHOLE}` };
  if (!sameSecret(state, rules.state))
    return {
      reason: "its state is not the one of this login (state mismatch): open the address above, not an older one",
    };
  if (!parameters.has("code") && !parameters.has("error"))
    return { reason: `it has neither a code nor an error: ${WHOLE}` };
  return { parameters };
}

function checkPastedCode(text: string, { state, allowBareCode }: PasteRules): PasteResult {
  if (!/^[\x21-\x7e]+$/.test(text)) return { reason: `it is not an address: ${WHOLE}` };
  if (!CODE.test(text)) return { reason: `it is neither the redirect address nor a code: ${WHOLE}` };
  if (!allowBareCode)
    return {
      reason:
        "a bare code is not possible here, because nothing would show that it belongs to this login and this server " +
        `(that requires PKCE, and a server that does not return iss): ${WHOLE}`,
    };
  return { parameters: new URLSearchParams({ code: text, state }) };
}
