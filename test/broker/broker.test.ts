import { once } from "node:events";
import { lstatSync } from "node:fs";
import { Agent, request as httpRequest, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type Broker, type BrokerEvent, type BrokerOptions, createBroker } from "../../src/broker/broker.js";
import { listen } from "../../src/broker/listen.js";
import type { BrokerGrant } from "../../src/broker/policy.js";
import type { AgentClient } from "../../src/oauth/agent.js";
import { temporaryFolder } from "../helpers/folder.js";
import { type Handler, type Reply, type Scene, startScene } from "../helpers/issuer.js";
import { ON_WINDOWS } from "../helpers/systems.js";
import { HOSTILE_REQUESTS } from "./hostile-requests.js";

const TOKEN = "access-as-1";

interface Made {
  scene: Scene;
  /** What the server got from the broker. */
  seen(): Scene["mcp"]["requests"];
  broker: Broker;
  events: BrokerEvent[];
  logins: string[];
  /** Sends over the Unix socket. */
  send(path: string, init?: { method?: string; headers?: Record<string, string>; body?: string }): Promise<Answer>;
  /** Writes bytes to the Unix socket. @returns all that comes back */
  raw(text: string): Promise<string>;
  socket: string;
  tcp: string;
  close(graceMs: number): Promise<void>;
}

interface Answer {
  status: number;
  statusText: string;
  headers: Record<string, unknown>;
  text: string;
}

/** A broker with a login at `mcp`, and without one at `other`. */
async function start(grant: Partial<BrokerGrant> = {}, options: BrokerOptions = {}): Promise<Made> {
  const scene = await startScene();
  await scene.agent().login(scene.mcp.url);
  const before = scene.mcp.requests.length;
  const other = await scene.another("other");
  const socket = join(temporaryFolder(), "run", "agent.sock");
  const events: BrokerEvent[] = [];
  const logins: string[] = [];
  const policy = {
    grants: { mcp: { server: scene.mcp.url, ...grant }, other: { server: `${other.origin}/mcp` } },
    clients: {
      job: { listen: `unix:${socket}`, grants: ["mcp"] },
      page: { listen: "127.0.0.1:0" },
    },
  };
  const broker = createBroker(scene.agent({ login: undefined }), policy, {
    onRequest: (event) => events.push(event),
    onLoginRequired: (name) => logins.push(name),
    ...options,
  });
  const { listeners, close } = await listen(broker);
  onTestFinished(() => close(0));
  const tcp = listeners.find(({ client }) => client === "page")?.url ?? "";
  return {
    scene,
    seen: () => scene.mcp.requests.slice(before),
    broker,
    events,
    logins,
    socket,
    tcp,
    close,
    send: (path, init) => sendTo({ socketPath: socket, path, ...init }),
    async raw(text) {
      const connection = connect(socket);
      let answer = "";
      connection.on("data", (bytes) => {
        answer += bytes.toString("latin1");
      });
      connection.on("error", () => undefined);
      connection.write(text);
      setTimeout(() => connection.end(), 300);
      await new Promise((resolve) => connection.once("close", resolve));
      return answer;
    },
  };
}

async function sendTo({
  body,
  ...options
}: {
  socketPath?: string;
  agent?: Agent;
  host?: string;
  port?: number;
  path: string;
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}): Promise<Answer> {
  const sent = httpRequest({ host: "localhost", ...options });
  sent.end(body);
  const [message] = await once(sent, "response");
  let text = "";
  for await (const part of message) text += part;
  const headers = { ...message.headers, ...message.trailers };
  return { status: message.statusCode, statusText: message.statusMessage, headers, text };
}

const overTcp = (tcp: string, path: string, headers: Record<string, string> = {}) => {
  const { hostname, port, pathname } = new URL(tcp);
  return sendTo({ host: hostname, port: Number(port), path: `${pathname}${path}`, headers });
};
const rpc = (method: string, params?: unknown, id: unknown = 1) =>
  JSON.stringify({ jsonrpc: "2.0", id, method, params });
const post = (body: string) => ({ method: "POST", headers: { "content-type": "application/json" }, body });

