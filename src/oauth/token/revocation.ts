import * as oauth from "oauth4webapi";
import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { follow } from "../../http/deadline.js";
import type { ClientKey } from "../client/client-auth.js";
import type { Grant } from "../grant/grant.js";
import type { OAuthHttp } from "../http/http.js";
import { prepare, type TokenCall, withOAuthErrors } from "./token.js";

/** What became of a grant at its issuer. */
export interface RemoteLogout {
  /** Whether the issuer was told, and took it; undefined when it has no way to be told. */
  revoked: boolean | undefined;
  /** Why it was not. */
  error?: unknown;
}

const LIMIT_MS = 5000;

/**
 * Tells the issuer that a grant is over, for at most five seconds: revokes its tokens (RFC 7009) where the issuer has an
 * endpoint for that, else asks its end-session endpoint (OpenID Connect RP-Initiated Logout). Never throws: what is local
 * is gone already, and an issuer that is down must not bring it back.
 */
export async function revokeRemotely(
  grant: Grant,
  http: OAuthHttp,
  outer: AbortSignal | undefined,
  privateKey?: ClientKey,
): Promise<RemoteLogout> {
  const { revocation, endSession } = grant.endpoints;
  const call = follow(
    outer,
    LIMIT_MS,
    () => new AgentAuthError("timeout", "no answer in 5 s", { class: "unavailable" }),
  );
  const { signal } = call;
  try {
    if (revocation !== undefined) {
      await revoke(grant, revocation, { http, signal, privateKey });
      return { revoked: true };
    }
    if (endSession === undefined) return { revoked: undefined };
    const url = new URL(endSession);
    const idToken = grant.tokens.idToken?.reveal();
    if (idToken !== undefined) url.searchParams.set("id_token_hint", idToken);
    url.searchParams.set("client_id", grant.client.clientId);
    const { status } = await http.probe(url.href, signal);
    return { revoked: status < 400 };
  } catch (error) {
    return { revoked: false, error };
  } finally {
    call.release();
  }
}

/** The refresh token first: without it the access token is the last one. */
async function revoke(grant: Grant, url: string, by: Pick<TokenCall, "http" | "signal" | "privateKey">): Promise<void> {
  const { refreshToken, accessToken } = grant.tokens;
  if (refreshToken === undefined) return revokeToken(grant, url, accessToken.reveal(), by);
  await revokeToken(grant, url, refreshToken.reveal(), by);
  try {
    await revokeToken(grant, url, accessToken.reveal(), by);
  } catch (error) {
    // Many an issuer revokes refresh tokens alone, and ends with them what came of them (RFC 7009 section 2.1).
    if (!isAgentAuthError(error) || error.code !== "unsupported_token_type") throw error;
  }
}

async function revokeToken(
  grant: Grant,
  url: string,
  token: string,
  by: Pick<TokenCall, "http" | "signal" | "privateKey">,
): Promise<void> {
  const { as, client, auth, options } = prepare({ ...by, issuer: grant.issuer, client: grant.client });
  const ask = async () => {
    const response = await oauth.revocationRequest({ ...as, revocation_endpoint: url }, client, auth, token, options);
    await oauth.processRevocationResponse(response);
  };
  await withOAuthErrors({ tokenEndpoint: url }, ask);
}
