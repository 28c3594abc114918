import { Secret } from "../../redact.js";

/** How a client proves itself at the token endpoint (RFC 7591 section 2). */
export type AuthMethod = "none" | "client_secret_basic" | "client_secret_post" | "private_key_jwt";

/** A client of one issuer: who the agent is, not who the user is. */
export interface ClientRecord {
  /** The issuer that knows it. */
  readonly issuer: string;
  /** Its `client_id`. */
  readonly clientId: string;
  /** Its secret; undefined for a public client. */
  readonly clientSecret: Secret | undefined;
  /** Unix milliseconds at which the secret ends; undefined for never. */
  readonly secretExpiresAt: number | undefined;
  /** How it proves itself. */
  readonly authMethod: AuthMethod;
  /** How the issuer came to know it. */
  readonly source: "pre-registered" | "metadata-document" | "dynamic";
  /** The redirect address it was registered with, or last used. */
  readonly redirectUri: string | undefined;
  /** Unix milliseconds of the registrations in its place within the last day, of one that was registered by us. */
  readonly registeredAt?: readonly number[];
  /** Whether the issuer no longer takes it: another one is registered in its place. */
  readonly isRefused?: boolean;
}

/** Addresses of the issuer that later requests need. */
export interface GrantEndpoints {
  /** The token endpoint. */
  readonly token: string;
  /** Where tokens are introspected (RFC 7662). */
  readonly introspection: string | undefined;
  /** Where tokens are revoked (RFC 7009). */
  readonly revocation: string | undefined;
  /** Where sessions are ended (OpenID Connect RP-Initiated Logout). */
  readonly endSession: string | undefined;
  /** The issuer's keys. */
  readonly jwks: string | undefined;
}

/** The tokens of a grant. */
export interface GrantTokens {
  /** The token that the MCP server takes. */
  readonly accessToken: Secret;
  /** What refreshes it, where the issuer gave one. */
  readonly refreshToken: Secret | undefined;
  /** The OpenID Connect id token, where the issuer gave one. */
  readonly idToken: Secret | undefined;
  /** Unix milliseconds by the issuer's clock as it was read here; undefined when it did not say. */
  readonly expiresAt: number | undefined;
  /** Unix milliseconds at which the access token was received. */
  readonly obtainedAt: number;
  /** The scopes granted; undefined when neither asked for nor told. */
  readonly scope: string | undefined;
}

/** A refresh that was sent and whose answer did not arrive: the issuer may have taken the refresh token for used. */
export interface LostRefresh {
  /** Unix milliseconds at which the loss was noticed. */
  readonly at: number;
  /** The code of the error that took the place of the answer. */
  readonly code: string;
  /** The generation that the tokens came with: the marked grant still has those. */
  readonly generation: number;
}

/**
 * What a finished login leaves behind. It is built once and never changed: every later request is built from it, so that
 * none can forget the resource, the client or the way it authenticates.
 */
export interface Grant {
  /** The profile that the login belongs to. */
  readonly profile: string;
  /** The MCP server, canonical. */
  readonly server: string;
  /** The account that the login was asked for, where one was named. */
  readonly account: string | undefined;
  /** What is sent as `resource`, byte for byte as the metadata has it. */
  readonly resource: string;
  /** The authorization server that gave the tokens. */
  readonly issuer: string;
  /** Addresses of the issuer. */
  readonly endpoints: GrantEndpoints;
  /** The client that the tokens were given to. */
  readonly client: ClientRecord;
  /** The scopes that were asked for. */
  readonly requestedScope: string | undefined;
  /** The rules that the user lifted for this issuer, by the names of the client's options. */
  readonly overrides: readonly string[];
  /** The private key, as the text of a JWK, that the tokens are bound to (RFC 9449); undefined for bearer tokens. */
  readonly proofKey?: Secret | undefined;
  /** The tokens of the last answer. */
  readonly tokens: GrantTokens;
  /** Unix milliseconds at which the user logged in; every generation of one login has the same. */
  readonly signedInAt: number;
  /** Unix milliseconds of the last refreshes that a server's refusal led to, oldest first. */
  readonly refusals: readonly number[];
  /** Counts up by one with every change that is stored: a token answer, a mark. */
  readonly generation: number;
  /** Set when the answer to a refresh was lost on the way; the next answer removes it. */
  readonly lostRefresh?: LostRefresh | undefined;
  /** Set when the issuer said that the grant is over. Nothing is deleted: a later login replaces it. */
  readonly retired: { readonly at: number; readonly reason: string } | undefined;
}

/** What a token endpoint answered, already checked for form. */
export interface TokenAnswer {
  readonly accessToken: string;
  readonly refreshToken: string | undefined;
  readonly idToken: string | undefined;
  /** Seconds. */
  readonly expiresIn: number | undefined;
  readonly scope: string | undefined;
  /** Unix milliseconds by the answer's own `Date`, else by our clock. */
  readonly at: number;
}

