import { once } from "node:events";
import { isIP, type Socket } from "node:net";
import { connect, type PeerCertificate, type TLSSocket } from "node:tls";
import { withoutBrackets } from "../http/address.js";
import { httpModule } from "./agents.js";
import type { ClientCertificate } from "./http-send.js";
import { proxyAuthorization } from "./proxies.js";

/** How the probed server is reached. */
export interface TlsProbeOptions {
  /** The proxy in front of it, with its credentials. */
  proxy?: string | undefined;
  /** Authorities in place of Node's own list, PEM. */
  ca?: readonly string[] | undefined;
  /** Sent if the server requests one. */
  clientCertificate?: ClientCertificate | undefined;
}

/** The result of a handshake. */
export interface TlsProbe {
  /** Whose certificate it is: that of the proxy comes first. */
  whose: "server" | "proxy";
  /** Who issued the last certificate of the chain that was sent. */
  issuer?: string;
  /** Whether the certificate is self-signed. */
  selfSigned?: boolean;
  /** Node's code for why the certificate is not trusted; undefined for a trusted one. */
  problem?: string | undefined;
  /** The code of the alert with which the server ended the connection, for example because it requires a client certificate. */
  alert?: string;
}

const LIMIT_MS = 3000;
/** The alert for a missing client certificate comes one round trip after the handshake. */
const ALERT_MS = 500;

/**
 * Makes a TLS handshake with a server, to find out its certificate or why it closes the connection: `fetch` reports neither.
 * Sends nothing, and trusts nothing that it receives.
 *
 * @returns undefined if no handshake was completed and no alert received
 */
export async function probeTls(url: URL, options: TlsProbeOptions): Promise<TlsProbe | undefined> {
  const signal = AbortSignal.timeout(LIMIT_MS);
  let open: Socket | undefined;
  try {
    const via =
      options.proxy === undefined ? undefined : await openTunnel(url, new URL(options.proxy), options.ca, signal);
    if (via && "probe" in via) return via.probe;
    open = via?.socket;
    const socket = startHandshake(url, via?.socket, options);
    // Destroying it destroys the tunnel too; Node throws where the tunnel is destroyed first.
    open = socket;
    return await inspect(socket, signal);
  } catch {
    return undefined;
  } finally {
    open?.destroy();
  }
}

function startHandshake(url: URL, socket: Socket | undefined, options: TlsProbeOptions): TLSSocket {
  const { ca, clientCertificate } = options;
  const host = withoutBrackets(url.hostname);
  return connect({
    ...(socket ? { socket } : { host, port: Number(url.port || 443) }),
    ...(isIP(host) === 0 && { servername: host }),
    ...(ca && { ca: [...ca] }),
    ...clientCertificate,
    ALPNProtocols: ["http/1.1"],
    // The untrusted certificate is what the probe is for. The connection carries no data and is closed at once.
    rejectUnauthorized: false,
  });
}

function inspect(socket: TLSSocket, signal: AbortSignal): Promise<TlsProbe | undefined> {
  const whose = "server";
  return new Promise((resolve) => {
    const onError = ({ code = "" }: NodeJS.ErrnoException) => {
      resolve(/ALERT/.test(code) ? { whose, alert: code } : undefined);
    };
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
    socket.on("error", onError);
    socket.on("close", () => resolve(undefined));
    socket.resume();
    socket.once("secureConnect", () => {
      const probe = { whose, ...describe(socket) } as const;
      // In TLS 1.3 the alert may follow a completed handshake.
      if (socket.authorized) setTimeout(() => resolve(probe), ALERT_MS);
      else resolve(probe);
    });
  });
}

function describe(socket: TLSSocket): Partial<TlsProbe> {
  const leaf: PeerCertificate & { issuerCertificate?: PeerCertificate } = socket.getPeerCertificate(true);
  let last = leaf;
  // The issuer of a root is the root.
  for (let depth = 0; depth < 10 && last.issuerCertificate !== undefined; depth++) last = last.issuerCertificate;
  const isOwn = last.fingerprint256 === leaf.fingerprint256 && nameOf(leaf.subject) === nameOf(leaf.issuer);
  // Null for a trusted certificate, whatever its type says.
  const problem = socket.authorized ? undefined : String(socket.authorizationError);
  return { issuer: nameOf(last.issuer), selfSigned: isOwn, problem };
}

/** Such as `Zscaler Root CA, Zscaler Inc.` */
function nameOf(name: PeerCertificate["issuer"] | undefined): string {
  const { CN, O, OU } = (name ?? {}) as unknown as Record<string, string | string[] | undefined>;
  const words = [CN, O ?? (CN === undefined ? OU : undefined)].flatMap((part) => part ?? []);
  return words.join(", ") || "an unnamed issuer";
}

type Tunnel = { socket: Socket } | { probe: TlsProbe };

/** Opens a tunnel through a proxy; where the proxy's certificate is not trusted, that is the result. */
async function openTunnel(url: URL, proxy: URL, ca: TlsProbeOptions["ca"], signal: AbortSignal): Promise<Tunnel> {
  const proxySocket = proxy.protocol === "https:" ? startHandshake(proxy, undefined, { ca }) : undefined;
  try {
    if (proxySocket) await once(proxySocket, "secureConnect", { signal });
    // The password is only sent to a proxy whose certificate is trusted.
    if (proxySocket === undefined || proxySocket.authorized)
      return { socket: await connectThrough(url, proxy, proxySocket, signal) };
    const probe = { whose: "proxy" as const, ...describe(proxySocket) };
    proxySocket.destroy();
    return { probe };
  } catch (error) {
    proxySocket?.destroy();
    throw error;
  }
}

function connectThrough(url: URL, proxy: URL, proxySocket: Socket | undefined, signal: AbortSignal): Promise<Socket> {
  const target = `${url.hostname}:${url.port || 443}`;
  const authorization = proxyAuthorization(proxy);
  const connectRequest = httpModule(false).request({
    // With an agent, also with none for reuse, Node would not ask createConnection.
    ...(proxySocket
      ? { createConnection: () => proxySocket }
      : { agent: false, host: withoutBrackets(proxy.hostname), port: Number(proxy.port || 80) }),
    method: "CONNECT",
    path: target,
    headers: { host: target, ...(authorization && { "proxy-authorization": authorization }) },
  });
  // Not the signal option of the request: it would destroy the tunnel that TLS runs in.
  const stop = () => void connectRequest.destroy(new Error("no response in time"));
  signal.addEventListener("abort", stop, { once: true });
  return new Promise<Socket>((resolve, reject) => {
    connectRequest.on("error", reject);
    connectRequest.on("connect", ({ statusCode }, socket) => {
      if (statusCode === 200) resolve(socket as Socket);
      else reject(new Error("the proxy opened no tunnel"));
    });
    connectRequest.on("response", () => stop());
    connectRequest.end();
  }).finally(() => signal.removeEventListener("abort", stop));
}
