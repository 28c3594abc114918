import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import { type AddressPolicy, checkAddress } from "./address.js";
import { type OAuthHttp, serverFailure, strictObject, type TraceEntry } from "./http.js";
import { refused } from "./refuse.js";
import { parseScope } from "./scope.js";

/** What an authorization server says of itself (RFC 8414 section 2), as far as it is used, every address checked. */
export interface ServerMetadata {
  issuer: string;
  authorizationEndpoint: string;
  tokenEndpoint: string;
  registrationEndpoint: string | undefined;
  introspectionEndpoint: string | undefined;
  revocationEndpoint: string | undefined;
  endSessionEndpoint: string | undefined;
  deviceAuthorizationEndpoint: string | undefined;
  jwksUri: string | undefined;
  scopesSupported: readonly string[] | undefined;
  grantTypesSupported: readonly string[] | undefined;
  tokenEndpointAuthMethods: readonly string[] | undefined;
  /** Whether it promises `iss` in its authorization responses (RFC 9207). */
  promisesIss: boolean;
  /** Whether client ids may be addresses of client metadata documents. */
  takesClientIdDocuments: boolean;
  /** Where the document was found. */
  url: string;
}

/** What finding the server metadata depends on. */
export interface ServerDiscovery {
  http: OAuthHttp;
  issuer: string;
  policy: AddressPolicy & { missingPkceMetadata: boolean };
  trace: (entry: TraceEntry) => void;
  signal: AbortSignal | undefined;
}

/**
 * Where an issuer's metadata may lie, in the order of trust: the service's own form and that of RFC 8414 (the same
 * address where the issuer has no path), then the two of OpenID Connect. Addresses in one group are asked at once.
 */
function metadataAddresses(issuer: string): string[][] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/+$/, "");
  const oauth = [
    `${origin}${path}/.well-known/oauth-authorization-server`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ];
  const openid = [
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ];
  return [[...new Set(oauth)], [...new Set(openid)]];
}

/**
 * Reads the metadata of an issuer. The first document in the order of {@link metadataAddresses} that is of this very
 * issuer and holds what a login needs is used, alone: documents are never merged.
 *
 * @throws `AgentAuthError` `issuer_mismatch`, `bad_server_metadata`, `pkce_unsupported`, `no_server_metadata`, or a
 * network error where no address gave a usable document and one did not answer
 */
export async function findServerMetadata(discovery: ServerDiscovery): Promise<ServerMetadata> {
  const failures: unknown[] = [];
  for (const group of metadataAddresses(discovery.issuer)) {
    const answers = await Promise.allSettled(group.map((url) => readCandidate(url, discovery)));
    for (const [index, answer] of answers.entries()) {
      if (answer.status === "rejected") failures.push(answer.reason);
      else if (answer.value) {
        const { url, status, metadata } = answer.value;
        discovery.trace({
          step: "server metadata",
          method: "GET",
          url,
          status,
          used: true,
          why: "it is the issuer's own",
        });
        for (const spare of answers.slice(index + 1)) {
          if (spare.status !== "fulfilled" || !spare.value) continue;
          const why = "another document comes before it";
          discovery.trace({
            step: "server metadata",
            method: "GET",
            url: spare.value.url,
            status: spare.value.status,
            used: false,
            why,
          });
        }
        return metadata;
      }
    }
  }
  throw worst(failures, discovery.issuer);
}

/** A refusal tells more than an address where nothing is, and a silent address leaves the matter open. */
function worst(failures: readonly unknown[], issuer: string): unknown {
  const errors = failures.filter(isAgentAuthError);
  const other = failures.find((failure) => !isAgentAuthError(failure));
  return (
    other ??
    errors.find((error) => error.class === "aborted") ??
    errors.find((error) => error.class === "unavailable") ??
    errors.find((error) => error.code !== "bad_content_type") ??
    errors[0] ??
    new AgentAuthError(
      "no_server_metadata",
      `the authorization server ${quote(issuer)} publishes no metadata (RFC 8414)`,
      {
        class: "refused",
        hint: "agentauth discover shows every address that was asked",
      },
    )
  );
}

interface Candidate {
  url: string;
  status: number;
  metadata: ServerMetadata;
}

async function readCandidate(url: string, discovery: ServerDiscovery): Promise<Candidate | undefined> {
  const { http, trace, signal } = discovery;
  const entry = { step: "server metadata", method: "GET", url } as const;
  let status: number | undefined;
  try {
    const reply = await http.document(url, signal);
    status = reply.status;
    if (status >= 500 || status === 429) throw serverFailure(url, status);
    if (!reply.response.ok) {
      trace({ ...entry, status, used: false, why: "there is no document here" });
      return undefined;
    }
    return { url, status, metadata: checkMetadata(strictObject(reply), url, discovery) };
  } catch (error) {
    trace({ ...entry, status, used: false, why: error instanceof Error ? error.message : String(error) });
    throw error;
  }
}

