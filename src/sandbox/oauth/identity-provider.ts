import type { SandboxPart } from "../faults/round-trip.js";
import { readBody, readForm } from "../http/request-body.js";
import { clientCredentials } from "../http/request-guard.js";
import { jsonResponse, Refusal, requireMethod, type SandboxResponse } from "../http/sandbox-response.js";
import { ID_JAG_TYP } from "./jwt-bearer.js";
import { openJwt, signJwt } from "./keys.js";
import { IDP_PATH, type Machines } from "./machine.js";
import type { PoolServers } from "./pool-servers.js";
import { TOKEN_EXCHANGE } from "./token-exchange.js";

const TYPE = "urn:ietf:params:oauth:token-type:";
const ID_JAG = `${TYPE}id-jag`;
const TOKEN_PATH = `${IDP_PATH}/token`;
const MAX_BODY = 64 * 1024;
const LIFE_S = 300;

/**
 * The identity provider: one token endpoint, which exchanges one of its id tokens for an identity assertion (ID-JAG)
 * for an authorization server of the sandbox (RFC 8693, identity assertion authorization grant).
 */
export function identityProviderPart(machines: Machines, servers: PoolServers): SandboxPart {
  return {
    owns: (path) => path === IDP_PATH || path.startsWith(`${IDP_PATH}/`),
    faulty: true,
    async target(roundTrip) {
      roundTrip.body = await readBody(roundTrip.request, MAX_BODY);
      return {};
    },
    handle({ path, method, request, body }) {
      if (path !== TOKEN_PATH) throw new Refusal(404, "not_found", "there is nothing at this path");
      requireMethod(method, ["POST"]);
      return issueIdJag(machines, servers, readForm(body), request.headers.authorization);
    },
  };
}

function issueIdJag(machines: Machines, servers: PoolServers, form: URLSearchParams, header?: string): SandboxResponse {
  const { id, secret } = clientCredentials(form, header);
  if (id !== machines.idp.clientId || secret !== machines.idp.clientSecret)
    return oauthError("invalid_client", "unknown client", 401);
  if (form.get("grant_type") !== TOKEN_EXCHANGE)
    return oauthError("unsupported_grant_type", "only token exchange is supported");
  if (form.get("requested_token_type") !== ID_JAG || form.get("subject_token_type") !== `${TYPE}id_token`)
    return oauthError("invalid_request", "only an ID-JAG in exchange for an id token is supported");
  const { header: head, claims } = openJwt(form.get("subject_token") ?? "", machines.key("idp")) ?? {};
  const isIdToken = head?.["typ"] === "JWT" && claims?.["aud"] === machines.idp.clientId;
  if (!isIdToken || Number(claims["exp"]) <= machines.now())
    return oauthError("invalid_grant", "the id token is expired, or not for this client");
  const [audience, resource] = [form.get("audience") ?? "", form.get("resource")];
  if (!servers.isIssuer(audience)) return oauthError("invalid_target", "the audience is not an issuer of this sandbox");
  const scope = form.get("scope");
  const assertion = {
    iss: machines.idp.issuer,
    sub: claims["sub"],
    aud: audience,
    client_id: machines.secretClient.clientId,
    ...(resource !== null && { resource }),
    ...(scope !== null && { scope }),
    ...machines.times(LIFE_S),
  };
  return jsonResponse({
    access_token: signJwt(machines.key("idp"), ID_JAG_TYP, assertion),
    issued_token_type: ID_JAG,
    token_type: "N_A",
    expires_in: LIFE_S,
    ...(scope !== null && { scope }),
  });
}

function oauthError(error: string, description: string, status = 400): SandboxResponse {
  return jsonResponse({ error, error_description: description }, status);
}
