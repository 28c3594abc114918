import { AgentAuthError, errorMessage, isAgentAuthError } from "../../errors.js";
import { parseUrl } from "../../http/address.js";
import { checkAddress, type PeerPolicy } from "../../http/address-class.js";
import { type BufferedResponse, strictObject } from "../../http/buffered-response.js";
import { followSignal, settledWithin } from "../../http/deadline.js";
import { serverMetadataAddresses } from "../../http/oauth-syntax.js";
import { refusalError } from "../../http/refuse.js";
import { deleteEmpty, deleteNulls, isJsonObject } from "../../http/strict-json.js";
import { quote } from "../../redact.js";
import { type OAuthHttp, serverFailure, type TraceEntry } from "../http/http.js";
import { type IssuerMetadata, isSameIssuer, type ServerMetadata } from "../model/metadata.js";
import { parseScope } from "../model/scope.js";

/** Metadata that assert an issuer and are not at its addresses. */
export interface ForeignMetadata {
  /** The issuer at whose addresses they are. */
  at: string;
  /** The origin of all endpoints; default: that of the token endpoint. */
  origin: string | undefined;
}

export interface ServerDiscovery {
  http: Pick<OAuthHttp, "document">;
  issuer: string;
  /** What the MCP server names, if that is another issuer. */
  namedIssuer?: string | undefined;
  /** Set if the metadata are those of another issuer, which name this one. */
  foreign?: ForeignMetadata | undefined;
  policy: PeerPolicy & { missingPkceMetadata: boolean; sameOriginEndpoints: boolean };
  /** Whether clients present a certificate; selects the server's mTLS endpoint aliases (RFC 8705 section 5). */
  mutualTls?: boolean | undefined;
  trace: (entry: TraceEntry) => void;
  signal: AbortSignal | undefined;
}

export type MetadataDocument = Record<string, unknown>;

/** Members whose emptiness says something: an issuer without PKCE methods, a server that takes tokens in no way (RFC 9728). */
const NEEDED = [
  ...["issuer", "resource", "authorization_endpoint", "token_endpoint"],
  ...["code_challenge_methods_supported", "bearer_methods_supported"],
];

/** Reads a document without the members that are null or empty. @throws as {@link strictObject} */
export function readDocument(reply: BufferedResponse): MetadataDocument {
  return deleteEmpty(deleteNulls(strictObject(reply)), NEEDED);
}

function createReader(document: MetadataDocument, url: string, { policy }: ServerDiscovery) {
  const complain = (field: string, rule: string) =>
    refusalError("bad_server_metadata", { field, value: document[field], from: url, rule });
  return {
    complain,
    address: (field: string, from: MetadataDocument = document, name = field) =>
      from[field] === undefined ? undefined : checkAddress(from[field], name, url, policy),
    list(field: string): readonly string[] | undefined {
      const value = document[field];
      if (value === undefined) return undefined;
      if (!Array.isArray(value) || value.some((entry) => typeof entry !== "string"))
        throw complain(field, "must be a list of strings");
      return value as string[];
    },
  };
}

/** The rules for a document that names the issuer of a search. @returns what is used of it */
export type CheckMetadata<T extends IssuerMetadata> = (
  document: MetadataDocument,
  url: string,
  discovery: ServerDiscovery,
) => T;

/** For a login. */
export const checkServerMetadata: CheckMetadata<ServerMetadata> = (document, url, discovery) => {
  const metadata = readIssuerMetadata(document, url, discovery);
  const { complain, address, list } = createReader(document, url, discovery);
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
  checkPkce(document, url, list("code_challenge_methods_supported"), discovery);
  const authorizationEndpoint = address("authorization_endpoint");
  if (authorizationEndpoint === undefined)
    throw complain("authorization_endpoint", "is required for a login (RFC 8414 section 2)");
  const { issuer, ...rest } = metadata;
  const whole = { issuer, authorizationEndpoint, ...rest };
  checkOrigins(whole, discovery);
  return whole;
};

/** @returns the issuer as the document has it, which may differ by a slash after the host */
function checkIssuerName({ issuer: value }: MetadataDocument, url: string, { issuer }: ServerDiscovery): string {
  if (typeof value === "string" && isSameIssuer(value, issuer)) return value;
  const rule = `must be exactly ${quote(issuer)}${describeDifference(value, issuer)} (RFC 8414 section 3.3)`;
  const remedy = isPlainAddress(value) ? ({ action: "configure", option: "issuer", value } as const) : undefined;
  throw refusalError("issuer_mismatch", { field: "issuer", value, from: url, url, rule, remedy });
}

