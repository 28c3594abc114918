import type { AuthInfo } from "@modelcontextprotocol/server";
import { usageError } from "../../errors.js";
import { quote } from "../../redact.js";
import type { FaultEndpoint } from "../faults/faults.js";
import type { RoundTrip, SandboxPart } from "../faults/round-trip.js";
import type { SandboxClock } from "../http/clock.js";
import { readBody, readForm } from "../http/requests.js";
import { jsonResponse, READ_METHODS, requireMethod, type SandboxResponse } from "../http/sandbox-response.js";
import { bufferResponse, sampleMcp, webRequest } from "../mcp/handler.js";
import type { ServerShape } from "./shape.js";
import { ShapeAuthorization } from "./shape-authorization.js";

/** What the servers of a shape need. */
interface ShapeSettings {
  /** The origin of the sandbox, which serves the MCP server. */
  origin: string;
  clock: SandboxClock;
  /** The user who is logged in. */
  subject: string;
  /** Opens another origin. */
  open(): Promise<string>;
}

interface Route {
  endpoint: FaultEndpoint;
  methods: readonly string[];
  answer(roundTrip: RoundTrip): SandboxResponse | Promise<SandboxResponse>;
}

const RESOURCE_METADATA = "/.well-known/oauth-protected-resource";
const MAX_BODY = 1024 * 1024;
const ORIGIN = /https:\/\/[\w.-]+(?::\d+)?/g;

/**
 * Prepares the servers of a shape: one origin for each that the record has.
 *
 * @returns the shape with the addresses of the sandbox in place of the recorded ones, and the parts that serve it by origin
 */
export async function startShape(recorded: ServerShape, settings: ShapeSettings) {
  const origins = new Map<string, string>();
  for (const origin of originsOf(recorded))
    origins.set(origin, origins.size === 0 ? settings.origin : await settings.open());
  const { id, title, about, source, date, ...addressed } = recorded;
  const shape: ServerShape = { id, title, about, source, date, ...relocateOrigins(addressed, origins) };
  const routes = routesOf(shape, new ShapeAuthorization(shape, settings.clock, settings.subject));
  const parts = new Map([...origins.values()].map((origin) => [origin, partOf(origin, routes)]));
  return { shape, parts };
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

/** Every recorded shape. A sandbox of each of them shows whether a client can log in at real servers. */
export async function serverShapes(): Promise<readonly ServerShape[]> {
  return (await import("#vendors")).SERVER_SHAPES;
}

/** The recorded shape with a name. @throws AgentAuthError `usage` */
export async function findShape(id: string): Promise<ServerShape> {
  const shapes = await serverShapes();
  const shape = shapes.find((one) => one.id === id);
  if (shape) return shape;
  const hint = `give like as one of ${shapes.map((one) => one.id).join(", ")}`;
  throw usageError(`sandbox: like must be the name of a recorded server, ${quote(id)} is not`, hint);
}