describe("a request to the broker", () => {
  it("reaches the server with its token, and its answer the client", async () => {
    const { send, events, seen } = await start();
    const answer = await send("/mcp", {
      ...post('{"a":1}'),
      headers: { "mcp-session-id": "s1", authorization: "Bearer mine", "mcp-method": "ping", origin: "http://x" },
    });
    expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { ok: true }]);
    const [request] = seen();
    expect(request).toMatchObject({ method: "POST", body: '{"a":1}' });
    expect(request?.headers).toMatchObject({
      authorization: `Bearer ${TOKEN}`,
      "mcp-session-id": "s1",
      "mcp-method": "ping",
    });
    expect(request?.headers.origin).toBeUndefined();
    expect(events).toMatchObject([{ client: "job", name: "mcp", method: "POST", status: 200, refused: undefined }]);
  });

  it("may be for what is below the server, with a query", async () => {
    const { scene, send, seen } = await start();
    scene.mcp.routes["/mcp/files/a%20b"] = { json: { file: true } };
    expect((await send("/mcp/files/a%20b?q=1")).text).toBe('{"file":true}');
    expect(seen().at(-1)).toMatchObject({ url: "/mcp/files/a%20b?q=1" });
    await send("/mcp/files/");
    expect(seen().at(-1)).toMatchObject({ url: "/mcp/files/" });
    expect(seen().at(-1)?.headers.authorization).toBe(`Bearer ${TOKEN}`);
  });

  it("keeps the query of the server's address", async () => {
    const { scene, broker, send, seen } = await start();
    const server = `${scene.mcp.url}?key=k`;
    scene.mcp.metadata["resource"] = server;
    await scene.agent().login(server);
    broker.reload({ ...broker.policy, grants: { ...broker.policy.grants, mcp: { server } } });
    for (const query of ["", "?a=1"]) expect((await send(`/mcp${query}`)).status).toBe(200);
    expect(
      seen()
        .map(({ url }) => url)
        .slice(-2),
    ).toEqual(["/mcp?key=k", "/mcp?key=k&a=1"]);
  });

  it("is sent again after a 401, with its body", async () => {
    const { scene, send, seen } = await start();
    const answer = scene.mcp.routes["/mcp"] as Handler;
    scene.mcp.routes["/mcp"] = (request, nth) =>
      request.headers.authorization === `Bearer ${TOKEN}`
        ? { status: 401, headers: { "www-authenticate": 'Bearer error="invalid_token"' }, text: "" }
        : answer(request, nth);
    expect((await send("/mcp", post('{"a":1}'))).status).toBe(200);
    expect(seen().map(({ body }) => body)).toEqual(['{"a":1}', '{"a":1}']);
    expect(scene.mcp.tokens()).toEqual([`Bearer ${TOKEN}`, "Bearer access-as-2"]);
  });

  it("that streams its body arrives as it was sent", async () => {
    const { socket, seen } = await start();
    const sent = httpRequest({ socketPath: socket, path: "/mcp", method: "POST", host: "localhost" });
    sent.write("one ");
    setTimeout(() => sent.end("two"), 20);
    const [message] = await once(sent, "response");
    message.resume();
    expect(message.statusCode).toBe(200);
    expect(seen()[0]?.body).toBe("one two");
  });

  it("gets an answer without a body", async () => {
    const { scene, send } = await start();
    scene.mcp.routes["/mcp"] = { status: 204 };
    expect(await send("/mcp")).toMatchObject({ status: 204, text: "" });
  });

  it.each([
    ["/mcp/deep", true],
    ["/elsewhere", false],
    ["/mcp/%2e%2e/elsewhere", false],
  ])(
    "gets what a redirect within the origin to %s leads to, if the grant covers that: %s",
    async (location, isFollowed) => {
      const { scene, send, seen } = await start();
      scene.mcp.routes["/mcp"] = { status: 307, headers: { location }, text: "" };
      for (const path of ["/mcp/deep", "/elsewhere"]) scene.mcp.routes[path] = { json: { path } };
      const { status, text, headers } = await send("/mcp", post(rpc("tools/list")));
      expect([status, headers["location"]]).toEqual(isFollowed ? [200, undefined] : [307, location]);
      expect(text).toBe(isFollowed ? '{"path":"/mcp/deep"}' : "");
      const sent = seen().map(({ url, headers: { authorization }, body }) => [url, authorization, body]);
      const paths = isFollowed ? ["/mcp", location] : ["/mcp"];
      expect(sent).toEqual(paths.map((path) => [path, `Bearer ${TOKEN}`, rpc("tools/list")]));
    },
  );

  it("gets a redirect as it is", async () => {
    const { scene, send, seen } = await start();
    scene.mcp.routes["/mcp"] = { status: 307, headers: { location: "https://elsewhere.example/" }, text: "" };
    const { status, headers } = await send("/mcp");
    expect([status, headers["location"]]).toEqual([307, "https://elsewhere.example/"]);
    expect(seen()).toHaveLength(1);
  });
});

const raw = (answer: (response: ServerResponse) => unknown): Reply => ({ raw: (response) => void answer(response) });

