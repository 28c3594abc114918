import type { AuthInfo } from "@modelcontextprotocol/server";
import { FaultController, type RoundTrip, type SandboxPart } from "../../src/sandbox/faults/controller.js";
import type { FaultEndpoint } from "../../src/sandbox/faults/faults.js";
import { MovableClock } from "../../src/sandbox/http/clock.js";
import {
  createRequestLog,
  jsonResponse,
  READ_METHODS,
  readBody,
  readForm,
  requireMethod,
  type SandboxResponse,
} from "../../src/sandbox/http/requests.js";
import { bufferResponse, sampleMcp, webRequest } from "../../src/sandbox/mcp/own-server.js";
import { type Listening, listen } from "../../src/sandbox/router.js";
import { readSandboxSettings, type SandboxOptions } from "../../src/sandbox/sandbox-settings.js";
import { SERVER_SHAPES } from "./catalogue.js";
import type { ServerShape } from "./shape.js";
import { ShapeAuthorization } from "./shape-authorization.js";

interface Route {
  endpoint: FaultEndpoint;
  methods: readonly string[];
  answer(roundTrip: RoundTrip): SandboxResponse | Promise<SandboxResponse>;
}

const RESOURCE_METADATA = "/.well-known/oauth-protected-resource";
const MAX_BODY = 1024 * 1024;
const ORIGIN = /https:\/\/[\w.-]+(?::\d+)?/g;

/**
 * A server with the shape of a real MCP server and its authorization server, with an origin for each that the record has, and
 * the faults, the clock and the request log of a sandbox. Logins are approved at once.
 *
 * @param recorded a shape, or its name in the catalogue
 * @returns the server, and as `like` the shape with the addresses of the server in place of the recorded ones
 */
export async function startLike(recorded: string | ServerShape, options: SandboxOptions = {}) {
  const given = typeof recorded === "string" ? SERVER_SHAPES.find(({ id }) => id === recorded) : recorded;
  if (given === undefined) throw new TypeError(`there is no recorded server ${recorded}`);
  const { id, title, about, source, date, ...addressed } = given;
  const settings = readSandboxSettings(options);
  const clock = new MovableClock(settings.now);
  const faults = new FaultController(settings.seed);
  const { log: requests, add: log } = createRequestLog();
  const listening = new Map<string, Listening>();
  for (const one of originsOf(given))
    listening.set(one, await listen({ ...settings, faults, log, now: () => clock.now() }, 0));
  const origins = new Map([...listening].map(([one, { origin }]) => [one, origin]));
  const like: ServerShape = { id, title, about, source, date, ...relocateOrigins(addressed, origins) };
  const routes = routesOf(like, new ShapeAuthorization(like, clock, "alice"));
  for (const one of listening.values()) one.serve([partOf(one.origin, routes)]);
  const close = async () => void (await Promise.all([...listening.values()].map((one) => one.close())));
  const { server: mcpUrl } = like;
  const { origin } = new URL(mcpUrl);
  return { like, origin, mcpUrl, clock, faults, requests, close, [Symbol.asyncDispose]: close };
}

/** The origins of a shape, that of the MCP server first. Scopes may look like addresses, without a server. */
function originsOf({ server, documents }: ServerShape): readonly string[] {
  const text = JSON.stringify(documents, (key, value: unknown) => (key === "scopes_supported" ? undefined : value));
  return [...new Set([server, text].flatMap((one) => one.match(ORIGIN) ?? []))];
}

/** Puts other origins in the place of the recorded ones, in all texts and names of a value. */
function relocateOrigins<T>(value: T, origins: ReadonlyMap<string, string>): T {
  return JSON.parse(JSON.stringify(value).replaceAll(ORIGIN, (origin) => origins.get(origin) ?? origin));
}

/** Serves one origin. Its paths end here: the sandbox's own MCP servers are not part of a shape. */
function partOf(origin: string, routes: ReadonlyMap<string, Route>): SandboxPart {
  const routeOf = (path: string) => routes.get(origin + path);
  return {
    owns: (path) => routeOf(path) !== undefined,
    faulty: true,
    allowsPages: (path) => routeOf(path)?.endpoint !== "authorize",
    async target(roundTrip) {
      roundTrip.body = await readBody(roundTrip.request, MAX_BODY);
      return { endpoint: routeOf(roundTrip.path)?.endpoint };
    },
    async handle(roundTrip) {
      const route = routeOf(roundTrip.path);
      requireMethod(roundTrip.method, route?.methods ?? []);
      return route?.answer(roundTrip);
    },
  };
}

