import type { IncomingMessage, ServerResponse } from "node:http";
import { parseUrl } from "../../http/address.js";
import type { JsonObject } from "../../http/strict-json.js";
import { findFault, type RoundTrip, type SandboxPart } from "../faults/controller.js";
import type { FaultEndpoint } from "../faults/faults.js";
import type { MovableClock } from "../http/clock.js";
import {
  doubleAuthentication,
  jsonResponse,
  READ_METHODS,
  Refusal,
  readBody,
  readForm,
  requireMethod,
  type SandboxResponse,
} from "../http/requests.js";
import { DEVICE_CODE, JWT_BEARER, MACHINE_AUTH_METHODS, TOKEN_EXCHANGE_GRANT } from "./configuration.js";
import { autoConsent, handleInteraction } from "./interaction.js";
import { pageHeaders } from "./issuer-pages.js";
import type { OAuthSettings } from "./issuer-settings.js";
import { isMachine, openJwt, readIntrospection, SIGNING_ALG, signJwt } from "./keys.js";
import { IDP_PATH, type Machines } from "./machine.js";
import type { ForwardedRequest, PoolServer, PoolServers, RunningServer } from "./pool-server.js";
import { inProcessRequest } from "./pool-server.js";

export interface AuthorizationSettings {
  servers: PoolServers;
  oauth: OAuthSettings;
  clock: MovableClock;
  machines: Machines | undefined;
}

interface EndpointCall {
  endpoint: Endpoint;
  settings: AuthorizationSettings;
  server: PoolServer;
  running: RunningServer;
  roundTrip: RoundTrip;
  request: ForwardedRequest;
}

interface Endpoint {
  methods: readonly string[];
  fault?: FaultEndpoint;
  /** The option that enables the endpoint. */
  option?: "deviceFlow" | "revocation";
  /** Whether pages of the option `allowOrigins` may use it. */
  pages?: true;
  /** Whether the client authenticates in its requests. */
  authenticates?: true;
  /** Changes the JSON of an answer of oidc-provider that is no error. */
  change?(body: JsonObject, call: EndpointCall): JsonObject;
  /** Default: {@link forward}. */
  respond?(call: EndpointCall): Promise<SandboxResponse>;
}

const MAX_BODY = 64 * 1024;
const MAX_OPERATION = 100;
const METADATA = "/.well-known/oauth-authorization-server";
/** The metadata of the identity provider; the service publishes none there. */
const OPENID = "/.well-known/openid-configuration";
/** How the path of a pool's metadata begins where the well-known segment precedes the path (RFC 8414 section 3.1). */
const INSERTED = `${METADATA}/pool_`;
const POST: readonly string[] = ["POST"];
const BOTH: readonly string[] = [...READ_METHODS, ...POST];

/** The answer of oidc-provider, changed as the endpoint says. */
async function forward(call: EndpointCall): Promise<SandboxResponse> {
  const answer = await call.running.answer(call.request);
  const body = readJsonBody(answer);
  const { change } = call.endpoint;
  if (change === undefined || body === undefined || body["error"] !== undefined) return answer;
  const changed = jsonResponse(change(body, call), answer.status);
  return { ...changed, headers: { ...answer.headers, ...changed.headers } };
}

/** An answer that is the same for every client: oidc-provider makes it for the first. */
function forwardOnce(): typeof forward {
  const made = new WeakMap<RunningServer, SandboxResponse>();
  return async (call) => {
    const { running, request, roundTrip } = call;
    const { method, url, body } = request;
    const isPlain = method === "GET" && !url.includes("?") && body.length === 0 && roundTrip.faults.length === 0;
    if (!isPlain) return forward(call);
    const found = made.get(running) ?? (await forward(call));
    if (found.status === 200) made.set(running, found);
    return { ...found, headers: { ...found.headers } };
  };
}

const ENDPOINTS: Readonly<Record<string, Endpoint>> = {
  [OPENID]: { methods: READ_METHODS, fault: "metadata", change: changeIdpMetadata },
  [METADATA]: { methods: READ_METHODS, fault: "metadata", pages: true, change: changeMetadata, respond: forwardOnce() },
  "/authorize": { methods: READ_METHODS, fault: "authorize", respond: respondToBrowser },
  "/authorize/*": { methods: READ_METHODS, fault: "authorize", respond: respondToBrowser },
  "/token": {
    methods: POST,
    fault: "token",
    pages: true,
    authenticates: true,
    change: changeIdToken,
    respond: respondWithToken,
  },
  "/register": { methods: POST, fault: "register", pages: true, change: changeRegistration },
  "/introspect": {
    methods: POST,
    fault: "introspect",
    authenticates: true,
    change: changeIntrospection,
    respond: respondToIntrospection,
  },
  "/revoke": { methods: POST, option: "revocation", pages: true, authenticates: true },
  "/jwks": { methods: READ_METHODS, fault: "jwks", respond: forwardOnce() },
  "/end_session": { methods: READ_METHODS, fault: "end_session", respond: respondToBrowser },
  "/end_session/confirm": { methods: POST, respond: respondToBrowser },
  "/end_session/success": { methods: READ_METHODS, respond: respondToBrowser },
  "/device_authorization": {
    methods: POST,
    fault: "device_authorization",
    option: "deviceFlow",
    authenticates: true,
  },
  "/device": { methods: BOTH, option: "deviceFlow", respond: respondToBrowser },
  "/device/*": { methods: READ_METHODS, option: "deviceFlow", respond: respondToBrowser },
  "/interaction/*": { methods: BOTH, respond: respondToInteraction },
};