/** A stream of the server that has begun at the client, over a connection that is to be used again. */
async function begin({ scene, socket }: Made) {
  let stream: ServerResponse | undefined;
  scene.mcp.routes["/mcp"] = raw((response) => {
    stream = response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: 1\n\n");
  });
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  const sent = httpRequest({ socketPath: socket, path: "/mcp", host: "localhost", agent }).end();
  const [response] = await once(sent, "response");
  return { stream, response };
}

describe("no answer of the broker", () => {
  it.each<[string, Reply]>([
    ["in a header", { status: 200, headers: { "x-token": `is ${TOKEN}` }, text: "ok" }],
    [
      "in a header with percent signs",
      { status: 200, headers: { "x-token": TOKEN.replaceAll("-", "%2D") }, text: "ok" },
    ],
    ["in the body", { status: 200, text: `you sent Bearer ${TOKEN}.` }],
    ["in the text of an error", { status: 500, text: `{"error":"${TOKEN}"}` }],
    ["in a challenge", { status: 403, headers: { "www-authenticate": `Bearer realm="${TOKEN}"` }, text: "" }],
    ["in the address of a redirect", { status: 302, headers: { location: `https://a.example/?t=${TOKEN}` }, text: "" }],
    ["in the name of a header", { status: 200, headers: { [`x-${TOKEN}`]: "1" }, text: "" }],
    ["in the text of a status", raw((response) => response.writeHead(200, `OK ${TOKEN}`).end())],
    [
      "in a trailer",
      raw((response) => {
        response.writeHead(200, { trailer: "x-token" });
        response.write("a");
        response.addTrailers({ "x-token": TOKEN });
        response.end();
      }),
    ],
    ["in an event", { status: 200, headers: { "content-type": "text/event-stream" }, text: `data: ${TOKEN}\n\n` }],
    ["in a cookie", { status: 200, headers: { "set-cookie": `t=${TOKEN}` }, text: "" }],
  ])("has the token, which the server returns %s", async (_where, reply) => {
    const { scene, send } = await start();
    scene.mcp.routes["/mcp"] = reply;
    const { status, statusText, headers, text } = await send("/mcp");
    expect(status).toBe(reply.status ?? 200);
    expect(`${statusText}${JSON.stringify(headers)}${text}`).not.toContain(TOKEN);
    expect(`${decodeURIComponent(JSON.stringify(headers))}`).not.toContain(TOKEN);
  });

  it("has the token, which the server returns in two parts", async () => {
    const { scene, send } = await start();
    scene.mcp.routes["/mcp"] = {
      raw: (response) => {
        response.writeHead(200, { "content-type": "text/plain" });
        response.write(`a ${TOKEN.slice(0, 5)}`);
        setTimeout(() => response.end(`${TOKEN.slice(5)} b ${TOKEN.slice(0, 4)}`), 30);
      },
    };
    expect((await send("/mcp")).text).toBe(`a ${"*".repeat(TOKEN.length)} b ${TOKEN.slice(0, 4)}`);
  });

  it("has one of the eight tokens that the server got last", async () => {
    const { scene, send } = await start();
    for (let hour = 1; hour <= 9; hour++) {
      await scene.clock.sleep(3_600_000, AbortSignal.timeout(1000));
      await send("/mcp");
    }
    const tokens = scene.mcp
      .tokens()
      .map((header) => header.replace("Bearer ", ""))
      .slice(-9);
    scene.mcp.routes["/mcp"] = { status: 200, text: tokens.join() };
    const [oldest = "", ...others] = tokens;
    expect((await send("/mcp")).text).toBe([oldest, ...others.map(({ length }) => "*".repeat(length))].join());
  });

  it("tells which names there are", async () => {
    const { send, tcp } = await start({ until: "2020-01-01T00:00:00Z" });
    const answers = [await send("/nothing"), await send("/other"), await send("/mcp"), await send("/nothing/x")];
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`))).toEqual(
      new Set(['404 {"error":{"code":"unknown"}}']),
    );
    // The other client may use it, and has no login there.
    expect((await overTcp(tcp, "/other")).status).not.toBe(404);
  });
});

const loginRequired = (id: unknown) => {
  const message = "the broker did not pass the request on: login_required";
  return { jsonrpc: "2.0", id, error: { code: -32_001, message, data: { code: "login_required" } } };
};

describe("a login that is needed", () => {
  it("is an answer that no client takes for a challenge", async () => {
    const { scene, send, logins, events } = await start();
    await scene.agent().disconnect(scene.mcp.url);
    scene.mcp.routes["/mcp"] = { status: 401, headers: { "www-authenticate": "Bearer" }, text: "" };
    const { status, headers, text } = await send("/mcp", post(rpc("tools/list")));
    expect([status, headers["agentauth-login-required"], headers["www-authenticate"]]).toEqual([503, "mcp", undefined]);
    expect(JSON.parse(text)).toEqual(loginRequired(1));
    expect(logins).toEqual(["mcp"]);
    expect(events).toMatchObject([{ refused: "login_required", status: 503 }]);
  });

  it.each(["www-authenticate", "x-amzn-remapped-www-authenticate"])("passes on no challenge: %s", async (name) => {
    const { scene, send } = await start();
    scene.mcp.routes["/mcp"] = { status: 403, headers: { [name]: "Bearer" }, text: "" };
    const { status, headers } = await send("/mcp");
    expect([status, headers[name]]).toEqual([403, undefined]);
  });

  it("is not what 401 for a session means that the server does not know: the client has to begin a new one", async () => {
    const { scene, send, logins } = await start();
    const text = "Unauthorized: Session not found";
    scene.mcp.routes["/mcp"] = { status: 401, headers: { "content-length": String(text.length) }, text };
    const answer = await send("/mcp", { ...post(rpc("ping")), headers: { "mcp-session-id": "s" } });
    expect([answer.status, answer.text, logins]).toEqual([404, text, []]);
  });

  it.each<[string, string, unknown]>([
    ["a request whose id is a text", rpc("ping", {}, "a"), loginRequired("a")],
    ["a batch", `[${rpc("ping")},${rpc("ping", {}, 2)}]`, [loginRequired(1), loginRequired(2)]],
    ["a notification", '{"jsonrpc":"2.0","method":"x"}', { error: { code: "login_required" } }],
    ["JSON of another kind", '{"id":1}', { error: { code: "login_required" } }],
    ["no JSON", "id", { error: { code: "login_required" } }],
  ])("answers %s in its form", async (_what, body, answer) => {
    const { scene, send } = await start();
    await scene.agent().disconnect(scene.mcp.url);
    const { status, text } = await send("/mcp", post(body));
    expect([status, JSON.parse(text)]).toEqual([503, answer]);
  });

  it.each<Partial<BrokerGrant>>([{}, { tools: ["read_*"] }])(
    "is the answer to a token without the scope, too: %j",
    async (grant) => {
      const errors: unknown[] = [];
      const { scene, send, events } = await start(grant, { onLoginRequired: (...[, , error]) => errors.push(error) });
      const challenge = 'Bearer error="insufficient_scope", scope="more"';
      scene.mcp.routes["/mcp"] = { status: 403, headers: { "www-authenticate": challenge }, text: "" };
      const { status, headers, text } = await send("/mcp", post(rpc("tools/list", {}, 7)));
      expect([status, headers["agentauth-login-required"], headers["www-authenticate"]]).toEqual([
        503,
        "mcp",
        undefined,
      ]);
      expect(JSON.parse(text)).toEqual(loginRequired(7));
      expect(errors).toMatchObject([{ code: "insufficient_scope", remedy: { action: "login", scope: "more" } }]);
      expect(events).toMatchObject([{ refused: "login_required" }]);
    },
  );

  it.each([
    ["www-authenticate", 'Bearer error="insufficient_scope", scope="more"', 503],
    ["x-amzn-remapped-www-authenticate", 'Bearer error="insufficient_scope", scope="more"', 503],
    ["www-authenticate", 'Custom error="insufficient_scope"', 403],
    ["www-authenticate", 'Bearer error="insufficient_scope_of_ours"', 403],
  ])("of an agent that may log in, by %s: %s, is the answer once a login did not help", async (name, value, status) => {
    let provide: (agent: AgentClient) => void = () => undefined;
    const agent = new Promise<AgentClient>((resolve) => {
      provide = resolve;
    });
    const { scene, send, logins } = await start({}, { agentFor: () => agent });
    provide(scene.agent());
    scene.mcp.routes["/mcp"] = { status: 403, headers: { [name]: value }, text: "no" };
    expect((await send("/mcp", post(rpc("tools/list", {}, 7)))).status).toBe(status);
    expect(logins).toEqual(status === 503 ? ["mcp"] : []);
  });

  it("is over when the user has logged in", async () => {
    const { scene, send } = await start();
    await scene.agent().disconnect(scene.mcp.url);
    expect((await send("/mcp")).status).toBe(503);
    await scene.agent().login(scene.mcp.url);
    expect((await send("/mcp")).status).toBe(200);
  });
});

describe("the policy", () => {
  it.each<[string, Partial<BrokerGrant>, string, string]>([
    ["methods", { methods: ["GET"] }, "DELETE", "/mcp"],
    ["paths", { paths: ["/files"] }, "GET", "/mcp/filesystem"],
    ["paths of the server itself", { paths: ["/files"] }, "GET", "/mcp"],
  ])("refuses other %s", async (_what, grant, method, path) => {
    const { send, seen } = await start(grant);
    expect((await send(path, { method })).status).toBe(403);
    expect(seen()).toEqual([]);
  });

  it("lets a client send its number of requests a minute, and no more", async () => {
    const { send, tcp } = await start({ requestsPerMinute: 2 });
    const statuses = [];
    for (let nth = 0; nth < 3; nth++) statuses.push((await send("/mcp")).status);
    expect(statuses).toEqual([200, 200, 429]);
    expect(Number((await send("/mcp")).headers["retry-after"])).toBeGreaterThan(50);
    expect((await overTcp(tcp, "/mcp")).status).toBe(200);
  });

  it.each<[string, string]>([
    ["that is hidden", rpc("tools/call", { name: "read_secret" })],
    ["that is not named", rpc("tools/call", { name: "drop_table" })],
    ["in the middle of a batch", `[${rpc("tools/list")},${rpc("tools/call", { name: "drop_table" })}]`],
    [
      "twice in one object",
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_a","name":"drop_table"}}',
    ],
    [
      "with a long s",
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_a"},"paramſ":{"name":"drop"}}',
    ],
    [
      "with an escaped name of a member",
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_a","n\\u0061me":"drop"}}',
    ],
    ["behind a byte order mark", `\ufeff${rpc("tools/call", { name: "drop_table" })}`],
    ["in what is no JSON", "{'method':'tools/call'}"],
  ])("does not pass on a call of a tool %s", async (_what, body) => {
    const { send, events, seen } = await start({ tools: ["read_*"], hideTools: ["read_secret"] });
    const { status, text } = await send("/mcp", post(body));
    expect([status, seen()]).toEqual([200, []]);
    expect(JSON.parse(text)).toHaveProperty(body.startsWith("[") ? "0.error.code" : "error.code");
    expect(events).toMatchObject([{ refused: "tool" }]);
  });

  it.each<[string, unknown]>([
    [
      rpc("tools/call", { name: "drop" }, 7),
      {
        id: 7,
        error: {
          code: -32_003,
          message: 'the tool "drop" is none of those that are allowed',
          data: { reason: "policy" },
        },
      },
    ],
    ["{", { id: null, error: { code: -32_700, message: "the broker does not pass on what is no strict JSON" } }],
    ["1", { id: null, error: { code: -32_600, message: "the broker does not pass on what is no message" } }],
    [`[1,${rpc("ping")}]`, [{ id: null, error: { code: -32_600, message: expect.stringContaining("no message") } }]],
  ])("answers %s with the reason", async (body, answer) => {
    const { send } = await start({ tools: ["read_*"] });
    const said = JSON.parse((await send("/mcp", post(body))).text);
    const jsonrpc = "2.0";
    expect(said).toEqual(
      Array.isArray(answer) ? answer.map((one) => ({ jsonrpc, ...one })) : { jsonrpc, ...(answer as object) },
    );
  });

  it("passes on a call of a tool that it allows, as it was judged, with every digit", async () => {
    const { send, events, seen } = await start({ tools: ["read_*"] });
    const args =
      '{"a":-9007199254740993,"b":0.12345678901234567890,"c":[1.5e3,"\\u00e9\\n1234567890123456789"],"__proto__":1}';
    const written = args.replace("1.5e3", "1500").replace("\\u00e9", "é");
    const body = (given: string) =>
      `{"jsonrpc":"2.0","id":12345678901234567890,"method":"tools/call","params":{"name":"read_a","arguments":${given}}}`;
    expect((await send("/mcp", post(`\n ${body(args)}`))).status).toBe(200);
    expect(seen()[0]?.body).toBe(body(written));
    expect(seen()[0]?.headers).toMatchObject({
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(body(written))),
    });
    const refused = await send("/mcp", post(body(args).replace("read_a", "drop")));
    expect(refused.text).toContain('"id":12345678901234567890,');
    await send("/mcp", post(rpc("tools/list")));
    expect(events.map(({ tool }) => tool)).toEqual(["read_a", "drop", undefined]);
  });

  it("says in the headers of a call what its body says, whatever the client says there", async () => {
    const { scene, send, seen } = await start({ tools: ["read_*"] });
    const marked = (name: string) => ({ type: "string", "x-mcp-header": name });
    const tools = [
      { name: "read_a", inputSchema: { properties: { region: marked("Region"), where: marked("Where") } } },
    ];
    scene.mcp.routes["/mcp"] = { json: { jsonrpc: "2.0", id: 1, result: { tools } } };
    const forged = {
      "content-type": "application/json",
      "mcp-method": "ping",
      "mcp-name": "drop",
      "mcp-param-region": "us",
      "mcp-param-user": "root",
      "mcp-protocol-version": "2026-07-28",
    };
    const ofBody = () =>
      Object.entries(seen().at(-1)?.headers ?? {}).filter(([name]) => /^mcp-(?:method|name|param-)/.test(name));
    await send("/mcp", { method: "POST", headers: forged, body: rpc("tools/list") });
    expect(ofBody()).toEqual([["mcp-method", "tools/list"]]);
    const call = rpc("tools/call", { name: "read_a", arguments: { region: "eu", where: "Zürich" } });
    await send("/mcp", { method: "POST", headers: forged, body: call });
    expect(Object.fromEntries(ofBody())).toEqual({
      "mcp-method": "tools/call",
      "mcp-name": "read_a",
      "mcp-param-region": "eu",
      "mcp-param-where": `=?base64?${Buffer.from("Zürich").toString("base64")}?=`,
    });
    await send("/mcp", { method: "POST", headers: forged, body: rpc("a\nb") });
    expect(ofBody()).toEqual([["mcp-method", "=?base64?YQpi?="]]);
    for (const body of [`[${call}]`, '{"jsonrpc":"2.0","id":1,"result":{}}']) {
      await send("/mcp", { method: "POST", headers: forged, body });
      expect(ofBody()).toEqual([]);
    }
    await send("/mcp", { headers: { "mcp-method": "tools/call", "mcp-name": "drop" } });
    expect(ofBody()).toEqual([]);
  });

  it.each(["application/json", "text/event-stream", "Text/Event-Stream; charset=utf-8"])(
    "hides tools in a list that is %s",
    async (type) => {
      const { scene, send } = await start({ tools: ["read_*"] });
      const list = {
        jsonrpc: "2.0",
        id: 1,
        result: { tools: [{ name: "read_a" }, { name: "drop" }], nextCursor: "c" },
      };
      const text =
        type === "application/json"
          ? JSON.stringify(list)
          : `id: 7\r\ndataset: a\r\ndata: ${JSON.stringify(list)}\r\n\r\n`;
      scene.mcp.routes["/mcp"] = { status: 200, headers: { "content-type": type }, text };
      const answer = await send("/mcp", post(rpc("tools/list")));
      expect(answer.text).toContain('{"tools":[{"name":"read_a"}],"nextCursor":"c"}');
      expect(answer.text).not.toContain("drop");
      if (type !== "application/json") expect(answer.text).toMatch(/^id: 7\ndataset: a\ndata: /);
    },
  );

  it("hides tools in events that arrive in parts, and sends each on as soon as it is whole", async () => {
    const { stream, response } = await begin(await start({ tools: ["read_*"] }));
    let text = "";
    response.setEncoding("utf8").on("data", (part: string) => {
      text += part;
    });
    const list = (...names: string[]) => JSON.stringify({ id: 1, result: { tools: names.map((name) => ({ name })) } });
    const bytes = Buffer.from(`data: ${list("read_ä", "drop")}\r\n\r\n`);
    const middle = bytes.indexOf("ä") + 1;
    for (const part of [bytes.subarray(0, middle), bytes.subarray(middle, -1), bytes.subarray(-1)]) {
      stream?.write(part);
      await sleep(20);
    }
    const shown = `data: 1\n\ndata: ${list("read_ä")}\n\n`;
    await vi.waitFor(() => expect(text).toBe(shown));
    stream?.end(": tools");
    await once(response, "end");
    expect(text).toBe(`${shown}: tools`);
  });

  it("holds back no event that is too long", async () => {
    const { stream, response } = await begin(await start({ tools: ["read_*"] }));
    stream?.write(Buffer.alloc(16 * 1024 * 1024 + 1));
    await expect(response.toArray()).rejects.toThrow("aborted");
  });

  it("costs the same with 10,000 grants, for a client of all and for one of many", async () => {
    const { broker } = await start();
    const msOf = async (count: number) => {
      const names = Array.from({ length: count }, (_, nth) => `g${nth}`);
      const grants = Object.fromEntries(
        names.map((name) => [name, { server: "https://mcp.example/", methods: ["PUT"] }]),
      );
      broker.reload({
        grants,
        clients: { all: { listen: "127.0.0.1:0" }, many: { listen: "127.0.0.1:0", grants: names } },
      });
      const request = new Request(`http://broker/${names.at(-1)}`);
      let least = Number.POSITIVE_INFINITY;
      for (let nth = 0; nth < 100; nth++) {
        const begun = performance.now();
        const answers = await Promise.all(["all", "many"].map((client) => broker.fetch(request, client)));
        least = Math.min(least, performance.now() - begun);
        expect(answers.map(({ status }) => status)).toEqual([403, 403]);
      }
      return least;
    };
    expect(await msOf(10_000)).toBeLessThan(3 * (await msOf(1)) + 0.05);
  });

  it("is replaced as a whole, or not at all", async () => {
    const { broker, send } = await start();
    expect(() => broker.reload({ ...broker.policy, clients: {} })).toThrow("clients is empty");
    expect((await send("/mcp")).status).toBe(200);
    broker.reload({
      ...broker.policy,
      grants: { ...broker.policy.grants, mcp: { server: "https://other.example/", methods: ["PUT"] } },
    });
    expect((await send("/mcp")).status).toBe(403);
  });
});

