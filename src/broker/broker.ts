import { type AgentAuthError, isAgentAuthError } from "../errors.js";
import { isPathWithin } from "../http/address.js";
import { discardBody, isEventStream } from "../http/buffered-response.js";
import { HttpRequest, HttpResponse } from "../http/http-message.js";
import { isSessionUnknown } from "../http/lost-session.js";
import { checkOptionNames, type OptionNames } from "../http/public-class.js";
import type { RpcMessage } from "../mcp/json-rpc.js";
import { ParamHeaders } from "../mcp/param-headers.js";
import type { ToolPolicy } from "../mcp/tool-policy.js";
import type { AgentClient } from "../oauth/agent.js";
import { type AgentRequestInit, saysTokenRejected } from "../oauth/grant/token-fetch.js";
import { bearerChallenge } from "../oauth/model/challenge.js";
import { createEvents, elapsedMs } from "../telemetry/emit.js";
import type { AgentEvent, EventFields } from "../telemetry/events.js";
import type { BrokerGrant, BrokerPolicy } from "./policy.js";
import { addressAt, checkPolicy, findRefusal, isPlain, readTarget, requestHeaders, responseHeaders } from "./policy.js";
import { type BrokerRefusal, type RefusalContent, refusalResponse } from "./refusal.js";
import { TokenMask } from "./token-mask.js";
import { filterEvents, isJudged, judgeBody, judgedHeaders, toolPolicy, withoutHidden } from "./tools.js";

/** One request that a broker has answered. Nothing in it is secret: no token, no query, no body. */
export type BrokerEvent = AgentEvent<"broker">;

/** What a broker reports to its program. */
export interface BrokerOptions {
  /** The agent client for a grant, where not all use the same one, such as for another account. */
  readonly agentFor?: ((name: string, grant: BrokerGrant) => AgentClient | Promise<AgentClient>) | undefined;
  /** Called for each request. What it throws is ignored. */
  readonly onRequest?: ((event: BrokerEvent) => void) | undefined;
  /** Called when a user has to log in before requests for a name can pass. */
  readonly onLoginRequired?:
    | ((name: string, grant: BrokerGrant, error: AgentAuthError | undefined) => void)
    | undefined;
}

/** Passes requests on to the servers of a policy, with their tokens. */
export interface Broker {
  /**
   * Answers `http://<any host>/<name>/…` for a client. A body that is not a stream is sent again if its token is
   * rejected.
   */
  fetch(request: Request, client: string): Promise<Response>;
  /**
   * Answers and reports a request that names nothing: `malformed` with the status 400, `unknown` with 404. For a listener
   * of your own, which gets requests that `fetch` cannot take.
   */
  refuse(why: "malformed" | "unknown", method: string, client: string): Response;
  /** Answers for another policy from now on; requests under way end by the old one. @throws `AgentAuthError` `usage` */
  reload(policy: BrokerPolicy): void;
  /** The policy in force. */
  readonly policy: BrokerPolicy;
}

const OPTIONS: OptionNames<BrokerOptions> = { agentFor: true, onRequest: true, onLoginRequired: true };

/** What servers log for a client that has left; nothing is sent. */
const CANCELLED = 499;
/** The messages that are looked through. */
const MAX_JUDGED = 4 * 1024 * 1024;
const MAX_RESPONSE = 16 * 1024 * 1024;
/** Characters of the name of a tool in an event. */
const MAX_NAME = 200;

interface Route {
  readonly grant: BrokerGrant;
  readonly agent: Promise<AgentClient>;
  readonly tools: ToolPolicy | undefined;
  readonly marks: ParamHeaders;
  /** Headers that are passed on too. */
  readonly headers: ReadonlySet<string>;
  /** Unix milliseconds. */
  readonly endsAt: number;
  /** When the requests of the last minute came, by client. */
  readonly recent: Map<string, number[]>;
}

interface Routes {
  readonly byName: ReadonlyMap<string, Route>;
  /** The names of each client; undefined for all. */
  readonly byClient: ReadonlyMap<string, ReadonlySet<string> | undefined>;
}

/**
 * Makes a broker: programs without a token send their requests to it, and it sends them on with the token of a login.
 * None of its responses contains a token, or reveals which names other clients have.
 *
 * @throws `AgentAuthError` `usage` for a policy that is wrong
 *
 * @example const broker = createBroker(createAgentClient(), { grants: { crm: { server } }, clients: { job: { listen:
 * "unix:/run/a.sock" } } }); const response = await broker.fetch(new Request("http://broker/crm/"), "job");
 */
