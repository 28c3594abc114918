import { createServer, type IncomingMessage, type RequestListener, request as send } from "node:http";
import { createRequire } from "node:module";
import { inspect } from "node:util";
import { Hono, type MiddlewareHandler } from "hono";
import { describe, expect } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import type { AuthInfo, VerifiedToken } from "../../src/resource-server/index.js";
import { listening } from "./listening.js";
import { CHALLENGED, it, METADATA_URL, outcome, REFUSED, RESOURCE, type Signer } from "./support.js";

type Authenticated = IncomingMessage & { auth?: AuthInfo; body?: { admin?: boolean } };

/** What is used of Express, which brings no types of its own. */
type Handler = (request: Authenticated, response: { json(body: unknown): void }, next: () => void) => unknown;
type Middleware = (request: never, response: never, next: never) => unknown;
const express = createRequire(import.meta.url)("express") as {
  (): RequestListener & { get(path: string, handler: Handler): void; use(path: string, ...all: Middleware[]): void };
  json(): Handler;
};

describe("the middleware on Node's http", () => {
  async function start(
    signer: Signer,
    options?: Parameters<ReturnType<Signer["server"]>["middleware"]>[0],
  ): Promise<string> {
    const guard = signer.server().middleware(options);
    return listening(
      createServer((request: Authenticated, response) =>
        guard(request, response, (error) => {
          if (error) return response.writeHead(500).end();
          return response.end(JSON.stringify([request.auth, request.auth?.token, inspect(request.auth)]));
        }),
      ),
    );
  }

  it("lets a good token through and says who is asking, in the form of the MCP SDK", async ({ signer }) => {
    const token = await signer.sign();
    const response = await fetch(`${await start(signer)}/mcp`, { headers: { authorization: `Bearer ${token}` } });
    const [auth, revealed, inspected] = (await response.json()) as [Record<string, unknown>, string, string];
    expect(auth).toEqual({
      clientId: "agent",
      scopes: ["mcp"],
      expiresAt: signer.claims()["exp"],
      resource: RESOURCE,
      extra: { subject: "alice", issuer: signer.issuer.issuer, claims: signer.claims() },
    });
    expect(revealed).toBe(token);
    expect(inspected).not.toContain(token);
  });

  it("answers by itself where there is none, and where it is not good", async ({ signer }) => {
    const origin = await start(signer);
    expect(outcome(await fetch(`${origin}/mcp`))).toEqual([401, CHALLENGED]);
    const bad = await fetch(`${origin}/mcp`, { headers: { authorization: "Bearer bad" } });
    expect(outcome(bad)).toEqual([401, REFUSED]);
    expect(await bad.json()).toEqual({
      error: "invalid_token",
      error_description: "the access token was not accepted",
    });
  });

  it("sees two headers as two, of which Node shows one (V1)", async ({ signer }) => {
    const token = await signer.sign();
    const { hostname, port } = new URL(await start(signer));
    const headers = ["Host", "mcp.example", "Authorization", `Bearer ${token}`, "authorization", "Bearer other"];
    const status = await new Promise((resolve, reject) => {
      const sent = send({ hostname, port, path: "/mcp", headers }, (answer) => {
        answer.resume();
        resolve([answer.statusCode, answer.headers["www-authenticate"]]);
      });
      sent.on("error", reject).end();
    });
    expect(status).toEqual([401, REFUSED]);
  });

  it("goes by the header fields where there are no raw ones", async ({ signer }) => {
    const authorization = `Bearer ${await signer.sign()}`;
    const request: { headers: Record<string, string>; auth?: unknown } = { headers: { authorization } };
    const response = { statusCode: 0, setHeader: () => undefined, end: () => undefined };
    const called: unknown[] = [];
    await signer.server().middleware()(request, response, () => called.push(request.auth));
    await signer.server().middleware()({ headers: {} }, response, () => called.push("never"));
    expect(called).toMatchObject([{ clientId: "agent" }]);
    expect(response.statusCode).toBe(401);
  });

  it("reads a token between blanks, and none in blanks alone", async ({ signer }) => {
    const server = signer.server();
    const token = await signer.sign();
    const statuses: number[] = [];
    for (const authorization of [`Bearer   ${token} \t`, "Bearer  ", " ", undefined, ["Bearer a", "Bearer b"]]) {
      const response = { statusCode: 200, setHeader: () => undefined, end: () => undefined };
      await server.middleware()({ headers: { authorization } }, response, () => undefined);
      statuses.push(response.statusCode);
    }
    expect(statuses).toEqual([200, 401, 401, 401, 401]);
    expect(server.log).toMatchObject([
      { reason: "missing", detail: "Bearer without a token" },
      { reason: "missing", detail: "no Authorization header" },
      { reason: "missing", detail: "no Authorization header" },
      { reason: "malformed", detail: "2 Authorization headers" },
    ]);
  });

  it("takes the value of a header for no name", async ({ signer }) => {
    const rawHeaders = [
      "X-Note",
      "authorization",
      "Authorization",
      `Bearer ${await signer.sign({ client_id: undefined })}`,
    ];
    const request: { headers: object; rawHeaders: string[]; auth?: unknown } = { headers: {}, rawHeaders };
    const response = { statusCode: 0, setHeader: () => undefined, end: () => undefined };
    await signer.server().middleware()(request as never, response, () => undefined);
    expect([request.auth, response.statusCode]).toEqual([expect.objectContaining({ clientId: "" }), 0]);
  });

  it("ends the response to a preflight for the metadata without a body", async ({ signer }) => {
    const ended: unknown[] = [];
    const response = { statusCode: 0, setHeader: () => undefined, end: (body?: string) => ended.push(body) };
    const server = signer.server();
    await server.middleware()({ method: "OPTIONS", url: server.metadataPath, headers: {} }, response, () => undefined);
    expect([response.statusCode, ended]).toEqual([204, [""]]);
  });

  it("gives the metadata", async ({ signer }) => {
    const response = await fetch(`${await start(signer)}/.well-known/oauth-protected-resource/mcp?a=b`);
    expect(await response.json()).toEqual(signer.server().metadata());
  });

  it.for<[string, Error]>([
    ["a bug", new Error("a bug")],
    ["an error with a status", Object.assign(new Error("upstream"), { status: 401 })],
    ["another with a status", Object.assign(new Error("upstream"), { status: 403 })],
    ["an error with a class", Object.assign(new Error("upstream"), { class: "unavailable" })],
    [
      "one of ours that is not about the token",
      new AgentAuthError("http_error", "no", { class: "refused", status: 404 }),
    ],
  ])("hands over what a program gets wrong while it names scopes: %s", async ([_what, error], { signer }) => {
    const origin = await start(signer, { scopes: () => Promise.reject(error) });
    const authorization = `Bearer ${await signer.sign()}`;
    expect((await fetch(`${origin}/mcp`, { headers: { authorization } })).status).toBe(500);
  });

  it("names no error of a program in its challenge", async ({ signer }) => {
    const error = new AgentAuthError("login_required", "upstream", { class: "auth", status: 401 });
    const origin = await start(signer, { scopes: () => Promise.reject(error) });
    const authorization = `Bearer ${await signer.sign()}`;
    expect(outcome(await fetch(`${origin}/mcp`, { headers: { authorization } }))).toEqual([401, REFUSED]);
  });
});

