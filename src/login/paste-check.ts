import { repeatedParameter, sameSecret } from "./callback-parameters.js";

/** What a pasted line is held against. */
export interface PasteRules {
  redirectUri: string;
  state: string;
  /** The address that the person was sent to. */
  loginUrl: string;
  /** Whether a bare code will do. */
  allowBareCode: boolean;
}

/** What a pasted line is: the parameters of a callback, or why it is none. A blank line is neither. */
export type PasteVerdict = { parameters: URLSearchParams } | { reason: string } | undefined;

const MAX_LENGTH = 16 * 1024;
const WHOLE = "copy the whole address from the address bar of the browser, after the sign-in";

/** Judges a pasted line. A reason never repeats what was pasted, since that may hold a code. */
export function judgePaste(line: string, rules: PasteRules): PasteVerdict {
  const text = unwrap(line.trim());
  if (text === "") return undefined;
  if (text.length > MAX_LENGTH) return { reason: `it is longer than ${MAX_LENGTH} characters` };
  const address = readAddress(text, rules.redirectUri);
  if (address !== undefined) return judgeAddress(address, rules);
  if (/(?:^|[?&])(?:code|state|error)=/.test(text)) return { reason: `it is only a part of the address: ${WHOLE}` };
  return judgeCode(text, rules);
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
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(full) && URL.canParse(full) ? new URL(full) : undefined;
}

function judgeAddress(url: URL, rules: PasteRules): PasteVerdict {
  const wanted = new URL(rules.redirectUri);
  if (url.host !== wanted.host || url.protocol !== wanted.protocol || url.pathname !== wanted.pathname) {
    const login = new URL(rules.loginUrl);
    return url.host === login.host && url.pathname === login.pathname
      ? { reason: `it is the address to sign in at, not the one where the browser ends up: ${WHOLE}` }
      : { reason: `it is not the redirect address, which begins with ${rules.redirectUri}?` };
  }
  if (url.username !== "" || url.password !== "") return { reason: "it has a user name or password in it" };
  const parameters = url.searchParams;
  const repeated = repeatedParameter(parameters);
  if (repeated !== undefined) return { reason: `it has ${repeated} in it more than once` };
  const state = parameters.get("state");
  if (state === null) return { reason: `it has no state: ${WHOLE}` };
  if (!sameSecret(state, rules.state)) {
    return {
      reason: "its state is not the one of this sign-in (state mismatch): open the address above, not an older one",
    };
  }
  if (!parameters.has("code") && !parameters.has("error")) {
    return { reason: `it has neither a code nor an error: ${WHOLE}` };
  }
  return { parameters };
}

function judgeCode(text: string, { state, allowBareCode }: PasteRules): PasteVerdict {
  if (!/^[\x21-\x7e]+$/.test(text)) return { reason: `it is not an address: ${WHOLE}` };
  if (!allowBareCode) {
    return {
      reason:
        "a bare code is not possible here, because nothing would show that it belongs to this sign-in and this server " +
        `(that takes PKCE, and a server that promises no iss): ${WHOLE}`,
    };
  }
  return { parameters: new URLSearchParams({ code: text, state }) };
}