export function createBroker(agent: AgentClient, policy: BrokerPolicy, options: BrokerOptions = {}): Broker {
  checkOptionNames(options, OPTIONS, "createBroker");
  const { onRequest } = options;
  const events = createEvents(onRequest && ((event) => event.type === "broker" && onRequest(event)));
  const report = (fields: EventFields<"broker">) => events.emit("broker", () => ({ type: "broker", ...fields }));
  const mask = new TokenMask();
  let current = policy;
  let routes = buildRoutes(agent, checkPolicy(policy, "the policy"), options);
  return {
    get policy() {
      return current;
    },
    reload(next) {
      const before = routes.byName;
      routes = buildRoutes(agent, checkPolicy(next, "the policy"), options, before);
      current = next;
      // Answers to requests from before may still arrive.
      mask.keep(new Set([...before.keys(), ...routes.byName.keys()]));
    },
    refuse(why, method, client) {
      const status = why === "unknown" ? 404 : 400;
      report({ client, method, status, durationMs: 0, name: undefined, tool: undefined, refused: why });
      return refusalResponse(why, status);
    },
    async fetch(request, client) {
      const started = performance.now();
      const log: RequestLog = { name: undefined, tool: undefined, refused: undefined };
      const emit = (status: number) =>
        report({ client, method: request.method, status, durationMs: elapsedMs(started), ...log });
      let response: Response;
      try {
        response = await respondTo({ request, client, routes, mask, options, log });
      } catch (error) {
        log.refused = "cancelled";
        emit(CANCELLED);
        throw error;
      }
      emit(response.status);
      return response;
    },
  };
}

function buildRoutes(
  agent: AgentClient,
  { grants, clients }: BrokerPolicy,
  { agentFor }: BrokerOptions,
  before?: ReadonlyMap<string, Route>,
): Routes {
  const byName = new Map(
    Object.entries(grants).map(([name, grant]) => {
      const route: Route = {
        grant,
        agent: (async () => (agentFor ? agentFor(name, grant) : agent))(),
        tools: toolPolicy(grant),
        marks: before?.get(name)?.marks ?? new ParamHeaders(),
        headers: new Set(grant.headers?.map((header) => header.toLowerCase())),
        endsAt: grant.until === undefined ? Number.POSITIVE_INFINITY : Date.parse(grant.until),
        recent: before?.get(name)?.recent ?? new Map(),
      };
      // Its first request reports it.
      route.agent.catch(() => undefined);
      return [name, route];
    }),
  );
  const byClient = new Map(
    Object.entries(clients).map(([client, { grants: names }]) => [client, names && new Set(names)]),
  );
  return { byName, byClient };
}

interface RequestLog {
  name: string | undefined;
  tool: string | undefined;
  refused: BrokerRefusal | undefined;
}

interface Call {
  readonly request: Request;
  readonly client: string;
  readonly routes: Routes;
  readonly mask: TokenMask;
  readonly options: BrokerOptions;
  readonly log: RequestLog;
}

async function respondTo({ request, client, routes, mask, options, log }: Call): Promise<Response> {
  const { method } = request;
  const { pathname, search } = new URL(request.url);
  const refuse = (why: BrokerRefusal, status: number, content?: RefusalContent) => {
    log.refused = why;
    return refusalResponse(why, status, content);
  };
  const { name, rest } = readTarget(pathname);
  const route = grantedTo(client, routes, name) ? routes.byName.get(name) : undefined;
  // One response for a name that does not exist, has ended, or belongs to another client.
  if (route === undefined || Date.now() >= route.endsAt) return refuse("unknown", 404);
  log.name = name;
  const { grant, tools: toolRules } = route;
  const address = isPlain(rest) ? addressAt(grant.server, rest, search) : undefined;
  if (address === undefined) return refuse("malformed", 400);
  const forbidden = findRefusal(grant, { method, rest });
  if (forbidden !== undefined) return refuse(forbidden, 403);
  const wait = secondsToWait(route, client);
  if (wait > 0) return refuse("rate", 429, { headers: { "retry-after": String(wait) } });
  // A stream can be sent only once.
  let body: unknown = request instanceof HttpRequest ? request.payload : request.body;
  if (request.headers.has("content-encoding") && !route.headers.has("content-encoding"))
    return refuse("malformed", 415);
  let ofBody: Record<string, string> = {};
  let listing: RpcMessage | undefined;
  if (toolRules !== undefined && request.body !== null) {
    if (!isJudged(request)) return refuse("malformed", 415);
    const bytes = await readAtMost(request.body, MAX_JUDGED);
    if (bytes === undefined) return refuse("too_large", 413);
    const { tools, refusal, message, body: written } = judgeBody(bytes, toolRules);
    log.tool = tools[0]?.slice(0, MAX_NAME);
    if (refusal !== undefined) return refuse("tool", 200, { body: refusal });
    body = written;
    ofBody = { "content-type": "application/json", ...judgedHeaders(message, route.marks) };
    listing = message;
  }
  const sent = typeof body === "string" || body instanceof Uint8Array ? body : undefined;
  const requireLogin = (error?: AgentAuthError) => {
    options.onLoginRequired?.(name, grant, error);
    return refuse("login_required", 503, { sent, headers: { "agentauth-login-required": name } });
  };
  try {
    const agent = await route.agent;
    const response = await agent.fetch(address, {
      method,
      headers: requestHeaders(request.headers, route.headers, toolRules && ofBody),
      redirect: "manual",
      mayFollow: (target: string) => isWithin(grant, target, method),
      signal: request.signal,
      server: grant.server,
      ...(grant.scope !== undefined && { scope: grant.scope }),
      onToken: (token) => mask.add(name, token),
      ...(body !== null && { body }),
      ...(body instanceof ReadableStream && { duplex: "half" }),
    } as AgentRequestInit);
    // 404 has an MCP client begin a new session (streamable HTTP, "Session Management").
    const status = (await isSessionUnknown(response, request.headers)) ? 404 : response.status;
    if (isStepUp(response) || (status !== 404 && (await saysTokenRejected(response, { method, url: address })))) {
      await discardBody(response);
      return requireLogin();
    }
    return (
      (await forwardResponse(response, status, { ...route, mask }, listing)) ?? refuse("unavailable", 502, { sent })
    );
  } catch (error) {
    if (request.signal.aborted) throw error;
    if (!isAgentAuthError(error) || error.class !== "auth") return refuse("unavailable", statusFor(error), { sent });
    return requireLogin(error);
  }
}

