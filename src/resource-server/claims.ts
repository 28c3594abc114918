import { isScopeToken } from "../http/oauth-syntax.js";
import { isJsonObject } from "../http/strict-json.js";
import { quote, Secret } from "../redact.js";
import { TokenRefusal } from "./refusal.js";

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

/** A verified token. It does not print the token itself. */
export interface VerifiedToken {
  /** The subject; undefined where the token has none. */
  readonly subject: string | undefined;
  /** The client that it was issued to; undefined where the token has none. */
  readonly clientId: string | undefined;
  /** The granted scopes. */
  readonly scopes: readonly string[];
  /** When it expires. */
  readonly expiresAt: Date;
  /** Who issued it: one of the configured issuers. */
  readonly issuer: string;
  /** The audience: this server, and perhaps others; empty where `allowMissingAudience` accepted a token without. */
  readonly audience: readonly string[];
  /** All its claims, or those of the introspection response. */
  readonly claims: Readonly<TokenClaims>;
  /** The token, which does not print: for exchanging it (RFC 8693). Do not send it to another server. */
  readonly token: Secret;
}

/** A token in the form in which the official MCP SDK hands it to tools as `authInfo`. */
export interface AuthInfo {
  /** The token; inspecting and serialising leave it out. */
  token: string;
  /** Empty where the token has none. */
  clientId: string;
  /** The scopes that were granted. */
  scopes: string[];
  /** Unix seconds. */
  expiresAt: number;
  /** The resource that the token is for. */
  resource: URL;
  /** Facts that the SDK has no member for. */
  extra: { subject: string | undefined; issuer: string; claims: Readonly<TokenClaims> };
}

export interface ClaimRules {
  issuer: string;
  audiences: readonly string[];
  /** Unix seconds. */
  now: number;
  /** Seconds that clocks may differ. */
  skew: number;
  /** Whether a token without `aud` is for this server. */
  allowMissingAudience: boolean;
}

/** A token whose claims meet the rules. */
export interface CheckedToken {
  verified: VerifiedToken;
  /** The thumbprint of the key that the token is bound to (RFC 9449 section 6); undefined for a bearer token. */
  boundTo: string | undefined;
}

// The end of the year 9999. What lies beyond is milliseconds, or nonsense.
const MAX_TIME = 253_402_300_799;
const THUMBPRINT = /^[\w-]{43}$/;

/** Checks the claims of a token by the rules of the service and of RFC 9068 section 4. @throws TokenRefusal */
export function checkClaims(
  token: string,
  claims: Readonly<Record<string, unknown>>,
  { issuer, audiences, now, skew, allowMissingAudience }: ClaimRules,
): CheckedToken {
  const { iss, aud, sub, client_id, azp } = claims;
  if (iss !== issuer) throw new TokenRefusal("issuer", `iss ${quote(iss)} must be ${quote(issuer)}`);
  const audience = aud === undefined && allowMissingAudience ? [] : readAudience(aud, audiences);
  const expiresAt = new Date(readExpiry(claims, now, skew) * 1000);
  const [subject, clientId] = [readText("sub", sub), readText("client_id", client_id ?? azp)];
  const scopes = readTokenScopes(claims);
  const verified = { subject, clientId, scopes, expiresAt, issuer, audience, claims, token: new Secret(token) };
  return { verified: Object.freeze(verified), boundTo: readBinding(claims) };
}

function readAudience(aud: unknown, audiences: readonly string[]): readonly string[] {
  const named: unknown[] = Array.isArray(aud) ? aud : [aud];
  if (!named.every((one) => typeof one === "string"))
    throw new TokenRefusal("audience", `aud ${quote(aud)} must be a text or a list of texts`);
  if (!named.some((one) => audiences.includes(one)))
    throw new TokenRefusal("audience", `aud ${quote(aud)} must have ${quote(audiences)} exactly (RFC 8707)`);
  return named;
}

/** Checks the times of a token. @returns when it expires, in Unix seconds */
function readExpiry(claims: Readonly<Record<string, unknown>>, now: number, skew: number): number {
  const expiresAt = readTime("exp", claims["exp"]);
  if (expiresAt === undefined) throw new TokenRefusal("claims", "exp is missing (RFC 9068 section 2.2)");
  if (now >= expiresAt + skew)
    throw new TokenRefusal("expired", `exp ${expiresAt} has passed, now is ${Math.floor(now)}`);
  for (const name of ["nbf", "iat"]) {
    const from = readTime(name, claims[name]) ?? 0;
    // Rounded up, because the issuer may have rounded up to whole seconds too.
    if (from > Math.ceil(now) + skew)
      throw new TokenRefusal("not_yet", `${name} ${from} is in the future, now is ${Math.floor(now)}`);
  }
  return expiresAt;
}

function readTime(name: string, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "number" && value >= 0 && value <= MAX_TIME) return value;
  throw new TokenRefusal("claims", `${name} ${quote(value)} must be a number of seconds`);
}

function readText(name: string, value: unknown): string | undefined {
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

/**
 * A verified token in the form of the official MCP SDK: `handler.fetch(request, { authInfo })`, `req.auth`.
 *
 * @param resource the address of the protected server
 */
export function toAuthInfo(verified: VerifiedToken, resource: string): AuthInfo {
  const { subject, clientId = "", scopes, expiresAt, issuer, claims, token } = verified;
  const info = {
    clientId,
    scopes: [...scopes],
    expiresAt: Math.floor(expiresAt.getTime() / 1000),
    resource: new URL(resource),
    extra: { subject, issuer, claims },
  };
  return Object.defineProperty(info, "token", { get: () => token.reveal() }) as AuthInfo;
}