/** The authorization servers of all pools, each below `/{pool_id}`. */
export function authorizationPart(settings: AuthorizationSettings): SandboxPart {
  return {
    owns: (path) => path.startsWith("/pool_") || path.startsWith(INSERTED) || path.startsWith(`${IDP_PATH}/`),
    faulty: true,
    allowsPages: (path) => findEndpoint(settings, path)?.pages === true,
    async target(roundTrip) {
      roundTrip.body = await readBody(roundTrip.request, MAX_BODY);
      const fault = findEndpoint(settings, roundTrip.path)?.fault;
      const grantType = fault === "token" ? readForm(roundTrip.body).get("grant_type") : null;
      if (grantType !== null) roundTrip.operation = grantType.slice(0, MAX_OPERATION);
      return { endpoint: fault, operation: roundTrip.operation };
    },
    async handle(roundTrip) {
      const { path, method } = roundTrip;
      const endpoint = findEndpoint(settings, path);
      const { servers } = settings;
      const server = isOfIdp(path) ? servers.identityProvider : servers.find(splitPath(path).poolId);
      if (!endpoint || !server) throw new Refusal(404, "not_found", "there is nothing at this path");
      requireMethod(method, endpoint.methods);
      const { authorization } = roundTrip.request.headers;
      const refused = endpoint.authenticates && doubleAuthentication(readForm(roundTrip.body), authorization);
      if (refused) return refused;
      const running = await server.run();
      const { respond = forward } = endpoint;
      return respond({ endpoint, settings, server, running, roundTrip, request: forwardedRequest(roundTrip) });
    },
  };
}

function findEndpoint({ oauth }: AuthorizationSettings, path: string): Endpoint | undefined {
  const { rest } = splitPath(path);
  if (rest === OPENID || rest === METADATA) {
    if (isOfIdp(path) !== (rest === OPENID)) return undefined;
  }
  if (rest === METADATA && oauth.metadata === (path.startsWith(INSERTED) ? "appended" : "rfc8414")) return undefined;
  const name = Object.hasOwn(ENDPOINTS, rest) ? rest : rest.replace(/\/[^/]+$/, "/*");
  const endpoint = Object.hasOwn(ENDPOINTS, name) ? ENDPOINTS[name] : undefined;
  return endpoint?.option !== undefined && !oauth[endpoint.option] ? undefined : endpoint;
}

function isOfIdp(path: string): boolean {
  return path.startsWith(`${IDP_PATH}/`);
}

function splitPath(path: string): { poolId: string; rest: string } {
  if (path.startsWith(INSERTED)) return { poolId: path.slice(METADATA.length + 1), rest: METADATA };
  const end = path.indexOf("/", 1);
  return end < 0 ? { poolId: path.slice(1), rest: "" } : { poolId: path.slice(1, end), rest: path.slice(end) };
}

function forwardedRequest({ method, path, request, body = Buffer.alloc(0) }: RoundTrip): EndpointCall["request"] {
  // Without the origin: the router answers for the sandbox which pages may read a response.
  const { "transfer-encoding": _, "content-length": __, origin: ___, ...headers } = request.headers;
  const search = /\?.*$/s.exec(request.url ?? "")?.[0] ?? "";
  return { method, url: splitPath(path).rest + search, headers: headers as Record<string, string>, body };
}

async function respondWithToken(call: EndpointCall): Promise<SandboxResponse> {
  // Before any grant: a request without a proof must not use up a code.
  const isIdp = isOfIdp(call.roundTrip.path);
  if (call.settings.oauth.dpop === "required" && !isIdp && call.request.headers["dpop"] === undefined)
    return jsonResponse(
      { error: "invalid_dpop_proof", error_description: "tokens are bound to keys: send a DPoP proof" },
      400,
    );
  if (findFault(call.roundTrip.faults, "refuse-refresh"))
    return jsonResponse({ error: "invalid_grant", error_description: "a fault of the sandbox: refresh refused" }, 400);
  return forward({ ...call, request: namingWorkload(call) });
}

