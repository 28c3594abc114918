import type { JSONWebKeySet } from "jose";
import { isAgentAuthError } from "../../errors.js";
import { strictObject } from "../../http/buffered-response.js";
import { refusalError } from "../../http/refuse.js";
import { quote, type Secret } from "../../redact.js";
import { type OAuthHttp, serverFailure } from "../http/http.js";
import type { Grant } from "../model/grant.js";
import { readClaims } from "./token-checks.js";

export interface IdTokenVerification {
  /** Reads the keys of the issuer, which are cached. */
  http: Pick<OAuthHttp, "document" | "forgetDocuments">;
  /** Unix milliseconds. */
  now: number;
  signal: AbortSignal | undefined;
}

/** How far the clocks of the issuer and of this machine may differ. */
const TOLERANCE_S = 60;

/**
 * Verifies the id token of a login at an identity provider (OpenID Connect Core section 3.1.3.7): its signature by a key
 * of the issuer, `iss`, `aud`, `azp`, `exp` and `sub`. The nonce was compared when the answer came.
 *
 * @returns the id token
 * @throws `AgentAuthError` `bad_token_answer`, `bad_server_metadata` for an issuer without keys, or a network error
 */
export async function verifyIdToken(grant: Grant, verification: IdTokenVerification): Promise<Secret> {
  const { issuer, endpoints, client, tokens } = grant;
  const { idToken } = tokens;
  const complain = (rule: string) =>
    refusalError("bad_token_answer", { field: "id_token", value: "(not shown)", from: endpoints.token, rule });
  if (idToken === undefined) throw complain("is required for a login at an identity provider");
  try {
    await verifyClaims(idToken.reveal(), grant, verification);
  } catch (error) {
    if (isAgentAuthError(error)) throw error;
    throw complain(`must be verifiable (OpenID Connect Core section 3.1.3.7): ${quote((error as Error).message)}`);
  }
  const { aud, azp, sub, iat } = readClaims(idToken.reveal())?.claims ?? {};
  if (typeof sub !== "string" || sub === "") throw complain("must name the user by a text (sub)");
  if (typeof iat !== "number" || iat > verification.now / 1000 + TOLERANCE_S)
    throw complain("must have been issued by now (iat)");
  const isForSeveral = Array.isArray(aud) && aud.length > 1;
  if ((azp !== undefined || isForSeveral) && azp !== client.clientId)
    throw complain(`must have been issued to the client ${quote(client.clientId)} (azp), and is of ${quote(issuer)}`);
  return idToken;
}

/** Verifies by jose, which is loaded for the first token. A missing key may be new: the keys are read again once. */
async function verifyClaims(token: string, grant: Grant, verification: IdTokenVerification): Promise<void> {
  const { issuer, client } = grant;
  const [{ createLocalJWKSet }, { jwtVerify }] = await Promise.all([
    import("jose/jwks/local"),
    import("jose/jwt/verify"),
  ]);
  const verify = async () =>
    jwtVerify(token, createLocalJWKSet(await keysOf(grant, verification)), {
      issuer,
      audience: client.clientId,
      requiredClaims: ["exp", "sub"],
      clockTolerance: TOLERANCE_S,
      currentDate: new Date(verification.now),
    });
  await verify().catch((error: unknown) => {
    if ((error as { code?: unknown }).code !== "ERR_JWKS_NO_MATCHING_KEY") throw error;
    verification.http.forgetDocuments();
    return verify();
  });
}

async function keysOf({ endpoints, issuer }: Grant, { http, signal }: IdTokenVerification): Promise<JSONWebKeySet> {
  const { jwks: url } = endpoints;
  if (url === undefined) {
    const rule = "is required of an identity provider (OpenID Connect Discovery section 3)";
    throw refusalError("bad_server_metadata", { field: "jwks_uri", value: undefined, from: issuer, rule });
  }
  const reply = await http.document(url, signal);
  const { status } = reply;
  if (status >= 500 || status === 429) throw serverFailure(url, status);
  const rule = `must be the address of a key set, and answered HTTP ${status} (RFC 7517 section 5)`;
  if (!reply.response.ok)
    throw refusalError("bad_server_metadata", { field: "jwks_uri", value: url, from: issuer, rule });
  return strictObject(reply) as unknown as JSONWebKeySet;
}

/** Whether an id token is valid for a while longer: half a minute, or half of a shorter life. */
export function isCurrent(idToken: string | undefined, now: number): boolean {
  const { exp, iat } = readClaims(idToken ?? "")?.claims ?? {};
  if (typeof exp !== "number") return false;
  const life = typeof iat === "number" ? exp - iat : Number.POSITIVE_INFINITY;
  return exp - now / 1000 > Math.min(30, life / 2);
}