const YEAR_MS = 365 * 24 * 3600 * 1000;

/** The tokens of a first answer. */
export function tokensOf(answer: TokenAnswer, requestedScope: string | undefined): GrantTokens {
  return {
    accessToken: new Secret(answer.accessToken),
    refreshToken: answer.refreshToken === undefined ? undefined : new Secret(answer.refreshToken),
    idToken: answer.idToken === undefined ? undefined : new Secret(answer.idToken),
    expiresAt: answer.expiresIn === undefined ? undefined : answer.at + Math.min(answer.expiresIn * 1000, YEAR_MS),
    obtainedAt: answer.at,
    // What is not told is what was asked for (RFC 6749 section 5.1).
    scope: answer.scope ?? requestedScope,
  };
}

/**
 * Merges the answer to a refresh into a grant: the only place that knows how a token answer changes one. A refresh
 * token, an id token or a scope that the answer leaves out stays as it was (RFC 6749 section 6).
 */
export function mergeAnswer(grant: Grant, answer: TokenAnswer): Grant {
  const { tokens } = grant;
  const fresh = tokensOf(answer, tokens.scope);
  return {
    ...grant,
    tokens: {
      ...fresh,
      refreshToken: fresh.refreshToken ?? tokens.refreshToken,
      idToken: fresh.idToken ?? tokens.idToken,
    },
    generation: grant.generation + 1,
    lostRefresh: undefined,
    retired: undefined,
  };
}

const MINUTE_MS = 60_000;
const MAX_REFUSALS_PER_MINUTE = 3;

/** The grant with a refresh noted that its server's refusal leads to; only what still counts is kept. */
export function noteRefusal(grant: Grant, now: number): Grant {
  return { ...grant, refusals: [...grant.refusals.filter((at) => now - at < MINUTE_MS && at <= now), now] };
}

/**
 * Whether the servers of an issuer refuse its tokens as fast as it refreshes them. Refreshing once more would not help,
 * and a client that goes on like that is a storm.
 *
 * @param grants the grants of one issuer
 */
export function isStorm(grants: readonly Grant[], now: number): boolean {
  const recent = grants.flatMap(({ refusals }) => refusals.filter((at) => now - at < MINUTE_MS && at <= now));
  return recent.length >= MAX_REFUSALS_PER_MINUTE;
}

/** The grant, marked as over. */
export function retire(grant: Grant, reason: string, at: number): Grant {
  return { ...grant, generation: grant.generation + 1, lostRefresh: undefined, retired: { at, reason } };
}

/** The generation that the tokens of a grant came with; a mark on them counts up the grant's own. */
export function tokenGeneration({ lostRefresh, generation }: Grant): number {
  return lostRefresh?.generation ?? generation;
}

/** Whether two grants hold the same tokens. A login after a logout counts its generations from the start again. */
export function hasSameTokens(one: Grant, other: Grant): boolean {
  return tokenGeneration(one) === tokenGeneration(other) && one.signedInAt === other.signedInAt;
}

/** How far the clock of this machine may go back without being taken for another one. */
const CLOCK_SLACK_MS = 60_000;

/**
 * Whether the access token has ended by its own word. One that came in what is now the future was dated by a clock that
 * was wrong, so that nothing is known of its end.
 */
export function hasExpired({ expiresAt, obtainedAt }: GrantTokens, now: number): boolean {
  return expiresAt !== undefined && (expiresAt <= now || now < obtainedAt - CLOCK_SLACK_MS);
}

/** Seconds that a token must still live where nobody says for how long it is needed. */
const DEFAULT_MIN_TTL_S = 60;

/**
 * Whether the access token can be used for `minTtl` more seconds. A token whose life is shorter than that would never be
 * fresh: what is asked for counts up to nine tenths of its life, and where nothing is asked for a half of it will do. A
 * token whose end is not known is fresh until the server says no.
 */
export function isFresh(grant: Grant, now: number, minTtl: number | undefined): boolean {
  if (grant.retired || hasExpired(grant.tokens, now)) return false;
  const { expiresAt, obtainedAt } = grant.tokens;
  if (expiresAt === undefined) return true;
  const share = minTtl === undefined ? 0.5 : 0.9;
  const wanted = Math.min((minTtl ?? DEFAULT_MIN_TTL_S) * 1000, (expiresAt - obtainedAt) * share);
  return expiresAt - now > wanted;
}

/** Whether the scopes granted include all of those wanted. */
export function coversScope(grant: Grant, wanted: readonly string[] | undefined): boolean {
  if (!wanted || wanted.length === 0) return true;
  const granted = new Set((grant.tokens.scope ?? "").split(" "));
  return wanted.every((scope) => granted.has(scope));
}
