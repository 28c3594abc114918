import { parseUrl } from "../../http/address.js";
import type { JsonObject } from "../../http/strict-json.js";
import { jsonResponse, type SandboxResponse } from "../http/sandbox-response.js";
import { DEVICE_CODE, JWT_BEARER, MACHINE_AUTH_METHODS, TOKEN_EXCHANGE_GRANT } from "./configuration.js";
import type { OAuthSettings } from "./issuer-settings.js";
import { introspectionOf, isMachine, openJwt, SIGNING_ALG, signJwt } from "./keys.js";
import type { Machines } from "./machine.js";
import type { PoolServer } from "./pool-server.js";

/** The fields of a registration response that the service documents. */
const REGISTERED = [
  "client_id",
  "client_secret",
  "client_id_issued_at",
  "client_secret_expires_at",
  "redirect_uris",
  "grant_types",
  "client_name",
  "token_endpoint_auth_method",
] as const;

/** The fields of the metadata that the service documents as they are. */
const METADATA = [
  "issuer",
  "authorization_endpoint",
  "token_endpoint",
  "registration_endpoint",
  "introspection_endpoint",
  "end_session_endpoint",
  "jwks_uri",
  "code_challenge_methods_supported",
  "response_types_supported",
  "subject_types_supported",
];

const GRANT_TYPES = [
  "authorization_code",
  "refresh_token",
  TOKEN_EXCHANGE_GRANT,
  DEVICE_CODE,
  "client_credentials",
  JWT_BEARER,
] as const;

/** The metadata of an authorization server: the fields of oidc-provider that the service documents. */
export function metadataAnswer(answer: SandboxResponse, oauth: OAuthSettings): SandboxResponse {
  const metadata = readJsonBody(answer);
  if (!metadata) return answer;
  const enabled = metadata["grant_types_supported"] as string[];
  return jsonResponse({
    ...pickFields(metadata, METADATA),
    grant_types_supported: GRANT_TYPES.filter((type) => enabled.includes(type)),
    scopes_supported: oauth.requireOfflineAccess ? ["offline_access"] : [],
    ...(oauth.revocation && pickFields(metadata, ["revocation_endpoint"])),
    ...(oauth.clientMetadataDocuments && pickFields(metadata, ["client_id_metadata_document_supported"])),
    ...(oauth.deviceFlow && pickFields(metadata, ["device_authorization_endpoint"])),
    ...(oauth.iss && { authorization_response_iss_parameter_supported: true }),
    ...(oauth.machineGrants && {
      authorization_grant_profiles_supported: ["urn:ietf:params:oauth:grant-profile:id-jag"],
      token_endpoint_auth_methods_supported: MACHINE_AUTH_METHODS,
      token_endpoint_auth_signing_alg_values_supported: [SIGNING_ALG],
    }),
    ...(oauth.dpop !== "off" && pickFields(metadata, ["dpop_signing_alg_values_supported"])),
  });
}

/** The metadata of the identity provider: all of those of oidc-provider, and the tokens that it issues in an exchange. */
export function idpMetadataAnswer(answer: SandboxResponse): SandboxResponse {
  const identity_chaining_requested_token_types_supported = ["urn:ietf:params:oauth:token-type:id-jag"];
  return jsonResponse({ ...readJsonBody(answer), identity_chaining_requested_token_types_supported });
}

/** A token response whose id token has the times of the sandbox's clock, which oidc-provider does not know. */
export function idTokenAnswer(answer: SandboxResponse, machines: Machines): SandboxResponse {
  const body = readJsonBody(answer);
  const key = machines.key("idp");
  const { claims } = openJwt(String(body?.["id_token"]), key) ?? {};
  if (claims === undefined) return answer;
  const times = machines.times(Number(claims["exp"]) - Number(claims["iat"]));
  return withBody(answer, { ...body, id_token: signJwt(key, "JWT", { ...claims, ...times }) });
}

/** A registration response with the documented fields. @param skew seconds that the sandbox's clock is ahead */
export function registrationAnswer(answer: SandboxResponse, skew: number): SandboxResponse {
  const body = readJsonBody(answer);
  if (body?.["client_id"] === undefined) return answer;
  const client_id_issued_at = Number(body["client_id_issued_at"]) + skew;
  return withBody(answer, pickFields({ ...body, client_id_issued_at }, REGISTERED));
}

/**
 * An introspection response in the sandbox's time, also for JWTs, which oidc-provider does not introspect.
 *
 * @param skew seconds that the sandbox's clock is ahead
 */
export async function introspectionAnswer(
  answer: SandboxResponse,
  server: PoolServer,
  form: URLSearchParams,
  skew: number,
): Promise<SandboxResponse> {
  const body = readJsonBody(answer);
  if (body?.["error"] === "unsupported_token_type") return jsonResponse(await introspectJwt(server, form));
  if (body?.["active"] !== true) return answer;
  return withBody(answer, { ...body, exp: Number(body["exp"]) + skew, iat: Number(body["iat"]) + skew });
}

async function introspectJwt(server: PoolServer, form: URLSearchParams): Promise<JsonObject> {
  const facts = await server.inspect(form.get("token") ?? "");
  const { store } = await server.run();
  if (!facts || !(isMachine(facts) || (facts.grantId !== undefined && store.hasGrant(facts.grantId))))
    return { active: false };
  // A public client does not authenticate: it may introspect its own tokens only.
  const isPublic = form.has("client_id") && !form.has("client_secret");
  if (isPublic && form.get("client_id") !== facts.clientId) return { active: false };
  return introspectionOf(server.issuer, facts);
}

/** An authorization response without the issuer. */
export function withoutIssuer(answer: SandboxResponse, issuer: string): SandboxResponse {
  const location = answer.headers["location"];
  const target = parseUrl(location);
  if (target === undefined) return answer;
  const fragment = new URLSearchParams(target.hash.slice(1));
  if (target.searchParams.get("iss") === issuer) target.searchParams.delete("iss");
  else if (fragment.get("iss") === issuer) {
    fragment.delete("iss");
    target.hash = fragment.toString();
  } else return answer;
  return { ...answer, headers: { ...answer.headers, location: target.href } };
}

function pickFields(fields: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(names.filter((name) => fields[name] !== undefined).map((name) => [name, fields[name]]));
}

function readJsonBody({ headers, body }: SandboxResponse): JsonObject | undefined {
  if (!String(headers["content-type"]).startsWith("application/json")) return undefined;
  return JSON.parse(body.toString()) as JsonObject;
}

function withBody(answer: SandboxResponse, body: JsonObject): SandboxResponse {
  return { ...answer, body: JSON.stringify(body) };
}