describe("a request is one event, with its reason,", () => {
  const long = (bytes: number, isWhole: boolean): Reply => ({
    raw: (response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.write(" ".repeat(bytes));
      if (isWhole) response.end();
      else setTimeout(() => response.destroy(), 20);
    },
  });
  it.each<[string, Reply]>([
    ["is too long to be looked through", long(16 * 1024 * 1024 + 1, true)],
    ["breaks off", long(10, false)],
  ])("where the answer of the server %s", async (_what, reply) => {
    const { scene, send, events } = await start({ tools: ["read_*"] });
    scene.mcp.routes["/mcp"] = reply;
    const { status, text } = await send("/mcp", post(rpc("tools/list", {}, 3)));
    expect([status, JSON.parse(text)]).toMatchObject([502, { id: 3, error: { data: { code: "unavailable" } } }]);
    expect(events).toMatchObject([{ name: "mcp", status: 502, refused: "unavailable" }]);
  });

  it("where the client leaves", async () => {
    const { scene, socket, events } = await start();
    const sent = httpRequest({ socketPath: socket, path: "/mcp", host: "localhost" }).on("error", () => undefined);
    scene.mcp.routes["/mcp"] = { raw: () => void sent.destroy() };
    sent.end();
    await vi.waitFor(() => expect(events).toMatchObject([{ name: "mcp", status: 499, refused: "cancelled" }]));
  });

  it.each<Partial<BrokerGrant>>([{}, { tools: ["read_*"] }])(
    "where the client leaves a stream, which then ends at the server: %j",
    async (grant) => {
      const { stream, response } = await begin(await start(grant));
      response.destroy();
      await once(stream as ServerResponse, "close");
    },
  );

  it("where the server cannot be reached", async () => {
    const { scene, send, events } = await start();
    await scene.mcp.close();
    expect((await send("/mcp")).status).toBe(502);
    expect(events).toMatchObject([{ name: "mcp", status: 502, refused: "unavailable" }]);
  });

  it.each<[string, Reply, number]>([
    ["is down", { status: 503, text: "" }, 503],
    ["breaks a rule", { json: { access_token: 7 } }, 502],
  ])("where the issuer %s", async (_what, reply, status) => {
    const { scene, send, events } = await start();
    scene.issuer.routes["/pool/token"] = reply;
    await scene.clock.sleep(3_600_000, AbortSignal.timeout(1000));
    expect((await send("/mcp")).status).toBe(status);
    expect(events).toMatchObject([{ status, refused: "unavailable" }]);
  });

  it("where it is of another form, or at another address", async () => {
    const { raw, tcp, events } = await start();
    await raw("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n");
    await raw("TRACE /mcp HTTP/1.1\r\nHost: x\r\n\r\n");
    await raw("POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
    await overTcp(new URL(tcp).origin, "mcp");
    expect(events).toMatchObject([
      { client: "job", method: "OPTIONS", name: undefined, status: 400, refused: "malformed" },
      { client: "job", method: "TRACE", name: undefined, status: 400, refused: "malformed" },
      { client: "job", method: "POST", name: undefined, status: 400, refused: "malformed" },
      { client: "page", method: "GET", name: undefined, status: 404, refused: "unknown" },
    ]);
  });
});

describe("a hostile client", () => {
  it.each(HOSTILE_REQUESTS)("gets nothing by %s", async (_what, text, status) => {
    const { raw, seen } = await start();
    const answer = await raw(text);
    if (status !== undefined) expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    else expect(answer).not.toMatch(/^HTTP\/1.1 2/);
    expect(seen()).toEqual([]);
    expect(answer).not.toContain(TOKEN);
  });

  it("cannot choose the headers of the token", async () => {
    const { send, seen } = await start();
    const headers = {
      dpop: "x",
      "proxy-authorization": "y",
      connection: "x-secret",
      "x-secret": "z",
      "accept-encoding": "br",
    };
    await send("/mcp", { headers });
    const [request] = seen();
    expect(request?.headers).toMatchObject({ authorization: `Bearer ${TOKEN}`, "accept-encoding": "identity" });
    for (const name of ["dpop", "proxy-authorization", "x-secret"]) expect(request?.headers).not.toHaveProperty(name);
  });

  it("sends no trailers on", async () => {
    const { raw, seen } = await start();
    const head = "POST /mcp HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: Authorization\r\n\r\n";
    const answer = await raw(`${head}2\r\n{}\r\n0\r\nAuthorization: Bearer mine\r\nDPoP: mine\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 200 /);
    expect(seen()).toMatchObject([{ body: "{}", headers: { authorization: `Bearer ${TOKEN}` } }]);
    expect(JSON.stringify(seen())).not.toContain("mine");
  });

  it("cannot hide a tool in a compressed body, or in one that is too long", async () => {
    const { send, seen } = await start({ tools: ["read_*"] });
    const coded = { ...post("x"), headers: { "content-encoding": "gzip", "content-type": "application/json" } };
    expect((await send("/mcp", coded)).status).toBe(415);
    expect((await send("/mcp", post(" ".repeat(4 * 1024 * 1024 + 1)))).status).toBe(413);
    expect(seen()).toEqual([]);
  });

  it("on TCP has a secret in its address, and may name the origin of that", async () => {
    const { tcp } = await start();
    const { host, pathname } = new URL(tcp);
    expect(pathname).toMatch(/^\/[\da-f]{32}$/);
    expect((await overTcp(tcp, "/mcp", { origin: `http://${host}` })).status).toBe(200);
  });

  it.each<Record<string, string>>([
    { host: "evil.example" },
    { host: "127.0.0.1.evil.example" },
    { host: "127.0.0.1" },
    { host: "127.0.0.1:1" },
    { host: "localhost" },
    { origin: "https://evil.example" },
    { origin: "null" },
    { origin: "file://" },
    { origin: "http://127.0.0.1" },
    { origin: "http://localhost:1" },
  ])("on TCP gets nothing with %j, as a page in a browser sends it", async (headers) => {
    const { tcp, seen } = await start();
    const { status, text } = await overTcp(tcp, "/mcp", headers);
    expect([status, text, seen()]).toEqual([404, '{"error":{"code":"unknown"}}', []]);
  });
});

describe("at its end the listener", () => {
  it("lets a stream end, and then waits for no connection", async () => {
    const made = await start();
    const { stream, response } = await begin(made);
    const closed = made.close(3_600_000);
    stream?.end("data: 2\n\n");
    let text = "";
    for await (const part of response) text += part;
    expect(text).toBe("data: 1\n\ndata: 2\n\n");
    await closed;
  });

  it("serves the request that a client sends on an idle connection just then, and ends the connection with it", async () => {
    const made = await start();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const url = new URL(`${made.tcp}/mcp`);
    const send = () => sendTo({ agent, host: url.hostname, port: Number(url.port), path: url.pathname });
    await send();
    const closed = made.close(3_600_000);
    const { status, headers } = await send();
    expect([status, headers["connection"]]).toEqual([200, "close"]);
    await closed;
  });

  it("breaks a stream off after the grace time", async () => {
    const made = await start();
    const { response } = await begin(made);
    await made.close(10);
    await expect(response.toArray()).rejects.toThrow("aborted");
  });
});

describe.skipIf(ON_WINDOWS)("the socket", () => {
  it("is for its user alone, in a folder that is", async () => {
    const { socket } = await start();
    expect(lstatSync(socket).mode & 0o777).toBe(0o600);
    expect(lstatSync(join(socket, "..")).mode & 0o777).toBe(0o700);
  });

  it("takes a thousand clients at once", async () => {
    const { send, events } = await start();
    await Promise.all(Array.from({ length: 1000 }, () => send("/mcp")));
    expect(events).toHaveLength(1000);
  });

  it("has no path that the system would cut off", async () => {
    const { broker } = await start();
    const path = join(temporaryFolder(), "x".repeat(104));
    broker.reload({ ...broker.policy, clients: { job: { listen: `unix:${path}` } } });
    await expect(listen(broker)).rejects.toThrow(/has a path of more than \d+ bytes/);
  });

  it("of another broker that lives is not taken", async () => {
    const { broker } = await start();
    await expect(listen(broker)).rejects.toThrow("is in use by another broker");
  });
});
