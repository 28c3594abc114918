import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { temporaryFolder } from "../../helpers/cli.js";
import type { Peer, PeerOptions, Seen } from "../../helpers/peer.js";

/** The names of the simulated public servers; the last one is in no certificate. */
type PublicHost = "mcp.test" | "as.test" | "service.test" | "wrong.test";

/** Servers that look public to the program: reached through a proxy, with certificates for their names. */
export interface PublicWorld {
  at(host: PublicHost): PeerOptions;
  route(peers: Record<PublicHost, Peer>): void;
  /** Flags that the program needs. */
  readonly flags: readonly string[];
  close(): Promise<void>;
}

/** Why public servers cannot be simulated on this machine. */
export const withoutPublicWorld = hasOpenssl() ? undefined : "the program openssl makes the certificates";

function hasOpenssl(): boolean {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Starts the proxy. It logs and refuses a tunnel to any other host, which no case may request. */
export async function startPublicWorld(log: Seen[]): Promise<PublicWorld> {
  const tls = certificates();
  const sockets = new Set<Duplex>();
  let peers: Partial<Record<string, Peer>> = {};
  const server = createServer((_request, response) => response.writeHead(400).end());
  server.on("connect", (request: IncomingMessage, socket: Duplex) => {
    const { url = "" } = request;
    const peer = peers[url.replace(/:443$/, "")];
    sockets.add(socket);
    socket.on("error", () => undefined);
    if (!peer) {
      log.push({ peer: "proxy", method: "CONNECT", path: url, url, headers: {}, body: "" });
      return void socket.end("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n");
    }
    tunnel(socket, peer.port, sockets);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    at: (host) => ({ origin: `https://${host}`, tls }),
    route: (given) => {
      peers = given;
    },
    flags: ["--proxy", `http://127.0.0.1:${port}`, "--ca-file", tls.ca],
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function tunnel(socket: Duplex, port: number, sockets: Set<Duplex>): void {
  const upstream: Socket = connect(port, "127.0.0.1", () => {
    socket.write("HTTP/1.1 200 OK\r\n\r\n");
    upstream.pipe(socket).pipe(upstream);
  });
  sockets.add(upstream);
  upstream.on("error", () => undefined);
}

let made: { key: string; cert: string; ca: string } | undefined;

/** A certificate authority and its certificate for all public names; `ca` is a file. */
function certificates(): { key: string; cert: string; ca: string } {
  if (made) return made;
  const folder = temporaryFolder();
  const run = (...args: string[]) => execFileSync("openssl", args, { cwd: folder, stdio: "ignore" });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  run("req", "-x509", ...key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=authority of a test");
  run("req", ...key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=mcp.test");
  writeFileSync(join(folder, "names"), "subjectAltName=DNS:mcp.test,DNS:as.test,DNS:service.test\n");
  const signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names"];
  run("x509", "-req", "-in", "server.csr", "-out", "server.pem", ...signed);
  const read = (name: string) => readFileSync(join(folder, name), "utf8");
  made = { key: read("server.key"), cert: read("server.pem"), ca: join(folder, "ca.pem") };
  return made;
}
