import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { bearerAuth, type PlaceToken, type TokenSource } from "../../src/api/auth.js";
import type { AgentAuthError } from "../../src/errors.js";
import { createTransport } from "../../src/http/transport.js";
import { ManagementClient } from "../../src/index.js";
import { Redactor, Secret } from "../../src/redact.js";
import { FakeClock } from "../helpers/clock.js";
import { type Answer, sendJson, startServer, type TestServer } from "../helpers/server.js";
import { rejection } from "../helpers/service.js";

const ok: Answer = (response) => sendJson(response, { status: "success", summaries: [], pagination: {} });

function client(server: TestServer, token: TokenSource | undefined, auth?: PlaceToken): ManagementClient {
  return new ManagementClient({ baseUrl: server.origin, token, auth, clock: new FakeClock(), random: () => 0 });
}

/** Everything that a program or a log may show of an error. */
function shown(error: unknown): string {
  const { stack, cause } = error as Error;
  return [
    String(error),
    JSON.stringify(error),
    inspect(error, { depth: 9 }),
    inspect({ error }, { depth: 9, customInspect: false }),
    stack,
    inspect(cause, { depth: 9 }),
    JSON.stringify({ ...(error as object) }),
  ].join("\n");
}

/** Tokens, one after the other. */
function inTurn(...tokens: string[]): { source: () => string; requested: () => number } {
  let requested = 0;
  return { source: () => tokens[Math.min(requested++, tokens.length - 1)] ?? "", requested: () => requested };
}

describe("a token", () => {
  it("goes out as a bearer token, whether it is a text, a secret or comes from a function", async () => {
    const server = await startServer(ok);
    const sources: TokenSource[] = [
      "token-1",
      new Secret("token-2"),
      () => "token-3",
      async () => new Secret("token-4"),
    ];
    for (const source of sources) await client(server, source).get("/api/v1/pool");
    expect(server.requests.map((request) => request.headers.authorization)).toEqual([
      "Bearer token-1",
      "Bearer token-2",
      "Bearer token-3",
      "Bearer token-4",
    ]);
  });

  it("is placed where the program wants it", async () => {
    const server = await startServer(ok);
    await client(server, "token-1", (headers, token) => headers.set("x-api-key", `k ${token}`)).get("/api/v1/pool");
    expect(server.requests[0]?.headers).toMatchObject({ "x-api-key": "k token-1" });
    expect(server.requests[0]?.headers.authorization).toBeUndefined();
  });

  it("is not needed: without one, requests go out bare", async () => {
    const server = await startServer(ok);
    await client(server, undefined).get("/api/v1/pool");
    expect(server.requests[0]?.headers.authorization).toBeUndefined();
  });

  it("goes to the configured origin and to no other", async () => {
    const [home, elsewhere] = [await startServer(ok), await startServer(ok)];
    const { source, requested } = inTurn("token-1");
    const transport = createTransport({}, bearerAuth(source, undefined, home.origin, new Redactor()));
    await transport(new Request(`${elsewhere.origin}/api/v1/pool`));
    await transport(new Request(`${home.origin.replace("127.0.0.1", "localhost")}/api/v1/pool`)).catch(() => undefined);
    expect(requested()).toBe(0);
    await transport(new Request(`${home.origin}/api/v1/pool`));
    expect(elsewhere.requests[0]?.headers.authorization).toBeUndefined();
    expect(home.requests.map((request) => request.headers.authorization).filter(Boolean)).toEqual(["Bearer token-1"]);
  });

  it("is asked for at each request, and at each attempt", async () => {
    const server = await startServer((response, request, nth) =>
      nth === 1 ? sendJson(response, {}, 503) : ok(response, request, nth),
    );
    const service = client(server, inTurn("token-1", "token-2", "token-3").source);
    await service.get("/api/v1/pool");
    await service.get("/api/v1/pool");
    expect(server.requests.map((request) => request.headers.authorization)).toEqual([
      "Bearer token-1",
      "Bearer token-2",
      "Bearer token-3",
    ]);
  });

  it.each([
    "",
    " ",
    "canary token",
    "canary-token\n",
    "canary\r\nx-injected: 1",
    "canary\u0000",
    "canary\u007f",
    "canary-tökén",
    "canary\ud83e\udd8a",
  ])("that no header can carry is refused, unsent and unseen: %j", async (token) => {
    const server = await startServer(ok);
    for (const source of [token, () => token, new Secret(token), async () => new Secret(token)]) {
      const error = (await rejection(client(server, source).get("/api/v1/pool"))) as AgentAuthError;
      expect(error).toMatchObject({ code: "usage", class: "usage", retryable: false });
      expect(shown(error)).not.toContain("canary");
    }
    expect(server.requests).toEqual([]);
  });

  it("that is no text is refused like one that is empty", async () => {
    const server = await startServer(ok);
    for (const value of [undefined, null, 7, { token: "canary" }]) {
      const source = (() => value) as unknown as () => string;
      const error = await rejection(client(server, source).get("/api/v1/pool"));
      expect(error).toMatchObject({ code: "usage" });
      expect(shown(error)).not.toContain("canary");
    }
    expect(server.requests).toEqual([]);
  });

  it("whose function fails gives the program its own error, at once and without a request", async () => {
    const server = await startServer(ok);
    const bug = new Error("no vault");
    const thrower = () => {
      throw bug;
    };
    for (const source of [thrower, () => Promise.reject(bug)]) {
      expect(await rejection(client(server, source).get("/api/v1/pool"))).toBe(bug);
    }
    expect(server.requests).toEqual([]);
  });
});

