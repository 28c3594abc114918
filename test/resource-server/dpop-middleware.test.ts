import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
  request as send,
} from "node:http";
import { createRequire } from "node:module";
import { getRequestListener } from "@hono/node-server";
import { Hono, type MiddlewareHandler } from "hono";
import { describe, expect } from "vitest";
import type { AuthInfo, VerifiedToken } from "../../src/resource-server/index.js";
import { listening } from "./listening.js";
import { holderTest } from "./proofs.js";
import { pass, type Server } from "./support.js";

type Authenticated = IncomingMessage & { auth?: AuthInfo };
type Handler = (request: Authenticated, response: { json(body: unknown): void }) => unknown;
type Middleware = (request: never, response: never, next: never) => unknown;
const express = createRequire(import.meta.url)("express") as () => RequestListener & {
  use(path: string, ...all: (Middleware | Handler)[]): void;
};

const test = holderTest.extend({ options: { dpop: "required", dpopNonces: true } });

/** Each answers with the client's name, below the path of the resource, whatever address it is reached at. */
const SERVERS: Record<string, (server: Server) => RequestListener> = {
  "Node's http"(server) {
    const guard = server.middleware();
    return (request: Authenticated, response: ServerResponse) =>
      guard(request, response, () => response.end(JSON.stringify(request.auth?.clientId)));
  },
  Express(server) {
    const app = express();
    const answer: Handler = (request, response) => response.json(request.auth?.clientId);
    app.use("/mcp", server.middleware(), answer);
    return app;
  },
  Hono(server) {
    const app = new Hono<{ Variables: { verified: VerifiedToken } }>();
    const guard: MiddlewareHandler<{ Variables: { verified: VerifiedToken } }> = server.hono();
    app.use("/mcp/*", guard);
    app.all("/mcp", (context) => context.json(context.get("verified").clientId));
    return getRequestListener(app.fetch);
  },
  "a protected handler"(server) {
    const handler = server.protect((_, { verified }) => Response.json(verified.clientId));
    return getRequestListener(handler);
  },
};

/** Sends a POST whose headers go out as they are. */
async function post(
  origin: string,
  path: string,
  headers: readonly string[],
): Promise<[number | undefined, string, string]> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve, reject) => {
    const all = ["host", "inner.internal", "content-length", "0", ...headers];
    const sent = send({ hostname, port, path, method: "POST", headers: all }, async (answer) => {
      const chunks = await answer.toArray();
      resolve([answer.statusCode, String(answer.headers["dpop-nonce"]), Buffer.concat(chunks).toString()]);
    });
    sent.on("error", reject).end();
  });
}

describe.each(Object.keys(SERVERS))("a proof that comes through %s", (name) => {
  const it = test
    .extend("origin", ({ server }) => listening(createServer(SERVERS[name]?.(server))))
    .extend("nonce", ({ server }) => server.dpopNonce())
    /** The headers of a request with a proof. */
    .extend("headers", ({ holder, nonce }) => async (claims = {}) => [
      ...["authorization", `DPoP ${holder.token}`],
      ...["dpop", await holder.prove({ claims: { nonce, ...claims } })],
    ]);

  it("is held against the method and the address that the client knows", async ({ origin, headers }) => {
    expect(await post(origin, "/mcp?session=1", await headers())).toEqual([200, "undefined", '"agent"']);
    for (const claims of [{ htm: "GET" }, { htu: `${origin}/mcp` }, { htu: "https://mcp.example/" }]) {
      const [status, , body] = await post(origin, "/mcp", await headers(claims));
      expect([status, body]).toEqual([401, expect.stringContaining("invalid_dpop_proof")]);
    }
  });

  it("is refused where there are two, of which each is good", async ({ origin, headers }) => {
    const two = [...(await headers()), ...(await headers()).slice(2)];
    const [status, , body] = await post(origin, "/mcp", two);
    expect([status, body]).toEqual([401, expect.stringContaining("invalid_dpop_proof")]);
  });

  it("is answered with a nonce where its own is missing or grows old", async ({
    signer,
    server,
    origin,
    nonce,
    headers,
  }) => {
    const [status, given, body] = await post(origin, "/mcp", await headers({ nonce: undefined }));
    expect([status, given, body]).toEqual([401, nonce, expect.stringContaining("use_dpop_nonce")]);
    await pass(signer, 300);
    const fresh = await server.dpopNonce();
    expect(await post(origin, "/mcp", await headers())).toEqual([200, fresh, '"agent"']);
  });
});

test("a proof is found in the header fields where there are no raw ones", async ({ signer, holder }) => {
  const plain = signer.server();
  const statuses: number[] = [];
  for (const dpop of [await holder.prove(), [await holder.prove(), await holder.prove()]]) {
    const response = { statusCode: 200, setHeader: () => undefined, end: () => undefined };
    const headers = { authorization: `DPoP ${holder.token}`, dpop };
    await plain.middleware()({ method: "POST", url: "/mcp", headers }, response, () => undefined);
    statuses.push(response.statusCode);
  }
  expect(statuses).toEqual([200, 401]);
});

test("a request without a method and an address is a GET of the root", async ({ signer, holder }) => {
  const response = { statusCode: 0, setHeader: () => undefined, end: () => undefined };
  const dpop = await holder.prove({ claims: { htm: "GET", htu: "https://mcp.example/" } });
  const request: { headers: Record<string, string>; auth?: unknown } = {
    headers: { authorization: `DPoP ${holder.token}`, dpop },
  };
  await signer.server().middleware()(request, response, () => undefined);
  expect([request.auth, response.statusCode]).toEqual([expect.objectContaining({ clientId: "agent" }), 0]);
});
