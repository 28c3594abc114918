// Adds a bearer token to every request, for the server scenarios, which log in nowhere. Everything else passes through as
// it is, in both directions: only the proxy's own address in Host and Origin becomes that of the sandbox.
import { once } from "node:events";
import { createServer, request as send } from "node:http";

/** Starts it in front of an MCP server. Returns its address and `close`. */
export async function authorizedProxy(url, token) {
  const target = new URL(url);
  const server = createServer((incoming, outgoing) => {
    const own = `:${server.address().port}`;
    const headers = Object.entries(incoming.headersDistinct).flatMap(([name, values]) =>
      values.map((value) => [name, ["host", "origin"].includes(name) ? rename(value, own, `:${target.port}`) : value]),
    );
    const { method, url: path } = incoming;
    const forwarded = send({ host: target.hostname, port: target.port, method, path, setHost: false, agent: false });
    for (const [name, value] of headers) forwarded.appendHeader(name, value);
    if (!forwarded.hasHeader("authorization")) forwarded.setHeader("authorization", `Bearer ${token}`);
    forwarded.on("response", (response) => {
      outgoing.writeHead(response.statusCode, response.rawHeaders);
      outgoing.flushHeaders();
      response.pipe(outgoing);
      response.on("aborted", () => outgoing.destroy());
    });
    forwarded.on("error", () => outgoing.destroy());
    outgoing.on("close", () => forwarded.destroy());
    incoming.pipe(forwarded);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}${target.pathname}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function rename(value, from, to) {
  return value.endsWith(from) ? value.slice(0, -from.length) + to : value;
}
