import { parseUrl } from "../http/address.js";
import { repeatedParameter, sameSecret } from "./callback-parameters.js";

/** What a pasted line must match. */
export interface PasteRules {
  redirectUri: string;
  state: string;
  /** The address that the user was sent to. */
  loginUrl: string;
  /** Whether a bare code is accepted. */
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
  const bare = redirectUri.replace(/^http:\/\//, "");
  const full = text.startsWith(bare) ? `http://${text}` : text;
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(full) ? parseUrl(full) : undefined;
}

function checkPastedAddress(url: URL, rules: PasteRules): PasteResult {
  const expected = new URL(rules.redirectUri);
  if (url.host !== expected.host || url.protocol !== expected.protocol || url.pathname !== expected.pathname) {
    const login = new URL(rules.loginUrl);
    return url.host === login.host && url.pathname === login.pathname
      ? { reason: `it is the login address, not the one where the browser ends up: ${WHOLE}` }
      : { reason: `it is not the redirect address, which begins with ${rules.redirectUri}?` };
  }
  if (url.username !== "" || url.password !== "") return { reason: "it contains a user name or password" };
  const parameters = url.searchParams;
  const repeated = repeatedParameter(parameters);
  if (repeated !== undefined) return { reason: `it contains ${repeated} more than once` };
  const state = parameters.get("state");
  if (state === null) return { reason: `it has no state: ${WHOLE}` };
  if (!sameSecret(state, rules.state)) {
    return {
      reason: "its state is not the one of this login (state mismatch): open the address above, not an older one",
    };
  }
  if (!parameters.has("code") && !parameters.has("error")) {
    return { reason: `it has neither a code nor an error: ${WHOLE}` };
  }
  return { parameters };
}

function checkPastedCode(text: string, { state, allowBareCode }: PasteRules): PasteResult {
  if (!/^[\x21-\x7e]+$/.test(text)) return { reason: `it is not an address: ${WHOLE}` };
  if (!CODE.test(text)) return { reason: `it is neither the redirect address nor a code: ${WHOLE}` };
  if (!allowBareCode) {
    return {
      reason:
        "a bare code is not possible here, because nothing would show that it belongs to this login and this server " +
        `(that requires PKCE, and a server that does not return iss): ${WHOLE}`,
    };
  }
  return { parameters: new URLSearchParams({ code: text, state }) };
}
