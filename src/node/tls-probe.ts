import { once } from "node:events";
import { request } from "node:http";
import { isIP, type LookupFunction, type Socket } from "node:net";
import { connect, type PeerCertificate, type TLSSocket } from "node:tls";
import type { ClientCertificate } from "./client-certificate.js";

/** How a server is reached that is looked at. */
export interface TlsProbeOptions {
  /** The proxy that leads there, credentials and all. */
  proxy?: string | undefined;
  /** Authorities in place of Node's own list, PEM. */
  ca?: readonly string[] | undefined;
  /** What the server was shown. */
  clientCertificate?: ClientCertificate | undefined;
  /** Gives the addresses that may be connected to. */
  lookup?: LookupFunction | undefined;
}

/** What a handshake showed. */
export interface TlsProbe {
  /** Whose certificate it was: the proxy's own comes first. */
  whose: "server" | "proxy";
  /** Who issued the last certificate of the chain that was sent; undefined where all was well. */
  issuer?: string;
  /** Whether it vouches for itself. */
  selfSigned?: boolean;
  /** The code of the alert by which the server ended the connection, such as for want of a client certificate. */
  alert?: string;
}

const LIMIT_MS = 3000;
/** A server that misses a client certificate says so one round trip after the handshake. */
const ALERT_MS = 500;

/**
 * Shakes hands with a server once more, to find out what its certificate is or why it hung up: `fetch` tells neither.
 * Nothing is sent, and nothing of what comes is trusted.
 *
 * @param forAlert waits for the alert that may follow a handshake that went well, as in TLS 1.3
 * @returns undefined where the second attempt showed nothing
 */
export async function probeTls(url: URL, options: TlsProbeOptions, forAlert: boolean): Promise<TlsProbe | undefined> {
  const signal = AbortSignal.timeout(LIMIT_MS);
  let open: Socket | undefined;
  try {
    const way = options.proxy === undefined ? undefined : await tunnel(url, new URL(options.proxy), options.ca, signal);
    if (way && "seen" in way) return way.seen;
    open = way?.socket;
    const socket = shakeHands(url, way?.socket, options);
    // It takes the tunnel along when it ends; Node breaks down where the tunnel is ended beneath it.
    open = socket;
    return await judged(socket, forAlert, signal);
  } catch {
    return undefined;
  } finally {
    open?.destroy();
  }
}

function shakeHands(url: URL, socket: Socket | undefined, options: TlsProbeOptions): TLSSocket {
  const { ca, clientCertificate, lookup } = options;
  const host = bare(url.hostname);
  return connect({
    ...(socket ? { socket } : { host, port: Number(url.port || 443) }),
    ...(isIP(host) === 0 && { servername: host }),
    ...(ca && { ca: [...ca] }),
    ...(lookup && { lookup }),
    ...clientCertificate,
    ALPNProtocols: ["http/1.1"],
    // What is not trusted is to be looked at. Such a connection carries nothing and ends right after.
    rejectUnauthorized: false,
  });
}

function bare(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}

function judged(socket: TLSSocket, forAlert: boolean, signal: AbortSignal): Promise<TlsProbe | undefined> {
  const whose = "server";
  return new Promise((resolve) => {
    const gone = ({ code = "" }: NodeJS.ErrnoException) => {
      resolve(/ALERT/.test(code) ? { whose, alert: code } : undefined);
    };
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
    socket.on("error", gone);
    socket.on("close", () => resolve(undefined));
    socket.resume();
    socket.once("secureConnect", () => {
      if (!socket.authorized) resolve({ whose, ...describe(socket.getPeerCertificate(true)) });
      else if (forAlert) setTimeout(() => resolve(undefined), ALERT_MS).unref();
      else resolve(undefined);
    });
  });
}

function describe(leaf: PeerCertificate & { issuerCertificate?: PeerCertificate }): Partial<TlsProbe> {
  let last: PeerCertificate & { issuerCertificate?: PeerCertificate } = leaf;
  for (let depth = 0; depth < 10; depth++) {
    const next = last.issuerCertificate;
    if (next === undefined || next === last || next.fingerprint256 === last.fingerprint256) break;
    last = next;
  }
  const isOwn = last === leaf && nameOf(leaf.subject) === nameOf(leaf.issuer);
  return { issuer: nameOf(last.issuer), selfSigned: isOwn };
}

/** Such as `Zscaler Root CA, Zscaler Inc.` */
function nameOf(name: PeerCertificate["issuer"] | undefined): string {
  const { CN, O, OU } = (name ?? {}) as unknown as Record<string, string | string[] | undefined>;
  const words = [CN, O ?? (CN === undefined ? OU : undefined)].flatMap((part) => part ?? []);
  return words.join(", ") || "nobody that it names";
}

type Tunnel = { socket: Socket } | { seen: TlsProbe };

/** Asks a proxy for a connection, as a request would; where the proxy's own certificate is not trusted, that is it. */
async function tunnel(url: URL, proxy: URL, ca: TlsProbeOptions["ca"], signal: AbortSignal): Promise<Tunnel> {
  const own = proxy.protocol === "https:" ? shakeHands(proxy, undefined, { ca }) : undefined;
  try {
    if (own) await once(own, "secureConnect", { signal });
    // The password is for a proxy that is known to be the one that was named.
    if (own === undefined || own.authorized) return { socket: await join(url, proxy, own, signal) };
    const seen = { whose: "proxy" as const, ...describe(own.getPeerCertificate(true)) };
    own.destroy();
    return { seen };
  } catch (error) {
    own?.destroy();
    throw error;
  }
}

function join(url: URL, proxy: URL, own: Socket | undefined, signal: AbortSignal): Promise<Socket> {
  const target = `${url.hostname}:${url.port || 443}`;
  const credentials = [proxy.username, proxy.password].map(decodeURIComponent).join(":");
  const basic = `Basic ${Buffer.from(credentials).toString("base64")}`;
  const asked = request({
    ...(own ? { createConnection: () => own } : { host: bare(proxy.hostname), port: Number(proxy.port || 80) }),
    method: "CONNECT",
    path: target,
    headers: { host: target, ...(credentials !== ":" && { "proxy-authorization": basic }) },
    agent: false,
  });
  // Not the request's own signal: it would end the tunnel beneath what runs in it.
  const stop = () => void asked.destroy(new Error("no answer in time"));
  signal.addEventListener("abort", stop, { once: true });
  return new Promise<Socket>((resolve, reject) => {
    asked.on("error", reject);
    asked.on("connect", ({ statusCode }, socket) => {
      if (statusCode === 200) resolve(socket as Socket);
      else reject(new Error("the proxy gives no tunnel"));
    });
    asked.on("response", () => stop());
    asked.end();
  }).finally(() => signal.removeEventListener("abort", stop));
}
