import * as oauth from "oauth4webapi";
import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { follow } from "../../http/deadline.js";
import type { ClientKey } from "../client/client-auth.js";
import type { Grant } from "../grant/grant.js";
import type { OAuthHttp } from "../http/http.js";
import { prepare, type TokenCall, withOAuthErrors } from "./token.js";

/** The result of a logout at the issuer. */
export interface RemoteLogout {
  /** Whether the issuer revoked the grant; undefined if it has no endpoint for that. */
  revoked: boolean | undefined;
  /** Why it did not. */
  error?: unknown;
}

const LIMIT_MS = 5000;

/**
 * Ends a grant at its issuer, within five seconds: revokes its tokens (RFC 7009) if the issuer has an endpoint for
 * that, else calls its end-session endpoint (OpenID Connect RP-Initiated Logout). Never throws: the local grant is
 * removed already, and a failing issuer must not restore it.
 */
export async function revokeRemotely(
  grant: Grant,
  http: OAuthHttp,
  callerSignal: AbortSignal | undefined,
  privateKey?: ClientKey,
): Promise<RemoteLogout> {
  const { revocation, endSession } = grant.endpoints;
  const call = follow(
    callerSignal,
    LIMIT_MS,
    () => new AgentAuthError("timeout", "no response in 5 s", { class: "unavailable" }),
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

/** Revokes the refresh token first: without it no new access token can be issued. */
async function revoke(
  grant: Grant,
  url: string,
  requestOptions: Pick<TokenCall, "http" | "signal" | "privateKey">,
): Promise<void> {
  const { refreshToken, accessToken } = grant.tokens;
  if (refreshToken === undefined) return revokeToken(grant, url, accessToken.reveal(), requestOptions);
  await revokeToken(grant, url, refreshToken.reveal(), requestOptions);
  try {
    await revokeToken(grant, url, accessToken.reveal(), requestOptions);
  } catch (error) {
    // Many issuers revoke only refresh tokens, and with them the access tokens (RFC 7009 section 2.1).
    if (!isAgentAuthError(error) || error.code !== "unsupported_token_type") throw error;
  }
}

async function revokeToken(
  grant: Grant,
  url: string,
  token: string,
  requestOptions: Pick<TokenCall, "http" | "signal" | "privateKey">,
): Promise<void> {
  const { as, client, auth, options } = prepare({ ...requestOptions, issuer: grant.issuer, client: grant.client });
  const request = async () => {
    const response = await oauth.revocationRequest({ ...as, revocation_endpoint: url }, client, auth, token, options);
    await oauth.processRevocationResponse(response);
  };
  await withOAuthErrors({ tokenEndpoint: url }, request);
}