/** What is at each address of a shape. */
function routesOf(shape: ServerShape, server: ShapeAuthorization): Map<string, Route> {
  const routes = new Map<string, Route>();
  const serve = (addresses: readonly string[], route: Route) => {
    for (const address of addresses) routes.set(new URL(address).href, route);
  };
  const { authorize, register, token } = endpointsOf(shape);
  serve(authorize, { endpoint: "authorize", methods: READ_METHODS, answer: ({ query }) => server.authorize(query) });
  serve(register, { endpoint: "register", methods: ["POST"], answer: ({ body }) => server.register(String(body)) });
  serve(token, {
    endpoint: "token",
    methods: ["POST"],
    answer: ({ body, request }) => server.token(readForm(body), request.headers.authorization),
  });
  for (const [address, document] of Object.entries(shape.documents)) {
    const endpoint = address.includes(RESOURCE_METADATA) ? "prm" : "metadata";
    serve([address], { endpoint, methods: READ_METHODS, answer: () => jsonResponse(document) });
  }
  serve([shape.server], {
    endpoint: "mcp",
    methods: ["POST", "GET", "DELETE"],
    answer: (roundTrip) => answerMcp(shape, server, roundTrip),
  });
  return routes;
}

/** The endpoints that the documents name; without any they have fixed paths (MCP 2025-03-26). */
function endpointsOf({ documents, server }: ServerShape) {
  const metadata = Object.values(documents).filter((document) => "token_endpoint" in document);
  const { origin } = new URL(server);
  const addresses = (field: string, path: string): string[] =>
    metadata.length === 0
      ? [origin + path]
      : metadata.map((one) => one[field]).filter((value) => typeof value === "string");
  return {
    authorize: addresses("authorization_endpoint", "/authorize"),
    token: addresses("token_endpoint", "/token"),
    register: addresses("registration_endpoint", "/register"),
  };
}

async function answerMcp(
  shape: ServerShape,
  server: ShapeAuthorization,
  roundTrip: RoundTrip,
): Promise<SandboxResponse> {
  const [, token = ""] = /^bearer +(\S+)$/i.exec(roundTrip.request.headers.authorization ?? "") ?? [];
  const found = server.find(token);
  if (!found && !shape.open) {
    const challenge = challengeOf(shape);
    const answer = jsonResponse({ error: "invalid_token" }, 401);
    return challenge === null ? answer : { ...answer, headers: { ...answer.headers, "www-authenticate": challenge } };
  }
  const { protocols } = shape;
  if (protocols?.length && versionsIn(roundTrip).some((version) => !protocols.includes(version))) {
    const body = `Bad Request: Unsupported protocol version (supported versions: ${protocols.join(", ")})`;
    return { status: 400, headers: { "content-type": "text/plain" }, body };
  }
  const authInfo: AuthInfo = { token, clientId: found?.clientId ?? "", scopes: found?.scope.split(" ") ?? [] };
  if (found) authInfo.extra = { subject: found.subject };
  if (found && Number.isFinite(found.expiresAt)) authInfo.expiresAt = Math.floor(found.expiresAt / 1000);
  return bufferResponse(await sampleMcp(webRequest(new URL(shape.server).origin, roundTrip), authInfo));
}

/** The protocol versions that a request names: in its header, and where it initializes a session. */
function versionsIn({ request, body }: RoundTrip): string[] {
  const [, offered] = /"protocolVersion"\s*:\s*"([^"]*)"/.exec(body?.toString("utf8") ?? "") ?? [];
  return [...(request.headersDistinct["mcp-protocol-version"] ?? []), ...(offered === undefined ? [] : [offered])];
}

function challengeOf({ challenge, documents }: ServerShape): string | null {
  if (challenge !== undefined) return challenge;
  const address = Object.keys(documents).find((one) => one.includes(RESOURCE_METADATA));
  return address === undefined ? "Bearer" : `Bearer resource_metadata="${address}"`;
}
