import { TokenRefusal } from "./events.js";

/** Longer than any token that a server issues, and short enough to be looked at. */
const MAX_TOKEN = 16 * 1024;
const CREDENTIALS = /^Bearer +([\w\-.~+/]+=*)[ \t]*$/i;

/**
 * The token of a request, from its `Authorization` header alone: never from the query or the body (RFC 6750 section 5.3).
 *
 * @param values every `Authorization` header of the request
 * @throws TokenRefusal `missing` where there are no bearer credentials, `malformed` or `too_large` where there is
 * something that is not one token
 */
export function readBearer(values: readonly string[]): string {
  const [value, ...more] = values;
  if (value === undefined || value.trim() === "") throw new TokenRefusal("missing", "no Authorization header");
  if (more.length > 0) throw new TokenRefusal("malformed", `${values.length} Authorization headers`);
  if (value.length > MAX_TOKEN + 64) throw tooLarge(value.length);
  if (!/^Bearer(?:\s|$)/i.test(value)) throw new TokenRefusal("missing", "another scheme than Bearer");
  if (/^Bearer\s*$/i.test(value)) throw new TokenRefusal("missing", "Bearer without a token");
  const token = CREDENTIALS.exec(value)?.[1];
  if (token === undefined) throw new TokenRefusal("malformed", "no token68 after Bearer (RFC 6750 section 2.1)");
  return token;
}

/** Refuses what is too long to be looked at. @throws TokenRefusal `too_large` */
export function checkLength(token: string): void {
  if (token.length > MAX_TOKEN) throw tooLarge(token.length);
}

function tooLarge(length: number): TokenRefusal {
  return new TokenRefusal("too_large", `${length} characters, and at most ${MAX_TOKEN} are looked at`);
}