/** The request; a workload that names no client (RFC 7523 section 2.1) is the sandbox's own, since oidc-provider wants one. */
function namingWorkload({ request, settings }: EndpointCall): EndpointCall["request"] {
  const form = readForm(request.body);
  const isNamed =
    form.has("client_id") || form.has("client_assertion") || request.headers["authorization"] !== undefined;
  const { machines } = settings;
  if (machines === undefined || isNamed || form.get("grant_type") !== JWT_BEARER) return request;
  form.set("client_id", machines.workloadClient.clientId);
  return { ...request, body: Buffer.from(form.toString()) };
}

async function respondToBrowser({ settings, server, running, request }: EndpointCall): Promise<SandboxResponse> {
  const { oauth } = settings;
  const respond = await autoConsent(running, new URL(server.issuer), oauth.autoApprove, request);
  const response = oauth.iss || server.path === IDP_PATH ? respond : withoutIssuer(respond, server.issuer);
  const isOwnPage =
    String(response.headers["content-type"]).startsWith("text/html") && !response.body.includes("<script");
  return isOwnPage ? { ...response, headers: { ...response.headers, ...pageHeaders() } } : response;
}

function respondToInteraction({ running, roundTrip, request }: EndpointCall): Promise<SandboxResponse> {
  const form = readForm(roundTrip.body);
  const handler = (message: IncomingMessage, response: ServerResponse) =>
    handleInteraction(running.provider, message, response, form);
  return inProcessRequest(handler, request, roundTrip.path);
}

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
const METADATA_FIELDS = (
  "issuer authorization_endpoint token_endpoint registration_endpoint introspection_endpoint " +
  "end_session_endpoint jwks_uri code_challenge_methods_supported response_types_supported " +
  "subject_types_supported"
).split(" ");

const GRANT_TYPES = [
  "authorization_code",
  "refresh_token",
  TOKEN_EXCHANGE_GRANT,
  DEVICE_CODE,
  "client_credentials",
  JWT_BEARER,
] as const;

/** The metadata of an authorization server: the fields of oidc-provider that the service documents. */
function changeMetadata(metadata: JsonObject, { settings: { oauth } }: EndpointCall): JsonObject {
  const enabled = metadata["grant_types_supported"] as string[];
  return {
    ...pickFields(metadata, METADATA_FIELDS),
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
  };
}

/** The metadata of the identity provider: all of those of oidc-provider, and the tokens that it issues in an exchange. */
function changeIdpMetadata(metadata: JsonObject): JsonObject {
  const identity_chaining_requested_token_types_supported = ["urn:ietf:params:oauth:token-type:id-jag"];
  return { ...metadata, identity_chaining_requested_token_types_supported };
}

/** Gives an id token of the identity provider the times of the sandbox's clock, which oidc-provider does not know. */
function changeIdToken(body: JsonObject, { settings: { machines }, roundTrip }: EndpointCall): JsonObject {
  if (machines === undefined || !isOfIdp(roundTrip.path)) return body;
  const key = machines.key("idp");
  const { claims } = openJwt(String(body["id_token"]), key) ?? {};
  if (claims === undefined) return body;
  const times = machines.times(Number(claims["exp"]) - Number(claims["iat"]));
  return { ...body, id_token: signJwt(key, "JWT", { ...claims, ...times }) };
}

/** A registration with the documented fields. */
function changeRegistration(body: JsonObject, { settings: { clock } }: EndpointCall): JsonObject {
  const client_id_issued_at = Number(body["client_id_issued_at"]) + clock.skew;
  return pickFields({ ...body, client_id_issued_at }, REGISTERED);
}

/** An introspection in the sandbox's time. */
function changeIntrospection(body: JsonObject, { settings: { clock } }: EndpointCall): JsonObject {
  if (body["active"] !== true) return body;
  return { ...body, exp: Number(body["exp"]) + clock.skew, iat: Number(body["iat"]) + clock.skew };
}

/** Also introspects JWTs, which oidc-provider does not. */
async function respondToIntrospection(call: EndpointCall): Promise<SandboxResponse> {
  const answer = await forward(call);
  if (readJsonBody(answer)?.["error"] !== "unsupported_token_type") return answer;
  return jsonResponse(await introspectJwt(call.server, readForm(call.roundTrip.body)));
}

async function introspectJwt(server: PoolServer, form: URLSearchParams): Promise<JsonObject> {
  const found = await server.inspect(form.get("token") ?? "");
  const { store } = await server.run();
  if (!found || !(isMachine(found) || store.hasGrant(found.grantId))) return { active: false };
  // A public client does not authenticate: it may introspect its own tokens only.
  const isPublic = form.has("client_id") && !form.has("client_secret");
  return isPublic && form.get("client_id") !== found.claims.client_id ? { active: false } : readIntrospection(found);
}

function withoutIssuer(answer: SandboxResponse, issuer: string): SandboxResponse {
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
