import { findFault } from "../faults/controller.js";
import type { FaultEndpoint } from "../faults/faults.js";
import type { RoundTrip, SandboxPart } from "../faults/round-trip.js";
import type { MovableClock } from "../http/clock.js";
import { doubleAuthentication, readBody, readForm } from "../http/requests.js";
import { jsonResponse, READ_METHODS, Refusal, requireMethod, type SandboxResponse } from "../http/sandbox-response.js";
import { JWT_BEARER } from "./configuration.js";
import {
  idpMetadataAnswer,
  idTokenAnswer,
  introspectionAnswer,
  metadataAnswer,
  registrationAnswer,
  withoutIssuer,
} from "./documented-responses.js";
import { type ForwardedRequest, inProcessRequest } from "./in-process-request.js";
import { autoConsent, handleInteraction } from "./interaction.js";
import { pageHeaders } from "./issuer-pages.js";
import type { OAuthSettings } from "./issuer-settings.js";
import { IDP_PATH, type Machines } from "./machine.js";
import type { PoolServer, PoolServers, RunningServer } from "./pool-server.js";

export interface AuthorizationSettings {
  servers: PoolServers;
  oauth: OAuthSettings;
  clock: MovableClock;
  machines: Machines | undefined;
}

/** One request to the authorization server of a pool. */
interface EndpointCall {
  settings: AuthorizationSettings;
  server: PoolServer;
  running: RunningServer;
  roundTrip: RoundTrip;
  request: Omit<ForwardedRequest, "originalUrl">;
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
  answer(call: EndpointCall): Promise<SandboxResponse>;
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

const forwardToProvider = ({ running, request }: EndpointCall) => running.answer(request);

/** An answer that is the same for every client: oidc-provider makes it for the first. */
function answerOnce(answer: Endpoint["answer"]): Endpoint["answer"] {
  const made = new WeakMap<RunningServer, SandboxResponse>();
  return async (call) => {
    const { running, request, roundTrip } = call;
    const { method, url, body } = request;
    const isPlain = method === "GET" && !url.includes("?") && body.length === 0 && roundTrip.faults.length === 0;
    if (!isPlain) return answer(call);
    const found = made.get(running) ?? (await answer(call));
    if (found.status === 200) made.set(running, found);
    return { ...found, headers: { ...found.headers } };
  };
}

const ENDPOINTS: Readonly<Record<string, Endpoint>> = {
  [OPENID]: {
    methods: READ_METHODS,
    fault: "metadata",
    answer: async (call) => idpMetadataAnswer(await forwardToProvider(call)),
  },
  [METADATA]: {
    methods: READ_METHODS,
    fault: "metadata",
    pages: true,
    answer: answerOnce(async (call) => metadataAnswer(await forwardToProvider(call), call.settings.oauth)),
  },
  "/authorize": { methods: READ_METHODS, fault: "authorize", answer: answerBrowser },
  "/authorize/*": { methods: READ_METHODS, fault: "authorize", answer: answerBrowser },
  "/token": { methods: POST, fault: "token", pages: true, authenticates: true, answer: answerToken },
  "/register": {
    methods: POST,
    fault: "register",
    pages: true,
    answer: async (call) => registrationAnswer(await forwardToProvider(call), call.settings.clock.skew),
  },
  "/introspect": {
    methods: POST,
    fault: "introspect",
    authenticates: true,
    answer: async (call) =>
      introspectionAnswer(
        await forwardToProvider(call),
        call.server,
        readForm(call.roundTrip.body),
        call.settings.clock.skew,
      ),
  },
  "/revoke": { methods: POST, option: "revocation", pages: true, authenticates: true, answer: forwardToProvider },
  "/jwks": { methods: READ_METHODS, fault: "jwks", answer: answerOnce(forwardToProvider) },
  "/end_session": { methods: READ_METHODS, fault: "end_session", answer: answerBrowser },
  "/end_session/confirm": { methods: POST, answer: answerBrowser },
  "/end_session/success": { methods: READ_METHODS, answer: answerBrowser },
  "/device_authorization": {
    methods: POST,
    fault: "device_authorization",
    option: "deviceFlow",
    authenticates: true,
    answer: forwardToProvider,
  },
  "/device": { methods: BOTH, option: "deviceFlow", answer: answerBrowser },
  "/device/*": { methods: READ_METHODS, option: "deviceFlow", answer: answerBrowser },
  "/interaction/*": { methods: BOTH, answer: answerInteraction },
};

/** The authorization servers of all pools, each below `/{pool_id}`. */
export function authorizationPart(settings: AuthorizationSettings): SandboxPart {
  return {
    owns: (path) => path.startsWith("/pool_") || path.startsWith(INSERTED) || path.startsWith(`${IDP_PATH}/`),
    faulty: true,
    allowsPages: (path) => endpointOf(settings, path)?.pages === true,
    async target(roundTrip) {
      roundTrip.body = await readBody(roundTrip.request, MAX_BODY);
      const fault = endpointOf(settings, roundTrip.path)?.fault;
      const grantType = fault === "token" ? readForm(roundTrip.body).get("grant_type") : null;
      if (grantType !== null) roundTrip.operation = grantType.slice(0, MAX_OPERATION);
      return { endpoint: fault, operation: roundTrip.operation };
    },
    async handle(roundTrip) {
      const { path, method } = roundTrip;
      const endpoint = endpointOf(settings, path);
      const { servers } = settings;
      const server = isOfIdp(path) ? servers.identityProvider : servers.find(splitPath(path).poolId);
      if (!endpoint || !server) throw new Refusal(404, "not_found", "there is nothing at this path");
      requireMethod(method, endpoint.methods);
      const { authorization } = roundTrip.request.headers;
      const refused = endpoint.authenticates && doubleAuthentication(readForm(roundTrip.body), authorization);
      if (refused) return refused;
      const running = await server.run();
      return endpoint.answer({ settings, server, running, roundTrip, request: forwardedRequest(roundTrip) });
    },
  };
}

function endpointOf({ oauth }: AuthorizationSettings, path: string): Endpoint | undefined {
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

async function answerToken(call: EndpointCall): Promise<SandboxResponse> {
  // Before any grant: a request without a proof must not use up a code.
  const isIdp = isOfIdp(call.roundTrip.path);
  if (call.settings.oauth.dpop === "required" && !isIdp && call.request.headers["dpop"] === undefined) {
    return jsonResponse(
      { error: "invalid_dpop_proof", error_description: "tokens are bound to keys: send a DPoP proof" },
      400,
    );
  }
  if (findFault(call.roundTrip.faults, "refuse-refresh")) {
    return jsonResponse({ error: "invalid_grant", error_description: "a fault of the sandbox: refresh refused" }, 400);
  }
  const forwarded = await forwardToProvider({ ...call, request: namingWorkload(call) });
  const { machines } = call.settings;
  return isIdp && machines ? idTokenAnswer(forwarded, machines) : forwarded;
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

async function answerBrowser({ settings, server, running, request }: EndpointCall): Promise<SandboxResponse> {
  const { oauth } = settings;
  const answer = await autoConsent(running, new URL(server.issuer), oauth.autoApprove, request);
  const response = oauth.iss || server.path === IDP_PATH ? answer : withoutIssuer(answer, server.issuer);
  const isOwnPage =
    String(response.headers["content-type"]).startsWith("text/html") && !response.body.includes("<script");
  return isOwnPage ? { ...response, headers: { ...response.headers, ...pageHeaders() } } : response;
}

function answerInteraction({ running, roundTrip, request }: EndpointCall): Promise<SandboxResponse> {
  const form = readForm(roundTrip.body);
  return inProcessRequest((message, response) => handleInteraction(running.provider, message, response, form), {
    ...request,
    originalUrl: roundTrip.path,
  });
}
