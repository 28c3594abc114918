import type { Agent, ClientRequestArgs } from "node:http";
import { isIP, type LookupFunction, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ConnectionOptions, SecureContext, SecureContextOptions } from "node:tls";
import { withoutBrackets } from "../http/address.js";
import { ProxyError, proxyAuthorization } from "./proxies.js";
import type { SsrfGuard } from "./ssrf-guard.js";

/** What a tunnel needs to know of the request that it is opened for. */
export interface TunnelArgs extends ClientRequestArgs {
  /** The signal that aborts the tunnel while it is being opened. */
  until?: (() => AbortSignal) | undefined;
}

/** How the agents of one way connect. */
export interface AgentsOptions {
  guard: SsrfGuard | undefined;
  /** For the server: authorities, and the client certificate. */
  serverTls: SecureContextOptions;
  /** For a proxy: the authorities alone. */
  proxyTls: ConnectionOptions;
}

/** An idle connection is closed before servers close it. */
const IDLE_CONNECTION_MS = 4000;

/** When connections became idle, on the monotonic clock. */
const idleSince = new WeakMap<Duplex, number>();

/** Milliseconds for which a connection was idle when it is used again; 0 for a new one. */
export function idleMs(socket: Duplex): number {
  const now = performance.now();
  return now - (idleSince.get(socket) ?? now);
}

/** Node's module for a scheme, loaded when it is needed; imported by an ES module, it would load all of fetch. */
export function httpModule(isTls: boolean): typeof import("node:https") {
  return process.getBuiltinModule(isTls ? "node:https" : "node:http") as typeof import("node:https");
}

/** Keeps the agents of one way: connections that one way has checked are used by no other. */
export function agentPool(options: AgentsOptions): (protocol: string, proxy: string | undefined) => Agent {
  const agents = new Map<string, Agent>();
  let context: SecureContext | undefined;
  // To read all authorities takes longer than a handshake: once, not for each connection.
  const serverTls = () => {
    context ??= process.getBuiltinModule("node:tls").createSecureContext(options.serverTls);
    return { rejectUnauthorized: true, ALPNProtocols: ["http/1.1"], secureContext: context };
  };
  return (protocol, proxy = "") => {
    const name = `${protocol} ${proxy}`;
    const known = agents.get(name);
    if (known) return known;
    const agent = createAgent(protocol === "https:" ? serverTls() : undefined, options.guard);
    if (proxy !== "") openTunnels(agent, new URL(proxy), options.proxyTls, serverTls);
    agents.set(name, agent);
    return agent;
  };
}

function createAgent(tls: ConnectionOptions | undefined, guard: SsrfGuard | undefined): Agent {
  // An idle connection does not keep the process running: Node's agent sees to it.
  const settings = { keepAlive: true, timeout: IDLE_CONNECTION_MS, ...(guard && { lookup: guardedLookup(guard) }) };
  const { Agent } = httpModule(tls !== undefined);
  return new Agent({ ...settings, ...tls }).on("free", (socket: Duplex) => idleSince.set(socket, performance.now()));
}

function guardedLookup(guard: SsrfGuard): LookupFunction {
  return (hostname, { all }, callback) => {
    guard.resolve(hostname).then(
      (addresses) => {
        const [first] = addresses;
        if (all) callback(null, [...addresses]);
        else callback(null, first?.address ?? "", first?.family ?? 0);
      },
      (error: unknown) => callback(error as Error, "", 0),
    );
  };
}

type OnSocket = (error: Error | null, socket?: Duplex) => void;

/** Makes an agent connect through a proxy, for http too, so that the proxy sees nothing of a request. */
function openTunnels(agent: Agent, proxy: URL, proxyTls: ConnectionOptions, serverTls: () => ConnectionOptions): void {
  const isTls = (agent as { protocol?: string }).protocol === "https:";
  const open = async ({ host, port, until, servername }: TunnelArgs & { servername?: string }): Promise<Duplex> => {
    const signal = until?.();
    const socket = await connectThrough(proxy, proxyTls, `${withBrackets(String(host))}:${port}`, signal);
    // Node would keep the connection of a request that has ended in the meantime.
    if (signal?.aborted) throw socket.destroy() && new Error("aborted");
    if (!isTls) return socket;
    const { connect } = process.getBuiltinModule("node:tls");
    return connect({ ...serverTls(), socket, ...(servername && { servername }) });
  };
  Object.assign(agent, {
    createConnection: (args: TunnelArgs, done: OnSocket) => {
      open(args).then((socket) => done(null, socket), done);
    },
  });
}

function withBrackets(host: string): string {
  return host.includes(":") ? `[${withoutBrackets(host)}]` : host;
}

/** A connection through a proxy (RFC 9110 section 9.3.6). */
function connectThrough(
  proxy: URL,
  tls: ConnectionOptions,
  authority: string,
  until: AbortSignal | undefined,
): Promise<Socket> {
  const authorization = proxyAuthorization(proxy);
  const isTls = proxy.protocol === "https:";
  const { request } = httpModule(isTls);
  const host = withoutBrackets(proxy.hostname);
  // Node would verify the certificate against the Host header, which names the server behind the proxy.
  const servername = isIP(host) === 0 ? host : "";
  return new Promise((resolve, reject) => {
    const connecting = request({
      ...(isTls && { ...tls, servername, ALPNProtocols: ["http/1.1"] }),
      agent: false,
      method: "CONNECT",
      host,
      port: proxy.port || (isTls ? 443 : 80),
      path: authority,
      headers: { host: authority, ...(authorization && { "proxy-authorization": authorization }) },
      insecureHTTPParser: false,
    });
    const abort = () => connecting.destroy(new Error("aborted"));
    until?.addEventListener("abort", abort, { once: true });
    const settle = () => until?.removeEventListener("abort", abort);
    connecting.once("error", (error) => {
      settle();
      reject(new ProxyError(error));
    });
    connecting.once("connect", ({ statusCode = 0 }, socket, head) => {
      settle();
      if (statusCode >= 200 && statusCode < 300) {
        if (head.length > 0) socket.unshift(head);
        return resolve(socket as Socket);
      }
      socket.destroy();
      reject(new ProxyError(undefined, statusCode));
    });
    connecting.end();
  });
}

// The ports of other protocols that no `fetch` connects to (Fetch Standard, "port blocking"): a server that listens there
// could take a request for commands of its own protocol.
const BLOCKED = new Set(
  (
    "1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123 135 137 " +
    "139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995 1719 1720 " +
    "1723 2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080"
  ).split(" "),
);

/** Whether `fetch` refuses the port of an address. */
export function isBlockedPort({ port }: URL): boolean {
  return BLOCKED.has(port);
}
