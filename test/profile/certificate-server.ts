import { chmodSync, readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { PeerCertificate, TLSSocket } from "node:tls";
import { makeAuthority } from "../helpers/certificates.js";

const PAGE = JSON.stringify({ status: "success", pagination: {}, summaries: [{ id: "dev_1", type: "device" }] });

/** A server that requires a client certificate, with one of its authority and one of another. */
export async function startCertificateServer() {
  const authority = makeAuthority();
  const mine = authority.sign({ name: "mine", subject: "/CN=the agent" });
  const stranger = makeAuthority("other").sign({ name: "stranger", subject: "/CN=a stranger" });
  for (const { key } of [mine, stranger]) chmodSync(key, 0o600);
  const { cert, key } = authority.sign({ name: "server", subject: "/CN=server", names: "IP:127.0.0.1" });
  const own = { cert: readFileSync(cert), key: readFileSync(key), ca: readFileSync(authority.ca) };
  /** The name in the certificate of each request. */
  const callers: (string | undefined)[] = [];
  const server = createServer({ ...own, requestCert: true, rejectUnauthorized: true }, (request, response) => {
    const peer = (request.socket as TLSSocket).getPeerCertificate() as PeerCertificate | undefined;
    callers.push(peer?.subject.CN as string | undefined);
    if (request.url?.startsWith("/mcp")) response.writeHead(401, { "www-authenticate": "Bearer" }).end();
    else response.writeHead(200, { "content-type": "application/json" }).end(PAGE);
  });
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const fixed = ["devices", "list", "--pool", "p", "-o", "id", "--retries", "0", "--base-url", origin];
  return {
    authority,
    mine,
    stranger,
    callers,
    origin,
    /** The arguments that list devices at the server. */
    list: [...fixed, "--ca-file", authority.ca],
    close: () => server.close(),
  };
}

/** What {@link startCertificateServer} returns. */
export type CertificateServer = Awaited<ReturnType<typeof startCertificateServer>>;

/** The environment of a run that lists. */
export const LIST_ENV = { AGENTAUTH_API_TOKEN: "tok_0123456789abcdef" };
