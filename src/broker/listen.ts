import { randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { fstatSync, lstatSync, readFileSync, rmSync } from "node:fs";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { type AgentAuthError, usageError } from "../errors.js";
import { HttpRequest } from "../http/http-message.js";
import { checkOptionNames, type OptionNames } from "../http/public-class.js";
import { quote } from "../redact.js";
import { checkPrivateFolder, makePrivateFolder } from "../store/private/private-file.js";
import { storeError } from "../store/store-error.js";
import type { Broker } from "./broker.js";
import { type BrokerClient, type ListenAddress, listenAddress } from "./policy.js";

/** Where a client reaches the broker. */
export interface BrokerListener {
  /** The client, as the policy names it. */
  readonly client: string;
  /** The path of the socket or pipe; undefined on TCP. */
  readonly socket: string | undefined;
  /** What comes before `/<name>`. On TCP it holds a secret, which is all that a client needs. */
  readonly url: string;
}

/** A broker that listens. */
export interface ListeningBroker {
  /** One for each client of the policy. */
  readonly listeners: readonly BrokerListener[];
  /** Accepts nothing more, and ends what is under way after the grace time at the latest. */
  close(graceMs?: number): Promise<void>;
}

const HEAD_MS = 10_000;
/** Between two parts of a request's body. */
const BODY_IDLE_MS = 30_000;
/** A client that sends again just as its connection is closed loses the request. */
const IDLE_MS = 60_000;
const MAX_CONNECTIONS = 4096;
/** A body of a known length up to this is read first, so that it can be sent again with another token. */
const MAX_REPEATED = 1024 * 1024;
const DEFAULT_GRACE_MS = 10_000;
/** A request that a client has just sent on an idle connection is lost where the connection is closed at once. */
const LAST_REQUEST_MS = 1_000;

/** How a broker listens. */
export interface ListenOptions {
  /** File descriptors of listening Unix sockets, by the names that addresses such as `systemd:agent` have. */
  readonly sockets?: Readonly<Record<string, number>>;
}

/**
 * Listens for the clients of a broker's policy.
 *
 * @throws `AgentAuthError` `usage` where an address cannot be used, `store_failed` for a folder or a socket that others
 * can get at
 */
export async function listen(broker: Broker, options: ListenOptions = {}): Promise<ListeningBroker> {
  checkOptionNames(options, { sockets: true } satisfies OptionNames<ListenOptions>, "listen");
  const { sockets = {} } = options;
  const opened: Opened[] = [];
  try {
    for (const [client, { ...how }] of Object.entries(broker.policy.clients))
      opened.push(await open(broker, client, how, sockets));
  } catch (error) {
    await Promise.all(opened.map(({ close }) => close(0)));
    throw error;
  }
  return {
    listeners: opened.map(({ listener }) => listener),
    close: async (graceMs = DEFAULT_GRACE_MS) => void (await Promise.all(opened.map(({ close }) => close(graceMs)))),
  };
}

interface Opened {
  readonly listener: BrokerListener;
  close(graceMs: number): Promise<void>;
}

async function open(
  broker: Broker,
  client: string,
  options: BrokerClient,
  passed: Readonly<Record<string, number>>,
): Promise<Opened> {
  const address = listenAddress(options.listen);
  if (address === undefined) throw listenError(options.listen, "is not an address");
  // 128 bits: on TCP, every user of this machine can connect.
  const secret = "host" in address ? randomBytes(16).toString("hex") : "";
  const prefix = secret === "" ? "" : `/${secret}`;
  let hosts: ReadonlySet<string> | undefined;
  const server = process.getBuiltinModule("node:http").createServer({
    headersTimeout: HEAD_MS,
    requestTimeout: 0,
    connectionsCheckingInterval: 2_000,
    keepAliveTimeout: IDLE_MS,
    insecureHTTPParser: false,
    requireHostHeader: true,
  });
  server.maxConnections = MAX_CONNECTIONS;
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket.once("close", () => sockets.delete(socket)));
  });
  server.on("clientError", (_error, socket) => socket.destroy());
  let isClosing = false;
  const responses = new Set<ServerResponse>();
  server.on("request", (request, response) => {
    response.shouldKeepAlive &&= !isClosing;
    responses.add(response);
    response.once("close", () => responses.delete(response));
    request.on("error", () => undefined);
    response.on("error", () => undefined);
    const path = pathBehind(prefix, request, hosts);
    if (path === undefined) {
      // As for an unknown name, the connection stays.
      bodyTimer(request);
      return respond(response, broker.refuse("unknown", request.method ?? "", client), []);
    }
    if (path === "") return refuse(response, broker.refuse("malformed", request.method ?? "", client));
    serve(broker, client, { path, request, response }).catch(() => response.destroy());
  });
  const fd = "inherited" in address && Object.hasOwn(passed, address.inherited) ? passed[address.inherited] : undefined;
  const inherited = fd === undefined ? undefined : pathOfInherited(fd, options.listen);
  await bind(server, fd === undefined ? address : { fd }, options.listen);
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : undefined;
  if ("host" in address) {
    const name = address.host === "::1" ? "[::1]" : address.host;
    hosts = new Set([`${name}:${port}`, `localhost:${port}`]);
  }
  const url = "host" in address ? `http://${[...(hosts ?? [])][0]}${prefix}` : "http://localhost";
  return {
    listener: { client, socket: "path" in address ? address.path : inherited, url },
    async close(graceMs) {
      isClosing = true;
      // A client that sends again sends to the next broker, which accepts from now on.
      for (const response of responses) if (!response.headersSent) response.shouldKeepAlive = false;
      const closed = once(server, "close");
      // The one of HTTP would close idle connections at once.
      process.getBuiltinModule("node:net").Server.prototype.close.call(server);
      const idle = setInterval(() => server.closeIdleConnections(), Math.min(graceMs, LAST_REQUEST_MS));
      const end = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, graceMs);
      await closed;
      clearInterval(idle);
      clearTimeout(end);
      // Ends its own timer.
      server.close();
    },
  };
}

