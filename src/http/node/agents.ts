import type { Agent, ClientRequestArgs } from "node:http";
import { isIP, type LookupFunction, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ConnectionOptions, SecureContext, SecureContextOptions } from "node:tls";
import ipaddr from "ipaddr.js";
import { AgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import type { PolicyOption } from "../../remedy.js";
import { bareHost, isLoopbackHost, percentDecoded, withoutBrackets } from "../address.js";
import type { AddressClass, Exemptions } from "../address-class.js";
import { classifyHost, findRule, isExempt, mostPublic, policyFor } from "../address-class.js";
import { explainOverride } from "../refuse.js";

/** An address of a name. */
export interface HostAddress {
  /** An IPv4 or IPv6 address. */
  address: string;
  /** 4 or 6. */
  family: number;
}

/** Looks up every address of a name, with the hosts file of the machine. */
export type Lookup = (hostname: string) => Promise<readonly HostAddress[]>;

/** Checks every connection that is made on behalf of one server. */
export interface SsrfGuard {
  /**
   * All addresses of a host, looked up and checked: only those may be connected to.
   *
   * @throws `AgentAuthError` `bad_address`, or what the lookup threw
   */
  resolve(hostname: string): Promise<readonly HostAddress[]>;
  /** Checks a host as it is written: a literal address, or a name that the proxy resolves. */
  checkWritten(hostname: string): void;
  addressClass(): Promise<AddressClass>;
  /**
   * Called with the host of each response. A name that answers and was not looked up, because a test intercepts requests,
   * has no known address: it counts as public, and is not looked up later.
   */
  onResponse(hostname: string): void;
}

export interface SsrfGuardOptions {
  exemptions: Exemptions;
  lookup: Lookup;
  /** Whether the server is behind a proxy, so that its address is unknown: it counts as public. */
  isBehindProxy: boolean;
}

/**
 * Creates the guard of one server. A server that was public once stays so: a name that resolves into our network later
 * is a DNS rebinding attack.
 */
export function createSsrfGuard(server: string, { exemptions, lookup, isBehindProxy }: SsrfGuardOptions): SsrfGuard {
  const serverHost = bareHost(server);
  let knownClass = classifyHost(serverHost) ?? (isBehindProxy ? "public" : undefined);

  async function addressClass(): Promise<AddressClass> {
    knownClass ??= mostPublic(classifyAddresses(await lookup(serverHost)));
    return knownClass;
  }

  function checkServer(hostname: string, addresses: readonly HostAddress[]): void {
    const classes = classifyAddresses(addresses);
    const mostPublicClass = mostPublic([...classes, ...(knownClass === undefined ? [] : [knownClass])]);
    const lessPublic = addresses.find((_, nth) => mostPublicClass === "public" && classes[nth] !== "public");
    if (lessPublic && !isExempt(exemptions, hostname)) throw rebindingError(hostname, lessPublic.address);
    knownClass = mostPublicClass;
  }

  return {
    addressClass,
    onResponse(hostname) {
      if (bareHost(hostname) === serverHost) knownClass ??= "public";
    },
    checkWritten(hostname) {
      const written = classifyHost(hostname);
      if (written === undefined) return;
      if (!policyFor(knownClass, exemptions)(hostname, written)) throw addressBlockedError(hostname, hostname, written);
    },
    async resolve(hostname) {
      if (classifyHost(hostname) === "forbidden") throw addressBlockedError(hostname, hostname, "forbidden");
      const family = isIP(bareHost(hostname));
      const addresses = family > 0 ? [{ address: bareHost(hostname), family }] : await lookup(hostname);
      const classes = classifyAddresses(addresses);
      const addressAt = (nth: number) => addresses[nth]?.address ?? "";
      const forbidden = classes.indexOf("forbidden");
      if (forbidden >= 0) throw addressBlockedError(hostname, addressAt(forbidden), "forbidden");
      const elsewhere = isLoopbackHost(hostname) ? classes.findIndex((found) => found !== "loopback") : -1;
      if (elsewhere >= 0) throw addressBlockedError(hostname, addressAt(elsewhere), "public");
      if (bareHost(hostname) === serverHost) checkServer(hostname, addresses);
      else if (classes.some((found) => found !== "public")) {
        const policy = policyFor(await addressClass(), exemptions);
        for (const [nth, found] of classes.entries()) {
          if (!policy(hostname, found)) throw addressBlockedError(hostname, addressAt(nth), found);
        }
      }
      return addresses;
    },
  };
}

/** The classes of addresses; an invalid address is forbidden. */
function classifyAddresses(addresses: readonly HostAddress[]): AddressClass[] {
  return addresses.map(({ address }) => classifyHost(address) ?? "forbidden");
}

function addressBlockedError(hostname: string, address: string, addressClass: AddressClass): AgentAuthError {
  const { rule, override } = findRule(addressClass);
  const where = hostname === address ? "" : ` (${quote(address)})`;
  return blockedError(`the host ${quote(hostname)}${where} ${rule}`, override);
}

function rebindingError(hostname: string, address: string): AgentAuthError {
  return blockedError(
    `the host ${quote(hostname)} leads to ${quote(address)} beside public addresses, through which a remote server could reach this network (RFC 9728 section 7.7)`,
    "allowPrivateNetwork",
  );
}

function blockedError(message: string, override: PolicyOption | undefined): AgentAuthError {
  const advice = override && explainOverride(override);
  return new AgentAuthError("bad_address", message, { class: "refused", ...advice });
}

/** The proxies (http:// or https://) by the scheme of the requested address; `http` also serves https where that has none. */
export interface Proxies {
  /** The proxy for https addresses. */
  https?: string | undefined;
  /** The proxy for http addresses. */
  http?: string | undefined;
  /** Whether servers on this machine are reached through them too. Default: no. */
  forLoopback?: boolean | undefined;
}

/** The proxies that requests go through. */
export interface ProxyOptions {
  /** The proxies to go through. */
  proxies?: Proxies | undefined;
  /** The hosts reached without a proxy, in the form of the environment variable `NO_PROXY`. */
  noProxy?: string | undefined;
}

/** The proxy for an address; a server on this machine has none by default, since the proxy of a network cannot reach it. */
export function proxyChooser({ proxies = {}, noProxy = "" }: ProxyOptions): (url: URL) => string | undefined {
  const isBypassed = bypassesProxy(noProxy);
  return (url) => {
    if ((!proxies.forLoopback && isLoopbackHost(url.hostname)) || isBypassed(url)) return undefined;
    return url.protocol === "https:" ? (proxies.https ?? proxies.http) : proxies.http;
  };
}

/** The credentials in the address of a proxy as a `Proxy-Authorization` header; undefined where it has none. */
function proxyAuthorization({ username, password }: URL): string | undefined {
  if (username === "" && password === "") return undefined;
  return `Basic ${Buffer.from(`${percentDecoded(username)}:${percentDecoded(password)}`).toString("base64")}`;
}

type BypassRule = (host: string, port: number) => boolean;

/**
 * Reads `NO_PROXY`: names including their subdomains (also written `.name` or `*.name`), addresses, CIDR ranges, each
 * optionally with a port, and `*` for everything; separated by commas or blanks.
 *
 * @returns whether an address is reached without a proxy. Names are compared as they are written, never looked up
 */
export function bypassesProxy(noProxy: string): (url: URL) => boolean {
  // An empty entry, between a comma and a blank, names no host.
  const rules = noProxy.split(/[,\s]/).map(parseBypassRule);
  return (url) => {
    const host = bareHost(url.hostname);
    const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
    return rules.some((rule) => rule(host, port));
  };
}

function parseBypassRule(entry: string): BypassRule {
  if (entry === "*") return () => true;
  if (ipaddr.isValidCIDR(entry)) {
    const [base, bits] = ipaddr.parseCIDR(entry);
    return (host) => isIn(host, base, bits);
  }
  const [, name = "", port] = /^(.*?)(?::(\d{1,5}))?$/.exec(ipaddr.IPv6.isValid(entry) ? `[${entry}]` : entry) ?? [];
  const expected = bareHost(name).replace(/^\*?\./, "");
  const matches: (host: string) => boolean = ipaddr.isValid(expected)
    ? (host) => isSame(host, expected)
    : (host) => host === expected || host.endsWith(`.${expected}`);
  return (host, requestedPort) => (port === undefined || Number(port) === requestedPort) && matches(host);
}

/** An IPv4-mapped IPv6 address is the same as its IPv4 address. */
function isSame(host: string, expected: string): boolean {
  return ipaddr.isValid(host) && ipaddr.process(host).toString() === ipaddr.process(expected).toString();
}

function isIn(host: string, base: ipaddr.IPv4 | ipaddr.IPv6, bits: number): boolean {
  if (!ipaddr.isValid(host)) return false;
  const address = ipaddr.process(host);
  return address.kind() === base.kind() && address.match(base, bits);
}

export class ProxyError extends Error {
  override readonly name = "ProxyError";
  /** What it answered in place of a tunnel. */
  readonly status: number | undefined;

  constructor(cause: Error | undefined, status?: number) {
    super(cause?.message ?? `HTTP ${status}`, cause && { cause });
    this.status = status;
  }
}

/**
 * The failure of a proxy as `proxy_failed` with the proxy's name; undefined for a failure of TLS, which is explained as that
 * of a server.
 *
 * With a proxy, a refused connection and an unknown host name are those of the proxy, not of the service. What the proxy
 * reports of the service is the service's failure (RFC 9110 sections 15.6.3 to 15.6.5).
 */
export function explainProxyFailure(error: ProxyError, proxy: string, url: URL): AgentAuthError | undefined {
  const { status = 0 } = error;
  const { host } = new URL(proxy);
  if (status >= 502 && status <= 504) {
    const message = `${url.host}: no connection, as the proxy ${host} reports (HTTP ${status})`;
    const hint = "check that the service runs at this address and port, and that the proxy may reach it";
    const code = status === 504 ? "timeout" : "connection_refused";
    return new AgentAuthError(code, message, { class: "unavailable", hint, cause: error });
  }
  const reason = describeRefusal(error);
  if (reason === undefined) return undefined;
  const message = `${url.host}: the proxy ${host} ${reason}`;
  return new AgentAuthError("proxy_failed", message, { class: "unavailable", cause: error });
}

function describeRefusal({ status, cause }: ProxyError): string | undefined {
  if (status === 407) return "requires a user name and password, or rejected those given (HTTP 407)";
  if (status !== undefined) return `refused the connection (HTTP ${status})`;
  const { code } = cause as { code?: unknown };
  if (typeof code !== "string") return "cannot be reached";
  return /^E(?!PROTO|RR_)/.test(code) ? `cannot be reached (${code})` : undefined;
}

/** What a tunnel needs to know of the request that it is opened for. */
export interface TunnelArgs extends ClientRequestArgs {
  /** The signal that aborts the tunnel while it is being opened. */
  until?: AbortSignal | undefined;
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
    const name = String(host).includes(":") ? `[${withoutBrackets(String(host))}]` : host;
    const socket = await connectThrough(proxy, proxyTls, `${name}:${port}`, until);
    // Node would keep the connection of a request that has ended in the meantime.
    if (until?.aborted) throw socket.destroy() && new Error("aborted");
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

export function isBlockedPort({ port }: URL): boolean {
  return BLOCKED.has(port);
}
