/** How a token may look where a program prints it. */

/** Under this many characters a form would be found in text that has nothing to do with it. */
const SHORTEST = 6;
/** A token is renewed before its end; one that is so many generations old has long ended. */
const KEPT_TOKENS = 8;

/** The forms of the tokens of a run; {@link TokenEncodings.all} is always the list of now. */
export interface TokenEncodings {
  /** Adds a token, and forgets the oldest beyond eight. */
  add(token: string): void;
  all(): readonly Buffer[];
}

/** No token yet. */
export function tokenEncodings(): TokenEncodings {
  let tokens: { token: string; forms: Buffer[] }[] = [];
  let all: readonly Buffer[] = [];
  return {
    add(token) {
      const others = tokens.filter((one) => one.token !== token);
      tokens = [...others, { token, forms: encodingsOf(token).map((form) => Buffer.from(form)) }].slice(-KEPT_TOKENS);
      all = tokens.flatMap(({ forms }) => forms);
    },
    all: () => all,
  };
}

/**
 * The token as it is, URL-encoded, JSON-escaped, and in base64 wherever in the encoded text it stands; none for a token
 * under six characters.
 */
export function encodingsOf(token: string): string[] {
  if (token.length < SHORTEST) return [];
  const json = JSON.stringify(token).slice(1, -1);
  const forms = [token, json, json.replaceAll("/", "\\/"), ...urlForms(token), ...base64Forms(token)];
  return [...new Set(forms)].filter((form) => form.length >= SHORTEST);
}

function urlForms(token: string): string[] {
  const component = encodeURIComponent(token);
  const form = new URLSearchParams([["", token]]).toString().slice(1);
  // Some programs leave the slash as it is.
  const forms = [component, component.replaceAll("%2F", "/"), form];
  return [...forms, ...forms.map((text) => text.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()))];
}

/**
 * Base64 takes three bytes at a time, so that a text in the middle of another has three forms. Characters that hold bits
 * of its neighbours too are left out; where it ends the whole, the last ones are its own.
 */
function base64Forms(token: string): string[] {
  const bytes = Buffer.from(token);
  const forms = [0, 1, 2].flatMap((before) => {
    const padded = Buffer.concat([Buffer.alloc(before), bytes])
      .toString("base64")
      .slice(Math.ceil((before * 8) / 6));
    const whole = Math.floor(((before + bytes.length) * 8) / 6) - Math.ceil((before * 8) / 6);
    return [padded, padded.replace(/=+$/, ""), padded.slice(0, whole)];
  });
  return [...forms, ...forms.map((text) => text.replaceAll("+", "-").replaceAll("/", "_"))];
}