/** Whether a redirect of a grant's server leads to what the grant allows. */
function isWithin(grant: BrokerGrant, target: string, method: string): boolean {
  const [{ pathname: own }, { pathname }] = [new URL(grant.server), new URL(target)];
  if (!isPathWithin(pathname, own)) return false;
  const rest = pathname.slice(own.replace(/\/$/, "").length) || "/";
  return isPlain(rest) && findRefusal(grant, { method, rest }) === undefined;
}

/** The response of the server, without its token and the tools that are hidden; undefined if it is too long for that. */
async function forwardResponse(
  response: Response,
  status: number,
  { tools, marks, mask }: Pick<Route, "tools" | "marks"> & Pick<Call, "mask">,
  request: RpcMessage | undefined,
): Promise<Response | undefined> {
  const headers = responseHeaders(response.headers, (value) => mask.isIn(value));
  const { statusText } = response;
  const head = { status, statusText: mask.isIn(statusText) ? "" : statusText, headers };
  if (response.body === null) return new HttpResponse(null, head);
  const masked = mask.over(response.body);
  if (tools === undefined) return new HttpResponse(masked, head);
  const onResult = (result: unknown) => request?.method !== undefined && marks.update(request, { result });
  if (isEventStream(response)) return new HttpResponse(filterEvents(masked, tools, onResult), head);
  const bytes = await readAtMost(masked, MAX_RESPONSE);
  return bytes && new HttpResponse(withoutHidden(new TextDecoder().decode(bytes), tools, onResult), head);
}

function grantedTo(client: string, { byClient }: Routes, name: string): boolean {
  const names = byClient.get(client);
  return names === undefined ? byClient.has(client) : names.has(name);
}

/** Seconds until a client may send another request; counts this one if it may. */
function secondsToWait({ grant, recent }: Route, client: string): number {
  const { requestsPerMinute } = grant;
  if (requestsPerMinute === undefined) return 0;
  const now = performance.now();
  const times = (recent.get(client) ?? []).filter((time) => now - time < 60_000);
  recent.set(client, times);
  const [oldest] = times;
  if (times.length >= requestsPerMinute && oldest !== undefined) return Math.ceil((oldest + 60_000 - now) / 1000);
  times.push(now);
  return 0;
}

/** Whether a user has to allow more (RFC 6750 section 3.1). */
function isStepUp({ status, headers }: Response): boolean {
  return status === 403 && bearerChallenge(headers)?.error === "insufficient_scope";
}

function statusFor(error: unknown): number {
  if (!isAgentAuthError(error)) return 502;
  return error.code === "timeout" ? 504 : error.retryable ? 503 : 502;
}

/** The bytes of a stream; undefined if there are more than `max`. */
async function readAtMost(body: ReadableStream<Uint8Array>, max: number): Promise<Uint8Array | undefined> {
  const reader = body.getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(parts);
    length += value.length;
    parts.push(value);
    if (length <= max) continue;
    await reader.cancel().catch(() => undefined);
    return undefined;
  }
}