describe("the middleware on Express", () => {
  it("protects what comes after it, below a path too, with scopes that depend on the body", async ({ signer }) => {
    const server = signer.server();
    const app = express();
    const scopes = ({ body }: Authenticated) => (body?.admin ? ["admin"] : []);
    app.get("/open", (_request, response) => response.json("open"));
    app.use(server.metadataPath, server.middleware());
    const answer: Handler = (request, response) => response.json(request.auth?.clientId);
    app.use("/mcp", express.json(), server.middleware({ scopes }), answer);
    const origin = await listening(createServer(app));
    const headers = { authorization: `Bearer ${await signer.sign()}`, "content-type": "application/json" };
    const post = (body: object) => fetch(`${origin}/mcp`, { method: "POST", headers, body: JSON.stringify(body) });
    expect((await fetch(`${origin}/open`)).status).toBe(200);
    expect((await fetch(`${origin}/mcp`)).status).toBe(401);
    expect(await (await post({})).json()).toBe("agent");
    expect((await post({ admin: true })).status).toBe(403);
    const metadata = await fetch(origin + server.metadataPath);
    expect(await metadata.json()).toMatchObject({ resource: RESOURCE });
  });
});

type Variables = { auth: AuthInfo; verified: VerifiedToken };

describe("Hono", () => {
  it("takes the middleware as one of its own", async ({ signer }) => {
    const app = new Hono<{ Variables: Variables }>();
    const guard: MiddlewareHandler<{ Variables: Variables }> = signer.server().hono({ scopes: ["mcp"] });
    app.use("/mcp", guard);
    app.use("/.well-known/*", guard);
    app.all("/mcp", (context) => context.json([context.get("verified").subject, context.get("auth").clientId]));
    const ask = (token?: string) =>
      app.request(RESOURCE, { headers: token === undefined ? {} : { authorization: `Bearer ${token}` } });
    expect(outcome(await ask())[0]).toBe(401);
    expect(outcome(await ask(await signer.sign({ scope: "" })))[0]).toBe(403);
    expect(await (await ask(await signer.sign())).json()).toEqual(["alice", "agent"]);
    expect(await (await app.request(METADATA_URL)).json()).toMatchObject({ resource: RESOURCE });
  });

  it("takes the protected handler as well", async ({ signer }) => {
    const app = new Hono();
    const handler = signer.server().protect((_, { authInfo }) => Response.json(authInfo.clientId));
    app.mount("/", handler);
    const response = await app.request(RESOURCE, { headers: { authorization: `Bearer ${await signer.sign()}` } });
    expect(await response.json()).toBe("agent");
    expect((await app.request(RESOURCE)).status).toBe(401);
  });
});