describe("a token that the service refuses", () => {
  const refused = (status: number, body: unknown = {}): Answer => {
    return (response, request, nth) => {
      if (request.headers.authorization === "Bearer token-2") ok(response, request, nth);
      else sendJson(response, body, status);
    };
  };

  it("is asked for once more, and the new one is used", async () => {
    for (const answer of [refused(401), refused(400, { status: "error", code: "bad_authtoken", message: "old" })]) {
      const server = await startServer(answer);
      const { source, requested } = inTurn("token-1", "token-2");
      await client(server, source).get("/api/v1/pool");
      expect(requested()).toBe(2);
      expect(server.requests.map((request) => request.headers.authorization)).toEqual([
        "Bearer token-1",
        "Bearer token-2",
      ]);
    }
  });

  it("is asked for once and no more, when the new one is refused as well", async () => {
    const server = await startServer((response) => sendJson(response, {}, 401));
    const { source, requested } = inTurn("token-5", "token-6", "token-7");
    expect(await rejection(client(server, source).get("/api/v1/pool"))).toMatchObject({ class: "auth", status: 401 });
    expect(requested()).toBe(2);
    expect(server.requests).toHaveLength(2);
  });

  it("is not sent again when there is no other", async () => {
    for (const source of ["token-1", new Secret("token-1"), () => "token-1", () => new Secret("token-1")]) {
      const server = await startServer(refused(401));
      expect(await rejection(client(server, source).get("/api/v1/pool"))).toMatchObject({ class: "auth" });
      expect(server.requests).toHaveLength(1);
    }
  });

  it("does not cost the request its body", async () => {
    const server = await startServer(refused(401));
    const auth = bearerAuth(inTurn("token-1", "token-2").source, undefined, server.origin, new Redactor());
    // A retry would send it again too.
    const transport = createTransport({ maxRetries: 0 }, auth);
    await transport(new Request(`${server.origin}/x`, { method: "POST", body: "the body" }));
    expect(server.requests.map((request) => request.body)).toEqual(["the body", "the body"]);
  });
});