/** The path of a request behind the secret: undefined if it is not there, empty for a request of another form. */
function pathBehind(
  prefix: string,
  { url = "", headers, headersDistinct, httpVersionMajor }: IncomingMessage,
  hosts: ReadonlySet<string> | undefined,
): string | undefined {
  if (hosts !== undefined) {
    const origin = headers.origin;
    const [host, ...more] = headersDistinct["host"] ?? [];
    if (more.length > 0 || !hosts.has(host ?? "")) return undefined;
    if (origin !== undefined && !hosts.has(origin.replace(/^http:\/\//, ""))) return undefined;
  }
  const given = Buffer.from(url.slice(0, prefix.length));
  if (given.length !== prefix.length || !timingSafeEqual(given, Buffer.from(prefix))) return undefined;
  const path = url.slice(prefix.length);
  if (prefix !== "" && !path.startsWith("/")) return undefined;
  // An absolute address is for proxies, an upgrade would leave HTTP, and HTTP/0.9 has no headers.
  const isPlain = path.startsWith("/") && !/[\\#\p{Cc}]/u.test(path);
  return isPlain && headers.upgrade === undefined && httpVersionMajor === 1 ? path : "";
}

async function serve(
  broker: Broker,
  client: string,
  { path, request, response }: { path: string; request: IncomingMessage; response: ServerResponse },
): Promise<void> {
  const call = new AbortController();
  response.once("close", () => call.abort());
  const { method = "GET" } = request;
  const malformed = () => broker.refuse("malformed", method, client);
  const length = Number(request.headers["content-length"] ?? Number.NaN);
  const hasBody = length > 0 || request.headers["transfer-encoding"] !== undefined;
  if (hasBody && (method === "GET" || method === "HEAD")) return refuse(response, malformed());
  const idle = hasBody ? bodyTimer(request) : undefined;
  let outgoing: HttpRequest;
  try {
    const body = !hasBody ? undefined : length <= MAX_REPEATED ? await buffer(request) : Readable.toWeb(request);
    const headers = Object.entries(request.headersDistinct).flatMap(([name, values = []]) =>
      values.map((value): [string, string] => [name, value]),
    );
    outgoing = new HttpRequest(`http://broker${path}`, {
      method,
      headers,
      signal: call.signal,
      ...(body !== undefined && { body: body as NonNullable<RequestInit["body"]>, duplex: "half" }),
    });
  } catch {
    // The body has broken off, or the method is one that no client of HTTP sends.
    return refuse(response, malformed());
  }
  const brokerResponse = await broker.fetch(outgoing, client);
  idle?.clear();
  response.writeHead(brokerResponse.status, brokerResponse.statusText, [...brokerResponse.headers].flat());
  if (brokerResponse.body === null) return void response.end();
  const reader = brokerResponse.body.getReader();
  call.signal.addEventListener("abort", () => void reader.cancel().catch(() => undefined), { once: true });
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return void response.end();
    // Until a slow client has read, or has left.
    if (!response.write(value)) await once(response, "drain", { signal: call.signal }).catch(() => undefined);
  }
}

/** Ends a request whose body stands still. */
function bodyTimer(request: IncomingMessage): { clear(): void } {
  const timer = setTimeout(() => request.destroy(), BODY_IDLE_MS);
  request.on("data", () => timer.refresh()).once("end", () => clearTimeout(timer));
  // Listening for parts would start the stream before it is read.
  request.pause();
  return { clear: () => clearTimeout(timer) };
}

function refuse(response: ServerResponse, brokerResponse: Response): void {
  respond(response, brokerResponse, ["connection", "close"]);
}

function respond(response: ServerResponse, brokerResponse: Response, headers: readonly string[]): void {
  const all = [...[...brokerResponse.headers].flat(), ...headers];
  response.writeHead(brokerResponse.status, brokerResponse.statusText, all);
  void brokerResponse.text().then((text) => response.end(text));
}

async function bind(server: Server, address: ListenAddress | { fd: number }, listen: string): Promise<void> {
  if ("inherited" in address) throw listenError(listen, "is no socket that the parent process has passed (LISTEN_FDS)");
  const isSocket = "path" in address && process.platform !== "win32";
  if (isSocket) await prepareSocket(address.path, listen);
  // The socket is there, and closed to others, from its first moment.
  const umask = isSocket ? process.umask(0o177) : undefined;
  const bound = new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => reject(listenError(listen, describeFailure(cause), cause)));
    // By default 512 clients may connect at once: on a Unix socket the next one gets an error.
    server.listen({ ...address, exclusive: true, backlog: MAX_CONNECTIONS }, resolve);
  });
  if (umask !== undefined) process.umask(umask);
  await bound;
}

