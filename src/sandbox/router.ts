import type { IncomingMessage, ServerResponse } from "node:http";
import { type AddressInfo, isIP, type Socket } from "node:net";
import { type AgentAuthError, isAgentAuthError, usageError } from "../errors.js";
import { isJsonObject } from "../http/strict-json.js";
import { quote } from "../redact.js";
import { mix } from "./data/sample-device.js";
import { parseFault } from "./faults/check-fault.js";
import type { FaultController, RoundTrip, SandboxPart } from "./faults/controller.js";
import { replacementFor, respond } from "./faults/effects.js";
import type { Fault } from "./faults/faults.js";
import type { SandboxClock } from "./http/clock.js";
import {
  admitPage,
  allowedOrigin,
  errorResponse,
  type HostGuard,
  hostGuard,
  jsonResponse,
  type LoggedRequest,
  loggedQuery,
  parseJson,
  Refusal,
  type RequestLog,
  readBody,
  requireMethod,
  type SandboxResponse,
  tokenGuard,
} from "./http/requests.js";
import type { SandboxMachine } from "./oauth/machine.js";
import type { SandboxSettings } from "./sandbox-settings.js";

export interface OriginSettings extends Pick<SandboxSettings, "seed" | "host" | "publicUrl" | "allowOrigins"> {
  faults: FaultController;
  log: (entry: LoggedRequest) => void;
  now: () => number;
}

function createRouter(
  settings: OriginSettings,
  parts: readonly SandboxPart[],
  guard: HostGuard,
  closing: AbortSignal,
): RequestHandler {
  let count = 0;
  return async (request, response) => {
    count += 1;
    response.setHeader("x-request-id", `req_${mix(settings.seed, count).toString(36).padStart(7, "0")}`);
    const { method = "GET", url = "/" } = request;
    const [path = "/", ...search] = url.split("?");
    const query = new URLSearchParams(search.join("?"));
    const roundTrip: RoundTrip = { method, path, query, faults: [], request, response };
    const part = parts.find((candidate) => candidate.owns(path));
    const entry: LoggedRequest = { method, path, query: loggedQuery(query), at: settings.now(), status: 0 };
    if (!part?.unlogged) settings.log(entry);
    const answer = await buildResponse(settings, guard, part, roundTrip);
    if (roundTrip.operation !== undefined) entry.operation = roundTrip.operation;
    if (roundTrip.faults.length > 0) entry.fault = roundTrip.faults.map(({ kind }) => kind).join(",");
    if (answer === undefined) entry.status = response.statusCode;
    else if (answer !== "reset") entry.status = answer.status;
    if (answer) await respond(roundTrip, answer, closing);
    // The unread rest of a body must not precede the next request of the connection.
    request.resume();
  };
}

async function buildResponse(
  settings: OriginSettings,
  guard: HostGuard,
  part: SandboxPart | undefined,
  roundTrip: RoundTrip,
): Promise<SandboxResponse | "reset" | undefined> {
  const { request, response, path } = roundTrip;
  try {
    const page = part?.allowsPages?.(path) ? allowedOrigin(request, settings.allowOrigins) : undefined;
    guard(request, page);
    const preflight = page === undefined ? undefined : admitPage(page, request, response);
    if (preflight) return preflight;
    if (!part) return errorResponse(404, "not_found", "there is nothing at this path");
    if (part.faulty) roundTrip.faults = settings.faults.select({ path, ...(await part.target?.(roundTrip)) });
    const replaced = replacementFor(roundTrip.faults);
    return replaced ?? (await part.handle(roundTrip));
  } catch (error) {
    if (error instanceof Refusal) return error.response;
    return errorResponse(500, "unexpected", `the sandbox failed: ${quote(String(error))}`);
  }
}

/** Time that responses in progress get to finish when the server closes. */
const CLOSE_GRACE_MS = 500;

/** A server that listens at an origin. */
export interface Listening {
  origin: string;
  /** Answers requests from now on: the parts need the origin, which is known only once the server listens. */
  serve(parts: readonly SandboxPart[]): void;
  /** Resolves when it has closed. */
  closed: Promise<void>;
  /** Stops listening and closes every connection, within a second. */
  close(): Promise<void>;
}

/** Handles a request; if it rejects, the connection is destroyed. */
type RequestHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** Listens at a port; requests get no answer before {@link Listening.serve}. @throws AgentAuthError `usage` */
export async function listen(settings: OriginSettings, port: number): Promise<Listening> {
  const { host } = settings;
  const closing = new AbortController();
  // Loaded here: an import would cost every program that imports the sandbox, started or not.
  const { createServer } = process.getBuiltinModule("node:http");
  let handle: RequestHandler = async (_request, response) => void response.destroy();
  const server = createServer((request, response) => {
    // A client that disconnects in the middle is not an error of the sandbox.
    request.on("error", () => {});
    response.on("error", () => {});
    handle(request, response).catch(() => response.destroy());
  });
  server.on("clientError", refuseMalformed);
  const closed = new Promise<void>((resolve) => server.once("close", resolve));
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => reject(listenError(host, port, cause)));
    server.listen({ host, port, exclusive: true }, resolve);
  });
  const address = server.address() as AddressInfo;
  const name = isIP(host) === 6 ? `[${host}]` : host;
  return {
    origin: `http://${name}${address.port === 80 ? "" : `:${address.port}`}`,
    serve(parts) {
      handle = createRouter(settings, parts, hostGuard({ ...settings, port: address.port }), closing.signal);
    },
    closed,
    close() {
      closing.abort();
      server.close();
      server.closeIdleConnections();
      const timer = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS);
      return closed.finally(() => clearTimeout(timer));
    },
  };
}