describe("what is said of a failure", () => {
  const token = "canary-token-0123456789";
  const secret = "canary-client-secret";

  it("masks a token that the service repeats, in the message and in what is quoted of a body", async () => {
    const says = `Bearer ${token} is unknown, and so is ${token}`;
    const answers: Answer[] = [
      (response) => sendJson(response, { status: "error", code: "bad_authtoken", message: says }, 401),
      (response) => sendJson(response, { status: "error", code: "not_permitted", message: says }, 500),
      (response) => response.writeHead(200, { "content-type": "text/html" }).end(`<p>${says}`),
      (response) => response.writeHead(200, { "content-type": "application/json" }).end(`{"echo":"${says}`),
      (response) => response.writeHead(200, { "content-type": "application/json" }).end(says),
      (response) => response.writeHead(302, { location: `/x?token=${token}` }).end(),
    ];
    for (const answer of answers) {
      const server = await startServer(answer);
      const error = await rejection(client(server, token).pools.list({ domain_id: "d" }).toArray());
      expect(error).toHaveProperty("code");
      expect(shown(error)).not.toContain("canary");
    }
  });

  it("holds no token when the network fails", async () => {
    const server = await startServer((response) => response.destroy());
    const error = await rejection(client(server, token).get("/api/v1/pool"));
    expect(error).toMatchObject({ code: "connection_reset" });
    await server.close();
    for (const each of [error, await rejection(client(server, new Secret(token)).get("/api/v1/pool"))]) {
      expect(shown(each)).not.toContain("canary");
    }
  });

  it.each([
    ["in its message", () => new TypeError(`no way with ${token}`)],
    ["in what led to it", () => new TypeError("failed", { cause: new Error(`no way with ${token}`) })],
    ["in one of several errors", () => new AggregateError([new Error(`no way with ${token}`)], "failed")],
    ["in a member", () => Object.assign(new TypeError("failed"), { headers: { authorization: `Bearer ${token}` } })],
    ["and is a text", () => `no way with ${token}`],
    ["and is an object", () => ({ authorization: token })],
  ])("holds no token when fetch throws something that has it %s", async (_, thrown) => {
    const events: unknown[] = [];
    const fetch = () => Promise.reject(thrown());
    const onEvent = (event: unknown) => events.push(event);
    const service = new ManagementClient({
      baseUrl: "https://agentauth.example",
      token,
      fetch,
      maxRetries: 0,
      onEvent,
    });
    const error = await rejection(service.get("/api/v1/pool"));
    expect(error).toMatchObject({ code: "network_failed", class: "unavailable", retryable: true });
    expect(shown(error) + JSON.stringify(events)).not.toContain("canary");
  });

  it("keeps the very error that fetch threw when it holds no token", async () => {
    const thrown = new TypeError("failed", { cause: Object.assign(new Error("gone"), { code: "ECONNRESET" }) });
    const fetch = () => Promise.reject(thrown);
    const service = new ManagementClient({ baseUrl: "https://agentauth.example", token, fetch, maxRetries: 0 });
    expect(((await rejection(service.get("/api/v1/pool"))) as Error).cause).toBe(thrown);
  });

  it("holds no client secret when a page is not what it should be", async () => {
    const device = { id: 7, dynamic_client_details: { client_secret: secret, title: "t" } };
    for (const [body, options] of [
      [{ status: "success", summaries: [device], pagination: {} }, { strict: true }],
      [{ status: "success", summaries: device }, {}],
      [{ status: "success", summaries: [[device]] }, {}],
    ] as const) {
      const server = await startServer((response) => sendJson(response, body));
      const error = await rejection(client(server, token).devices.list({ pool_id: "p" }, options).toArray());
      expect(error).toMatchObject({ class: "refused" });
      expect(shown(error)).not.toContain("canary");
    }
  });

  it("holds neither in the client, its options or a page", async () => {
    const device = { id: "dev", dynamic_client_details: { client_secret: secret } };
    const server = await startServer((response) =>
      sendJson(response, { status: "success", summaries: [device], pagination: {} }),
    );
    const service = client(server, token);
    for await (const page of service.devices.list({ pool_id: "p" }).pages()) {
      expect(page.items[0]?.dynamic_client_details?.client_secret).toBe(secret);
      expect(inspect(page, { depth: 9 }) + JSON.stringify(page)).not.toContain("canary");
    }
    expect(inspect(service, { depth: 9, showHidden: true }) + JSON.stringify(service)).not.toContain("canary");
  });

  it("holds no client secret in what a raw request gives, until it is asked for by name", async () => {
    const device = { id: "dev", dynamic_client_details: { client_secret: secret, title: "t" } };
    const query = { params: { query: { pool_id: "p" } } };
    for (const body of [{ status: "success", summaries: [device, null, 7, { dynamic_client_details: "x" }] }]) {
      for (const headers of [{}, { "content-length": String(JSON.stringify(body).length) }]) {
        const fetch = async () => Response.json(body, { headers });
        const service = new ManagementClient({ baseUrl: "https://agentauth.example", token, fetch });
        const got = await service.client.GET("/api/v1/device", query);
        const requested = await service.client.request("get", "/api/v1/device", query);
        const read = (await (await service.get("/api/v1/device")).json()) as typeof got.data;
        for (const data of [got.data, requested.data, read]) {
          expect(inspect({ data }, { depth: 9 }) + JSON.stringify(data)).not.toContain("canary");
          expect(data?.summaries?.[0]?.dynamic_client_details?.client_secret).toBe(secret);
          expect(data?.summaries?.[0]?.dynamic_client_details?.title).toBe("t");
        }
        expect(inspect(got, { depth: 9 }) + JSON.stringify(got)).not.toContain("canary");
      }
    }
  });
});