function describeFailure({ code, message }: NodeJS.ErrnoException): string {
  if (code === "EADDRINUSE") return "is in use";
  return code === "EACCES" ? "is not allowed for this user" : `cannot be used: ${message}`;
}

/** Of a Unix socket; on Linux it is 107. */
const MAX_PATH = 103;

/** Makes the folder, checks it, and removes the socket of a broker that has died. */
async function prepareSocket(path: string, listen: string): Promise<void> {
  // Node would cut it off, and make the socket in another folder.
  if (Buffer.byteLength(path) > MAX_PATH) throw listenError(listen, `has a path of more than ${MAX_PATH} bytes`);
  const folder = dirname(path);
  makePrivateFolder(folder);
  checkPrivateFolder(folder);
  const before = lstatSync(path, { throwIfNoEntry: false });
  if (before === undefined) return;
  if (!before.isSocket()) throw listenError(listen, "is a file that is no socket");
  const isAlive = await new Promise<boolean>((resolve) => {
    const probe = connect(path, () => resolve(true)).once("error", () => resolve(false));
    probe.once("connect", () => probe.destroy());
  });
  if (isAlive) throw listenError(listen, "is in use by another broker");
  rmSync(path);
}

/**
 * The path of a listening Unix socket that the parent process has opened. Its mode keeps other users out, as that of a socket
 * of our own does: by default systemd lets everyone in.
 */
function pathOfInherited(fd: number, listen: string): string {
  const { ino } = fstatSync(fd);
  // Num: RefCount Protocol Flags Type St Inode Path
  const lines = readFileSync("/proc/net/unix", "utf8").split("\n");
  const path = lines.map((line) => line.split(" ").filter(Boolean)).find((fields) => fields[6] === String(ino))?.[7];
  if (path === undefined || !path.startsWith("/")) throw listenError(listen, "is no Unix socket with a path");
  const { mode, uid } = lstatSync(path);
  if (uid !== 0 && uid !== process.getuid?.())
    throw storeError(
      `the socket ${path} belongs to another user`,
      undefined,
      "SocketUser= of its unit names its owner",
    );
  if ((mode & 0o002) !== 0)
    throw storeError(`the socket ${path} is open to all users`, undefined, "set SocketMode=0600 or 0660 in its unit");
  return path;
}

function listenError(listen: string, what: string, cause?: unknown): AgentAuthError {
  return usageError(
    `the address ${quote(listen)} ${what}`,
    "for example unix:/run/user/1000/agentauth/agent.sock",
    cause,
  );
}
