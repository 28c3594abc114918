import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "vitest";
import { makeAuthority } from "../../helpers/certificates.js";

/** The page of devices that the service returns, whatever the request. */
const PAGE = JSON.stringify({ status: "success", pagination: {}, summaries: [{ id: "dev_1", type: "device" }] });

/** The port of a server that listens. */
export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

/** Makes a server listen on 127.0.0.1. */
export async function listening<T extends Server>(server: T): Promise<T> {
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return server;
}

/** `https://service.test` with a certificate of its own authority, and a proxy that tunnels every name to it. */
async function startProxiedService() {
  const authority = makeAuthority();
  authority.sign({ name: "server", subject: "/CN=service.test", names: "DNS:service.test,IP:127.0.0.1" });
  const seen = {
    /** The requests that the service received: the path and the token. */
    served: [] as { path: string; token: string | undefined }[],
    /** The requests that the proxy received. */
    proxied: [] as { target: string; headers: IncomingMessage["headers"] }[],
    /** The status line that the proxy returns instead of a tunnel. */
    refusal: undefined as string | undefined,
  };
  function serve(request: IncomingMessage, response: ServerResponse): void {
    seen.served.push({ path: request.url?.split("?")[0] ?? "", token: request.headers.authorization });
    response.setHeader("content-type", "application/json");
    response.end(PAGE);
  }
  function tunnel(request: IncomingMessage, socket: Duplex): void {
    seen.proxied.push({ target: request.url ?? "", headers: request.headers });
    if (seen.refusal !== undefined) {
      socket.end(`HTTP/1.1 ${seen.refusal}\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    const upstream = connect(portOf(service), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      upstream.pipe(socket).pipe(upstream);
    });
    for (const end of [socket, upstream]) end.on("error", () => {});
  }
  const own = { key: authority.read("server.key"), cert: authority.read("server.pem") };
  const service: Server = await listening(createTlsServer(own, serve) as unknown as Server);
  const refuse = (_request: IncomingMessage, response: ServerResponse) => response.writeHead(400).end();
  const proxy = await listening(createServer(refuse).on("connect", tunnel));
  return {
    seen,
    serve,
    /** The file with the authority of the service. */
    ca: authority.ca,
    /** The file with an authority that signed nothing here. */
    otherCa: makeAuthority("stranger").ca,
    /** The service without the proxy. */
    origin: `https://127.0.0.1:${portOf(service)}`,
    proxyHost: `127.0.0.1:${portOf(proxy)}`,
    proxyUrl: (credentials = "") => `http://${credentials}127.0.0.1:${portOf(proxy)}`,
    reset: () => void Object.assign(seen, { served: [], proxied: [], refusal: undefined }),
    close() {
      service.close();
      proxy.close();
    },
  };
}

/** `it` with {@link startProxiedService} for the file; each case starts without requests. */
export const proxiedTest = test
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
  .extend("fileService", { scope: "file" }, async ({}, { onCleanup }) => {
    const service = await startProxiedService();
    onCleanup(() => service.close());
    return service;
  })
  .extend("service", ({ fileService }) => {
    fileService.reset();
    return fileService;
  });

/** The API token that the service gets. */
export const TOKEN = "tok_0123456789abcdef";

/** The arguments that list the devices of `https://service.test`, without retries. */
export const LIST = [
  ...["devices", "list", "--pool", "p", "-o", "id", "--retries", "0", "--base-url", "https://service.test"],
];

/** The result of a list that works. */
export const LISTED = { code: 0, stdout: "dev_1\n", stderr: "" };