/** Whether a value can be the option `issuer`. */
function isPlainAddress(value: unknown): value is string {
  const { protocol = "", username, password } = parseUrl(value) ?? {};
  return /^https?:$/.test(protocol) && username === "" && password === "" && !/[?#]/.test(String(value));
}

function checkPkce(
  document: MetadataDocument,
  url: string,
  methods: readonly string[] | undefined,
  { policy }: ServerDiscovery,
): void {
  if ((methods ?? (policy.missingPkceMetadata ? ["S256"] : [])).includes("S256")) return;
  throw refusalError("pkce_unsupported", {
    field: "code_challenge_methods_supported",
    value: document["code_challenge_methods_supported"],
    from: url,
    rule: 'must include "S256", or the authorization code could be intercepted (MCP authorization, Authorization Code Protection)',
    ...(methods === undefined && { override: "allowMissingPkceMetadata" }),
  });
}

/** For a client that uses the token endpoint only: fields that only a login needs are optional. */
export const checkIssuerMetadata: CheckMetadata<IssuerMetadata> = (document, url, discovery) => {
  const metadata = readIssuerMetadata(document, url, discovery);
  checkOrigins(metadata, discovery);
  return metadata;
};

/** Checks what both logins and machine grants need, except the origins of the endpoints. */
function readIssuerMetadata(document: MetadataDocument, url: string, discovery: ServerDiscovery): IssuerMetadata {
  const issuer = checkIssuerName(document, url, discovery);
  const { complain, address, list } = createReader(document, url, discovery);
  const aliases = discovery.mutualTls ? document["mtls_endpoint_aliases"] : undefined;
  if (aliases !== undefined && !isJsonObject(aliases))
    throw complain("mtls_endpoint_aliases", "must be an object (RFC 8705 section 5)");
  const endpoint = (field: string) =>
    (aliases && address(field, aliases, `mtls_endpoint_aliases.${field}`)) ?? address(field);
  const tokenEndpoint = endpoint("token_endpoint");
  if (tokenEndpoint === undefined) throw complain("token_endpoint", "is required to get a token (RFC 8414 section 2)");
  // A server may list more scopes than `parseScope` accepts, and no other one matters here.
  const scopes = list("scopes_supported")?.filter((scope) => scope === "offline_access");
  return {
    issuer,
    namedIssuer: discovery.namedIssuer,
    tokenEndpoint,
    registrationEndpoint: endpoint("registration_endpoint"),
    introspectionEndpoint: endpoint("introspection_endpoint"),
    revocationEndpoint: endpoint("revocation_endpoint"),
    endSessionEndpoint: address("end_session_endpoint"),
    deviceAuthorizationEndpoint: endpoint("device_authorization_endpoint"),
    jwksUri: address("jwks_uri"),
    scopesSupported: scopes && parseScope(scopes, "scopes_supported", url),
    grantTypesSupported: list("grant_types_supported"),
    grantProfilesSupported: list("authorization_grant_profiles_supported"),
    tokenEndpointAuthMethods: list("token_endpoint_auth_methods_supported"),
    tokenEndpointSigningAlgorithms: list("token_endpoint_auth_signing_alg_values_supported"),
    dpopSigningAlgorithms: list("dpop_signing_alg_values_supported"),
    promisesIss: document["authorization_response_iss_parameter_supported"] === true,
    takesClientIdDocuments: document["client_id_metadata_document_supported"] === true,
    url,
  };
}

/**
 * Requires all endpoints at one origin where RFC 8414 allows others: that of the issuer (`sameOriginEndpoints`), since an
 * issuer that names the login page of another one gets its codes (RFC 9700 section 4.4); and one for all of them in
 * metadata that are not the issuer's own, which would get the codes and the tokens of the issuer that they assert to be.
 *
 * @throws `AgentAuthError` `bad_server_metadata`
 */
function checkOrigins(metadata: IssuerMetadata | ServerMetadata, { policy, foreign, issuer }: ServerDiscovery): void {
  if (policy.sameOriginEndpoints) {
    const { origin } = new URL(metadata.issuer);
    checkOneOrigin(metadata, origin, "the origin of its issuer, where sameOriginEndpoints is set");
  }
  if (foreign === undefined) return;
  const whose = `since these are not the metadata that ${quote(issuer)} publishes itself`;
  if (foreign.origin !== undefined) checkOneOrigin(metadata, foreign.origin, `the origin of the issuer, ${whose}`);
  checkOneOrigin(metadata, new URL(metadata.tokenEndpoint).origin, `the origin of its token_endpoint, ${whose}`);
}

function checkOneOrigin(metadata: IssuerMetadata | ServerMetadata, origin: string, why: string): void {
  const endpoints = {
    authorization_endpoint: "authorizationEndpoint" in metadata ? metadata.authorizationEndpoint : undefined,
    token_endpoint: metadata.tokenEndpoint,
    registration_endpoint: metadata.registrationEndpoint,
    device_authorization_endpoint: metadata.deviceAuthorizationEndpoint,
    introspection_endpoint: metadata.introspectionEndpoint,
    revocation_endpoint: metadata.revocationEndpoint,
    end_session_endpoint: metadata.endSessionEndpoint,
  };
  for (const [field, value] of Object.entries(endpoints)) {
    if (value === undefined || new URL(value).origin === origin) continue;
    const rule = `must be at ${origin}, ${why}`;
    throw refusalError("bad_server_metadata", { field, value, from: metadata.url, rule });
  }
}

/** Describes a difference that is easy to overlook. */
function describeDifference(found: unknown, wanted: string): string {
  if (typeof found !== "string") return "";
  if (`${found}/` === wanted || found === `${wanted}/`) return "; they differ by a slash at the end";
  if (found.toLowerCase() === wanted.toLowerCase()) return "; they differ in upper and lower case";
  if (parseUrl(found)?.href === new URL(wanted).href) return "; they differ in how the same address is written";
  return "";
}

/** Milliseconds that a usable document waits for one that it takes precedence over. */
const SPARE_MS = 250;
const METADATA_STEP = { step: "server metadata", method: "GET" } as const;

/**
 * Reads the metadata of an issuer. The first document in the order of {@link serverMetadataAddresses} that names this issuer
 * and has what is needed is used. Documents are never merged.
 *
 * @throws `AgentAuthError` `issuer_mismatch`, `bad_server_metadata`, `pkce_unsupported`, `no_server_metadata`, or a
 * network error if no address has a usable document and one did not answer
 */
export async function findMetadata<T extends IssuerMetadata>(
  discovery: ServerDiscovery,
  check: CheckMetadata<T>,
): Promise<T> {
  const failures: unknown[] = [];
  for (const group of serverMetadataAddresses(discovery.foreign?.at ?? discovery.issuer)) {
    const call = followSignal(discovery.signal);
    const reads = group.map((url) => readServerDocument(url, { ...discovery, signal: call.signal }, check));
    const reading = Promise.allSettled(reads);
    // What another address returns is then for the trace alone: one that hangs delays no login.
    if (await reads[0]?.catch(() => undefined)) {
      await settledWithin(reading, SPARE_MS);
      call.abort(undefined);
    }
    const results = await reading;
    call.release();
    for (const [index, result] of results.entries()) {
      if (result.status === "rejected") failures.push(result.reason);
      else if (result.value) {
        const { metadata, ...document } = result.value;
        const named = discovery.foreign ? "the expected issuer in place of this one" : "the issuer";
        discovery.trace({ ...METADATA_STEP, ...document, used: true, why: `it names ${named}` });
        for (const spare of results.slice(index + 1)) {
          if (spare.status !== "fulfilled" || !spare.value) continue;
          const { url, status } = spare.value;
          const why = "another document takes precedence";
          discovery.trace({ ...METADATA_STEP, url, status, used: false, why });
        }
        return metadata;
      }
    }
  }
  throw chooseMostInformative(failures, discovery.foreign?.at ?? discovery.issuer);
}

/**
 * The most informative failure: no response leaves the result open, and a broken rule says more than a missing
 * document.
 */
function chooseMostInformative(failures: readonly unknown[], issuer: string): unknown {
  const errors = failures.filter(isAgentAuthError);
  const other = failures.find((failure) => !isAgentAuthError(failure));
  const message = `the authorization server ${quote(issuer)} publishes no metadata (RFC 8414)`;
  const hint = "discover() reports every requested address";
  const remedy = { action: "inspect", subject: "discovery" } as const;
  return (
    other ??
    errors.find((error) => error.class === "aborted") ??
    errors.find((error) => error.class === "unavailable") ??
    errors.find((error) => error.code !== "bad_content_type") ??
    errors[0] ??
    new AgentAuthError("no_server_metadata", message, { class: "refused", hint, remedy })
  );
}

interface UsableDocument<T> {
  url: string;
  status: number;
  metadata: T;
}

async function readServerDocument<T extends IssuerMetadata>(
  url: string,
  discovery: ServerDiscovery,
  check: CheckMetadata<T>,
): Promise<UsableDocument<T> | undefined> {
  const { http, trace, signal } = discovery;
  const entry = { ...METADATA_STEP, url };
  let status: number | undefined;
  try {
    const reply = await http.document(url, signal);
    status = reply.status;
    if (status >= 500 || status === 429) throw serverFailure(url, status);
    if (!reply.response.ok) {
      trace({ ...entry, status, used: false, why: "no document here" });
      return undefined;
    }
    return { url, status, metadata: check(readDocument(reply), url, discovery) };
  } catch (error) {
    trace({ ...entry, status, used: false, why: errorMessage(error) });
    throw error;
  }
}