function checkMetadata(
  document: Record<string, unknown>,
  url: string,
  { issuer, policy }: ServerDiscovery,
): ServerMetadata {
  const complain = (field: string, rule: string, override?: string) =>
    refused("bad_server_metadata", { field, value: document[field], from: url, rule, override });
  if (document["issuer"] !== issuer) {
    throw refused("issuer_mismatch", {
      field: "issuer",
      value: document["issuer"],
      from: url,
      rule: `must be exactly ${quote(issuer)}${differenceOf(document["issuer"], issuer)} (RFC 8414 section 3.3)`,
    });
  }
  const address = (field: string) =>
    document[field] === undefined ? undefined : checkAddress(document[field], field, url, policy);
  const list = (field: string): readonly string[] | undefined => {
    const value = document[field];
    if (value === undefined) return undefined;
    if (!Array.isArray(value) || value.some((entry) => typeof entry !== "string"))
      throw complain(field, "must be a list of strings");
    return value as string[];
  };
  const responseTypes = list("response_types_supported");
  if (responseTypes && !responseTypes.includes("code"))
    throw complain("response_types_supported", 'must include "code"');
  const grants = list("grant_types_supported");
  if (
    grants &&
    !grants.includes("authorization_code") &&
    !grants.some((grant) => grant.startsWith("urn:") || grant === "client_credentials")
  ) {
    throw complain("grant_types_supported", 'must include "authorization_code"');
  }
  if (!(list("code_challenge_methods_supported") ?? (policy.missingPkceMetadata ? ["S256"] : [])).includes("S256")) {
    throw refused("pkce_unsupported", {
      field: "code_challenge_methods_supported",
      value: document["code_challenge_methods_supported"],
      from: url,
      rule: 'must include "S256", or the login could be stolen on its way (MCP authorization, Authorization Code Protection)',
      ...(document["code_challenge_methods_supported"] === undefined && { override: "--allow-missing-pkce-metadata" }),
    });
  }
  const authorizationEndpoint = address("authorization_endpoint");
  const tokenEndpoint = address("token_endpoint");
  if (authorizationEndpoint === undefined)
    throw complain("authorization_endpoint", "is needed to sign in (RFC 8414 section 2)");
  if (tokenEndpoint === undefined) throw complain("token_endpoint", "is needed to get a token (RFC 8414 section 2)");
  checkQuery(authorizationEndpoint, url);
  const scopes = document["scopes_supported"];
  return {
    issuer,
    authorizationEndpoint,
    tokenEndpoint,
    registrationEndpoint: address("registration_endpoint"),
    introspectionEndpoint: address("introspection_endpoint"),
    revocationEndpoint: address("revocation_endpoint"),
    endSessionEndpoint: address("end_session_endpoint"),
    deviceAuthorizationEndpoint: address("device_authorization_endpoint"),
    jwksUri: address("jwks_uri"),
    scopesSupported:
      scopes === undefined ? undefined : list("scopes_supported")?.length ? parseLenient(scopes, url) : [],
    grantTypesSupported: grants,
    tokenEndpointAuthMethods: list("token_endpoint_auth_methods_supported"),
    promisesIss: document["authorization_response_iss_parameter_supported"] === true,
    takesClientIdDocuments: document["client_id_metadata_document_supported"] === true,
    url,
  };
}

/** A server may list more scopes than anybody asks for; only `offline_access` among them matters here. */
function parseLenient(scopes: unknown, url: string): readonly string[] {
  return parseScope(
    (scopes as unknown[]).filter((scope) => scope === "offline_access"),
    "scopes_supported",
    url,
  );
}

const OUR_PARAMETERS = [
  "response_type",
  "client_id",
  "redirect_uri",
  "scope",
  "state",
  "code_challenge",
  "code_challenge_method",
  "resource",
];

/** A parameter of ours that is already in the endpoint's query would be there twice, and which one counts is anybody's guess. */
function checkQuery(endpoint: string, url: string): void {
  const taken = OUR_PARAMETERS.find((name) => new URL(endpoint).searchParams.has(name));
  if (taken === undefined) return;
  throw refused("bad_server_metadata", {
    field: "authorization_endpoint",
    value: endpoint,
    from: url,
    rule: `must not bring a ${taken} parameter of its own (RFC 6749 section 3.1)`,
  });
}

/** Names the small differences that eyes pass over. */
function differenceOf(found: unknown, wanted: string): string {
  if (typeof found !== "string") return "";
  if (`${found}/` === wanted || found === `${wanted}/`) return "; they differ by a slash at the end";
  if (found.toLowerCase() === wanted.toLowerCase()) return "; they differ in upper and lower case";
  if (URL.canParse(found) && new URL(found).href === new URL(wanted).href)
    return "; they differ in how the same address is written";
  return "";
}
