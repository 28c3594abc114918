/** One challenge of a `WWW-Authenticate` field (RFC 9110 section 11.6.1). */
export interface Challenge {
  /** The scheme in lower case, such as `bearer`. */
  readonly scheme: string;
  /** Parameters by lower-case name, each with its values in order; a well-formed challenge has one value each. */
  readonly params: ReadonlyMap<string, readonly string[]>;
}

const TOKEN = /[!#$%&'*+.^_`|~0-9A-Za-z-]+/y;
const TOKEN68 = /[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$))/y;
const SPACE = /[ \t]*/y;
const EQUALS = /[ \t]*=[ \t]*/y;
const QUOTED = /"((?:[^"\\]|\\.)*)"/sy;
// Wider than an RFC 9110 token: real servers send addresses without quotes, or in single quotes.
const BARE_VALUE = /'([^']*)'|([^\s,"]+)/y;
const MAX_LENGTH = 64 * 1024;

/**
 * Reads every challenge of a `WWW-Authenticate` field; repeated fields arrive joined by commas and read the same.
 *
 * Commas inside quotes, several schemes, blanks around `=` and parameters in any order are read as in RFC 9110. Text
 * that cannot be parsed is skipped up to the next comma.
 */
export function parseChallenges(field: string): Challenge[] {
  if (field.length > MAX_LENGTH) return [];
  const challenges: Challenge[] = [];
  let params: Map<string, string[]> | undefined;
  let at = 0;
  const match = (shape: RegExp): RegExpExecArray | null => {
    shape.lastIndex = at;
    const found = shape.exec(field);
    if (found) at = shape.lastIndex;
    return found;
  };
  while (at < field.length) {
    match(SPACE);
    if (field[at] === ",") {
      at++;
      continue;
    }
    const name = match(TOKEN)?.[0];
    if (name === undefined) {
      at = skipToComma(field, at);
      continue;
    }
    if (params && match(EQUALS)) {
      const quoted = match(QUOTED)?.[1]?.replace(/\\(.)/gs, "$1");
      const [, inSingleQuotes, bare] = (quoted === undefined && match(BARE_VALUE)) || [];
      const value = quoted ?? inSingleQuotes ?? bare;
      if (value === undefined) {
        at = skipToComma(field, at);
        continue;
      }
      const values = params.get(name.toLowerCase());
      if (values) values.push(value);
      else params.set(name.toLowerCase(), [value]);
      continue;
    }
    params = new Map();
    challenges.push({ scheme: name.toLowerCase(), params });
    const before = at;
    match(SPACE);
    // A scheme may have one opaque value (token68) instead of parameters; the schemes used here do not.
    if (at > before) match(TOKEN68);
  }
  return challenges;
}

function skipToComma(field: string, at: number): number {
  const comma = field.indexOf(",", at + 1);
  return comma < 0 ? field.length : comma;
}

/** A parsed Bearer challenge (RFC 6750 section 3, RFC 9728 section 5.1). */
export interface BearerChallenge {
  /** Addresses of the resource metadata, in order; more than one is the server's mistake. */
  readonly resourceMetadata: readonly string[];
  /** The scopes that the request needs. */
  readonly scope: string | undefined;
  /** `invalid_token`, `insufficient_scope`, … */
  readonly error: string | undefined;
  /** The schemes that the server accepts, of `bearer` and `dpop` (RFC 9449 section 7.1). */
  readonly schemes: readonly string[];
}

/**
 * The Bearer and DPoP challenges of a response, merged, and the `resource_metadata` of any other scheme, which gateways
 * such as Cloudflare Access have (RFC 9728 section 5.1); undefined if there are none.
 */
export function bearerChallenge(headers: Headers): BearerChallenge | undefined {
  const challenges = responseChallenges(headers);
  const own = challenges.filter(({ scheme }) => scheme === "bearer" || scheme === "dpop");
  const parameterValues = (name: string, of: readonly Challenge[]) => [
    ...new Set(of.flatMap(({ params }) => params.get(name) ?? [])),
  ];
  const resourceMetadata = [...new Set([own, challenges].flatMap((of) => parameterValues("resource_metadata", of)))];
  if (own.length === 0 && resourceMetadata.length === 0) return undefined;
  return {
    resourceMetadata,
    scope: parameterValues("scope", own)[0],
    error: parameterValues("error", own)[0],
    schemes: [...new Set(own.map(({ scheme }) => scheme))],
  };
}

export function responseChallenges(headers: Headers): Challenge[] {
  // The API Gateway of AWS renames the field of a function behind it.
  return parseChallenges(headers.get("www-authenticate") ?? headers.get("x-amzn-remapped-www-authenticate") ?? "");
}
