import { isScopeToken } from "../http/scope-token.js";
import { isJsonObject } from "../http/strict-json.js";
import { quote } from "../redact.js";
import { TokenRefusal } from "./events.js";

/** The claims of a token, from itself or from introspection. */
export interface TokenClaims {
  /** The issuer. */
  iss?: string;
  /** Whom the token is about. */
  sub?: string;
  /** The audience. */
  aud?: string | string[];
  /** Unix seconds. */
  exp?: number;
  /** Unix seconds. */
  nbf?: number;
  /** Unix seconds. */
  iat?: number;
  /** The token's own identifier. */
  jti?: string;
  /** The client that it was issued to. */
  client_id?: string;
  /** Scopes, separated by blanks. */
  scope?: string;
  [claim: string]: unknown;
}

/** The rules that claims must meet. */
export interface ClaimRules {
  issuer: string;
  audiences: readonly string[];
  /** Unix seconds. */
  now: number;
  /** Seconds that clocks may differ. */
  skew: number;
}

/** The facts of valid claims. */
export interface TokenFacts {
  subject: string | undefined;
  clientId: string | undefined;
  scopes: readonly string[];
  audience: readonly string[];
  /** Unix seconds. */
  expiresAt: number;
  /** The thumbprint of the key that the token is bound to (RFC 9449 section 6); undefined for a bearer token. */
  boundTo: string | undefined;
}

// The end of the year 9999. What lies beyond is milliseconds, or nonsense.
const MAX_TIME = 253_402_300_799;
/** The SHA-256 of a key. */
const THUMBPRINT = /^[\w-]{43}$/;

/** Checks claims by the rules of the service and of RFC 9068 section 4. @throws TokenRefusal */
export function checkClaims(claims: Readonly<Record<string, unknown>>, rules: ClaimRules): TokenFacts {
  const { iss, sub, client_id, azp } = claims;
  if (iss !== rules.issuer) throw new TokenRefusal("issuer", `iss ${quote(iss)} must be ${quote(rules.issuer)}`);
  const audience = readAudience(claims["aud"], rules);
  const expiresAt = checkTimes(claims, rules);
  return {
    subject: text("sub", sub),
    clientId: text("client_id", client_id ?? azp),
    scopes: readTokenScopes(claims),
    audience,
    expiresAt,
    boundTo: readBinding(claims),
  };
}

/** What issuers call an access token: by how it is used (RFC 6749 section 7.1), or by what it is. */
const ACCESS_TOKEN_KINDS: readonly unknown[] = [
  ...[undefined, null, "bearer", "dpop"],
  ...["access", "access_token", "urn:ietf:params:oauth:token-type:access_token"],
];

/**
 * Checks that an introspection response is about an access token: introspection covers refresh tokens as well, and
 * those are active, too. Some issuers distinguish them by `token_use`.
 *
 * @throws TokenRefusal
 */
export function checkKind(answer: Readonly<Record<string, unknown>>): void {
  for (const name of ["token_type", "token_use"]) {
    const kind = answer[name];
    if (ACCESS_TOKEN_KINDS.includes(typeof kind === "string" ? kind.toLowerCase() : kind)) continue;
    throw new TokenRefusal("typ", `${name} ${quote(kind)} is no access token`);
  }
}

/** The key that a token is bound to. A token with another binding, or with more, is refused. */
function readBinding({ cnf, token_type }: Readonly<Record<string, unknown>>): string | undefined {
  if (cnf === undefined) {
    if (typeof token_type !== "string" || token_type.toLowerCase() !== "dpop") return undefined;
    throw new TokenRefusal("bound", "token_type is DPoP, and cnf does not say to which key the token is bound");
  }
  const { jkt, ...others } = isJsonObject(cnf) ? cnf : {};
  if (typeof jkt === "string" && THUMBPRINT.test(jkt) && Object.keys(others).length === 0) return jkt;
  throw new TokenRefusal("bound", `cnf ${quote(cnf)} must have jkt alone, a thumbprint (RFC 9449 section 6)`);
}

function readAudience(aud: unknown, { audiences }: ClaimRules): readonly string[] {
  const named: unknown[] = Array.isArray(aud) ? aud : [aud];
  if (!named.every((one) => typeof one === "string")) {
    throw new TokenRefusal("audience", `aud ${quote(aud)} must be a text or a list of texts`);
  }
  if (!named.some((one) => audiences.includes(one))) {
    throw new TokenRefusal("audience", `aud ${quote(aud)} must have ${quote(audiences)} exactly (RFC 8707)`);
  }
  return named;
}

function checkTimes(claims: Readonly<Record<string, unknown>>, { now, skew }: ClaimRules): number {
  const expiresAt = time("exp", claims["exp"]);
  if (expiresAt === undefined) throw new TokenRefusal("claims", "exp is missing (RFC 9068 section 2.2)");
  if (now >= expiresAt + skew)
    throw new TokenRefusal("expired", `exp ${expiresAt} has passed, now is ${Math.floor(now)}`);
  for (const name of ["nbf", "iat"]) {
    const from = time(name, claims[name]);
    // Rounded up, because the issuer may have rounded up to whole seconds too.
    if (from !== undefined && from > Math.ceil(now) + skew) {
      throw new TokenRefusal("not_yet", `${name} ${from} is in the future, now is ${Math.floor(now)}`);
    }
  }
  return expiresAt;
}

function time(name: string, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "number" && value >= 0 && value <= MAX_TIME) return value;
  throw new TokenRefusal("claims", `${name} ${quote(value)} must be a number of seconds`);
}

function text(name: string, value: unknown): string | undefined {
  if (value === undefined || typeof value === "string") return value;
  throw new TokenRefusal("claims", `${name} ${quote(value)} must be a text`);
}

/**
 * The scopes of a token: `scope`, separated by blanks (RFC 9068 section 2.2.3), or `scp`, or a list in either. A part that
 * is no scope token is dropped: nothing is split at tabs, nothing is trimmed.
 */
function readTokenScopes({ scope, scp }: Readonly<Record<string, unknown>>): readonly string[] {
  const said = scope ?? scp;
  const parts: unknown[] = typeof said === "string" ? said.split(" ") : Array.isArray(said) ? said : [];
  return [...new Set(parts.filter((part): part is string => typeof part === "string" && isScopeToken(part)))];
}
