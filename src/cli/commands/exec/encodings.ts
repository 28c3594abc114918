/** The encodings in which a program may print a token. */

/** A shorter form would match unrelated text. */
const SHORTEST = 6;
/** Tokens are refreshed before they expire: a token this many generations old has expired long ago. */
const MAX_TOKENS = 8;

/** The forms of the tokens of a run; {@link TokenEncodings.all} is always the current list. */
export interface TokenEncodings {
  /** Adds a token, and drops the oldest beyond eight. */
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
      tokens = [...others, { token, forms: encodingsOf(token).map((form) => Buffer.from(form)) }].slice(-MAX_TOKENS);
      all = tokens.flatMap(({ forms }) => forms);
    },
    all: () => all,
  };
}

/**
 * The token as it is, URL-encoded, JSON-escaped, and in base64 at any position of the encoded text; empty for a token of
 * fewer than six characters.
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
  // Some programs do not encode the slash.
  const forms = [component, component.replaceAll("%2F", "/"), form];
  return [...forms, ...forms.map((text) => text.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()))];
}

/**
 * Base64 encodes three bytes at a time, so a text inside another has three forms. Characters that share bits with the
 * neighbouring text are left out; at the end of the text, the last characters are the token's own.
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
