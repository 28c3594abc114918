import { TokenRefusal } from "./refusal.js";

/** How a token can be presented: as a bearer token (RFC 6750), or with a proof of its key (RFC 9449). */
export type Scheme = "Bearer" | "DPoP";

/** A token, and how it is presented. */
export interface Credentials {
  scheme: Scheme;
  token: string;
}

/** Longer than any token that a server issues, and short enough to parse. */
const MAX_TOKEN = 16 * 1024;
const SCHEMES: readonly (readonly [RegExp, Scheme])[] = [
  [/^bearer(?:\s|$)/i, "Bearer"],
  [/^dpop(?:\s|$)/i, "DPoP"],
];
const CREDENTIALS = /^\w+ +([\w\-.~+/]+=*)[ \t]*$/;

/**
 * The token of a request, from its `Authorization` header alone: never from the query or the body (RFC 6750 section 5.3).
 *
 * @param values every `Authorization` header of the request
 * @param acceptedSchemes the accepted schemes
 * @throws TokenRefusal `missing` where there are no such credentials, `malformed` or `too_large` where there is a value
 * that is not one token
 */
export function readCredentials(values: readonly string[], acceptedSchemes: readonly Scheme[]): Credentials {
  const [value, ...more] = values;
  if (value === undefined || value.trim() === "") throw new TokenRefusal("missing", "no Authorization header");
  if (more.length > 0) throw new TokenRefusal("malformed", `${values.length} Authorization headers`);
  if (value.length > MAX_TOKEN + 64) throw tooLarge(value.length);
  const scheme = schemeOf(value);
  if (!scheme || !acceptedSchemes.includes(scheme)) {
    throw new TokenRefusal("missing", `another scheme than ${acceptedSchemes.join(" and ")}`);
  }
  if (/^\w+\s*$/.test(value)) throw new TokenRefusal("missing", `${scheme} without a token`);
  const token = CREDENTIALS.exec(value)?.[1];
  if (token === undefined) throw new TokenRefusal("malformed", `no token68 after ${scheme} (RFC 6750 section 2.1)`);
  return { scheme, token };
}

function schemeOf(value: string): Scheme | undefined {
  return SCHEMES.find(([pattern]) => pattern.test(value))?.[1];
}

/** Refuses a token that is too long to parse. @throws TokenRefusal `too_large` */
export function checkLength(token: string): void {
  if (token.length > MAX_TOKEN) throw tooLarge(token.length);
}

function tooLarge(length: number): TokenRefusal {
  return new TokenRefusal("too_large", `${length} characters, and at most ${MAX_TOKEN} are looked at`);
}