/** Answers bytes that are not HTTP, for which Node.js creates no response object. */
function refuseMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  const status = error.code === "HPE_HEADER_OVERFLOW" ? "431 Request Header Fields Too Large" : "400 Bad Request";
  socket.end(`HTTP/1.1 ${status}\r\nx-request-id: req_unreadable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
}

function listenError(host: string, port: number, cause: NodeJS.ErrnoException): AgentAuthError {
  const reason = cause.code === "EADDRINUSE" ? "the port is in use" : cause.message;
  const message = `the sandbox cannot listen on ${quote(host)} port ${port}: ${reason}`;
  const hint = cause.code === "EADDRINUSE" ? "choose another port, or 0 for a free one" : "choose another host or port";
  return usageError(message, hint, cause);
}

const PREFIX = "/_sandbox";
const MAX_BODY = 64 * 1024;

export interface AdminApiSettings {
  controlToken: string;
  faults: FaultController;
  requests: RequestLog;
  clock: SandboxClock;
  machines: SandboxMachine | undefined;
  shutdown: () => void;
}

type Action = (settings: AdminApiSettings, roundTrip: RoundTrip) => SandboxResponse | Promise<SandboxResponse>;

const ACTIONS: Readonly<Record<string, Readonly<Record<string, Action>>>> = {
  "/faults": {
    GET: ({ faults }) => jsonResponse({ status: "success", faults: faults.list() }),
    POST: async ({ faults }, { request }) =>
      jsonResponse({ status: "success", faults: addFaults(faults, await readJson(request)) }, 201),
    DELETE({ faults }) {
      faults.clear();
      return jsonResponse({ status: "success", faults: [] });
    },
  },
  "/requests": { GET: ({ requests }) => jsonResponse({ status: "success", total: requests.total, requests }) },
  "/clock": {
    GET: ({ clock }) => jsonResponse({ status: "success", now: clock.now() }),
    POST: async ({ clock }, { request }) =>
      jsonResponse({ status: "success", now: advanceClock(clock, await readJson(request)) }),
  },
  "/machine": {
    GET: ({ machines }) => jsonResponse({ status: "success", machine: machines ? describeMachine(machines) : null }),
  },
  "/shutdown": {
    POST({ shutdown }, { response }) {
      response.once("close", shutdown);
      response.shouldKeepAlive = false;
      return jsonResponse({ status: "success" }, 202);
    },
  },
};

/** The endpoints below `/_sandbox` with which another process controls the sandbox. */
export function adminApi(settings: AdminApiSettings): SandboxPart {
  const authenticate = tokenGuard(settings.controlToken);
  return {
    owns: (path) => path === PREFIX || path.startsWith(`${PREFIX}/`),
    faulty: false,
    unlogged: true,
    handle(roundTrip) {
      authenticate(roundTrip.request);
      const { method, path } = roundTrip;
      const action = path.slice(PREFIX.length);
      const actions = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
      if (!actions) throw new Refusal(404, "not_found", "there is nothing at this path");
      requireMethod(method, Object.keys(actions));
      return actions[method]?.(settings, roundTrip);
    },
  };
}

/** The credentials for the machine grants, with an assertion and an id token that are currently valid. */
function describeMachine(machine: SandboxMachine): object {
  const { secretClient, keyClient, workloadClient, idp } = machine;
  return {
    issuer: machine.issuer,
    client_id: secretClient.clientId,
    client_secret: secretClient.clientSecret,
    key_client_id: keyClient.clientId,
    private_key: keyClient.privateKey,
    key_id: keyClient.keyId,
    workload_client_id: workloadClient.clientId,
    assertion: machine.assertion(),
    idp_issuer: idp.issuer,
    idp_native_client_id: idp.nativeClient.clientId,
    idp_token_endpoint: idp.tokenEndpoint,
    idp_client_id: idp.clientId,
    idp_client_secret: idp.clientSecret,
    id_token: idp.idToken(),
  };
}

/** A body is a fault, a list of faults, or the compact form of one as a JSON string. */
function addFaults(faults: FaultController, body: unknown) {
  try {
    return faults.add(typeof body === "string" ? parseFault(body) : (body as Fault | Fault[]));
  } catch (error) {
    if (!isAgentAuthError(error)) throw error;
    const message = error.hint === undefined ? error.message : `${error.message}; ${error.hint}`;
    throw new Refusal(400, "invalid_value", message);
  }
}

function advanceClock(clock: SandboxClock, body: unknown): number {
  const ms = isJsonObject(body) ? body["advance_ms"] : undefined;
  if (typeof ms === "number" && Number.isSafeInteger(ms) && ms >= 0) return clock.advance(ms);
  throw new Refusal(400, "invalid_value", "advance_ms must be whole milliseconds, 0 or more");
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  // Without a CORS preflight a web page can send a form or plain text, but not JSON.
  if (!/^application\/json *(;|$)/i.test(request.headers["content-type"] ?? ""))
    throw new Refusal(415, "bad_request", "send the body as application/json");
  const value = parseJson((await readBody(request, MAX_BODY)).toString("utf8"));
  if (value === undefined) throw new Refusal(400, "bad_request", "the body is not JSON");
  return value;
}
