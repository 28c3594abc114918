import * as oauth from "oauth4webapi";
import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { followSignal } from "../../http/deadline.js";
import { type Ended, type Events, observe, readKnownCode, readOrigin } from "../../telemetry/emit.js";
import type { EventFields } from "../../telemetry/events.js";
import type { ClientKey } from "../client/client-auth.js";
import type { OAuthHttp } from "../http/http.js";
import type { ClientRecord, Grant } from "../model/grant.js";
import type { GrantStore } from "../model/grant-store.js";
import { sendAuthenticated, type TokenCall } from "./token.js";

/** The result of a logout at the issuer. */
export interface RemoteLogout {
  /** Whether the issuer revoked the tokens (RFC 7009); null if it has no revocation endpoint, or there was no login. */
  revoked: boolean | null;
  /**
   * Whether the issuer accepted the request to end the session of the user (OpenID Connect RP-Initiated Logout), which
   * need not revoke a token. Null if that was not requested, since the issuer revokes tokens, has no end-session
   * endpoint, or returned no ID token with the login; and if it answered with a page, which may ask the user first.
   */
  sessionEnded: boolean | null;
  /** The tokens that the issuer did not revoke although it has a revocation endpoint; undefined if there are none. */
  notRevoked?: readonly ("refresh_token" | "access_token")[] | undefined;
  /** When the access token expires, if it was not revoked; undefined if the issuer did not say. */
  expiresAt?: Date | undefined;
  /** Why the issuer did not revoke the tokens or end the session. */
  error?: unknown;
}

export interface RevocationContext {
  http: OAuthHttp;
  events: Events;
  signal?: AbortSignal | undefined;
  privateKey?: ClientKey | undefined;
}

export const REVOCATION_MS = 5000;

/**
 * Ends a grant at its issuer, within five seconds: revokes its tokens (RFC 7009) if the issuer has an endpoint for
 * that, else asks it to end the session of the user. Never throws: the local grant is removed already, and a failing
 * issuer must not restore it.
 */
export function revokeRemotely(grant: Grant, context: RevocationContext): Promise<RemoteLogout> {
  const work = () => revokeAtIssuer(grant, context);
  return observe(context.events, "revoke", work, (ended) => describeEnd(grant, ended));
}

function describeEnd({ issuer, server }: Grant, ended: Ended<RemoteLogout>): Omit<EventFields<"revoke">, "durationMs"> {
  const details = { issuer, server: readOrigin(server) };
  const { revoked, sessionEnded, error } =
    "result" in ended ? ended.result : { ...ended, revoked: false, sessionEnded: false };
  if (error !== undefined) return { outcome: "failed", code: readKnownCode(error), ...details };
  return { outcome: revoked ? "revoked" : sessionEnded ? "session_ended" : "unsupported", ...details };
}

async function revokeAtIssuer(grant: Grant, { http, signal: callerSignal, privateKey }: RevocationContext) {
  const { revocation } = grant.endpoints;
  const expiresAt = grant.tokens.expiresAt === undefined ? undefined : new Date(grant.tokens.expiresAt);
  const timeoutError = () => new AgentAuthError("timeout", "no response in 5 s", { class: "unavailable" });
  const call = followSignal(callerSignal, REVOCATION_MS, timeoutError);
  const { signal } = call;
  try {
    if (revocation === undefined)
      return { revoked: null, sessionEnded: await endSession(grant, http, signal), expiresAt };
    const failures = await revoke(grant, revocation, { http, signal, privateKey });
    const notRevoked = [...failures.keys()];
    const [error] = failures.values();
    if (error === undefined) return { revoked: true, sessionEnded: null };
    const left = notRevoked.includes("access_token") ? { expiresAt } : {};
    return { revoked: false, sessionEnded: null, notRevoked, ...left, error };
  } catch (error) {
    return { revoked: null, sessionEnded: false, expiresAt, error };
  } finally {
    call.release();
  }
}

/**
 * Ends a login at its issuer, and stores it until its tokens are revoked, so that the next one tries again.
 *
 * @param end removes the login where that is still to be done, and revokes its tokens
 */
export async function revokeRecorded(
  { unrevoked }: Pick<GrantStore, "unrevoked">,
  grant: Grant,
  end: () => Promise<RemoteLogout>,
): Promise<RemoteLogout> {
  const noted = grant.endpoints.revocation === undefined ? undefined : unrevoked?.add(grant);
  // A store that is full takes nothing, and a login can be removed from it all the same.
  const forget = await noted?.catch(() => undefined);
  const outcome = await end();
  if (outcome.revoked) await forget?.().catch(() => undefined);
  return outcome;
}

/** Without a hint, the issuer could not know whose session to end: the request has no cookie of a browser. */
async function endSession({ endpoints, tokens, client }: Grant, http: OAuthHttp, signal: AbortSignal) {
  if (endpoints.endSession === undefined || tokens.idToken === undefined) return null;
  const url = new URL(endpoints.endSession);
  url.searchParams.set("id_token_hint", tokens.idToken.reveal());
  url.searchParams.set("client_id", client.clientId);
  const { response } = await http.probe(url.href, signal);
  const isPage = response.status < 300 && /^text\/html\b/i.test(response.headers.get("content-type") ?? "");
  return isPage ? null : response.status < 400;
}

type RevocableToken = NonNullable<RemoteLogout["notRevoked"]>[number];

/**
 * Revokes the refresh token first: without it no new access token can be issued. An issuer that fails to revoke it may
 * revoke the access token.
 *
 * @returns why, for each token that was not revoked
 */
async function revoke(
  grant: Grant,
  url: string,
  requestOptions: Pick<TokenCall, "http" | "signal" | "privateKey">,
): Promise<Map<RevocableToken, unknown>> {
  const { refreshToken, accessToken } = grant.tokens;
  const failures = new Map<RevocableToken, unknown>();
  let { client: usedClient } = grant;
  const onClient = (accepted: ClientRecord) => {
    usedClient = accepted;
  };
  for (const [name, token] of [["refresh_token", refreshToken] as const, ["access_token", accessToken] as const]) {
    if (token === undefined) continue;
    const call = { ...requestOptions, issuer: grant.issuer, tokenEndpoint: url, client: usedClient, onClient };
    const send = (additionalParameters: Record<string, string>) =>
      sendAuthenticated(call, async ({ as, client, auth, options }) => {
        const server = { ...as, revocation_endpoint: url };
        const request = { ...options, additionalParameters };
        const response = await oauth.revocationRequest(server, client, auth, token.reveal(), request);
        await oauth.processRevocationResponse(response);
      });
    try {
      await send({}).catch((error: unknown) => {
        const isRefused = isAgentAuthError(error, "invalid_request");
        if (!isRefused || usedClient.authMethod !== "none") throw error;
        // The MCP SDK for Python requires the parameter of every client; empty, it says nothing (RFC 6749 section 2.3.1).
        return send({ client_secret: "" });
      });
    } catch (error) {
      // Many issuers revoke only refresh tokens, and with them the access tokens (RFC 7009 section 2.1).
      const isUnsupported = isAgentAuthError(error, "unsupported_token_type");
      const isCovered = name === "access_token" && refreshToken !== undefined && !failures.has("refresh_token");
      if (!(isUnsupported && isCovered)) failures.set(name, error);
      // An endpoint that does not answer is not asked twice.
      const isSilent = isAgentAuthError(error) && error.class === "unavailable" && error.status === undefined;
      if (isSilent) return failures.set("access_token", error);
    }
  }
  return failures;
}
