import { once } from "node:events";
import {
  Client,
  type JSONRPCMessage,
  ReadBuffer,
  serializeMessage,
  specTypeSchemas,
  type Transport,
} from "@modelcontextprotocol/client";
import { describe, expect, onTestFinished } from "vitest";
import { fileStore } from "../../src/store/file/file.js";
import { collect, linesOf, type Started, startCli } from "../helpers/cli.js";
import { madeGrant } from "../helpers/grant.js";
import { startServer, until } from "../helpers/server.js";
import { startSessionServer } from "../mcp/session-server.js";
import { FETCH_BROWSER, flowTest, type User } from "./support.js";

const REVISIONS = ["2025-11-25", "2026-07-28"] as const;
type Revision = (typeof REVISIONS)[number];

/** The standard input and output of a run of the program, as a host reads and writes them. */
class RunTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #run: Started;
  readonly #buffer = new ReadBuffer();

  constructor(run: Started) {
    this.#run = run;
  }

  async start(): Promise<void> {
    this.#run.once("close", () => this.onclose?.());
    this.#run.stdout?.on("data", (chunk: Buffer) => {
      this.#buffer.append(chunk);
      for (let next = this.#buffer.readMessage(); next !== null; next = this.#buffer.readMessage()) {
        this.onmessage?.(next);
      }
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    this.#run.stdin?.write(serializeMessage(message));
  }

  async close(): Promise<void> {
    const closed = this.#run.exitCode === null && once(this.#run, "close");
    this.#run.stdin?.end();
    await closed;
  }
}

const it = flowTest({ autoApprove: "bob", scopesSupported: ["mcp", "reports:read"] }).extend(
  "startHost",
  ({ me, url }, { onCleanup }) => {
    const clients: Client[] = [];
    onCleanup(async () => void (await Promise.all(clients.map((client) => client.close()))));
    /** The official client as a host that starts the program. */
    return async (flags: readonly string[] = [], revision: Revision | "auto" = "2025-11-25", server = url) => {
      const run = startCli(["mcp", "proxy", server, ...flags], { env: { AGENTAUTH_HOME: me.home } });
      const err = collect(run.stderr);
      const mode = revision === "2026-07-28" ? { pin: revision } : revision === "auto" ? revision : ("legacy" as const);
      const client = new Client(
        { name: "host", version: "1" },
        { versionNegotiation: { mode }, capabilities: { sampling: {} } },
      );
      clients.push(client);
      await client.connect(new RunTransport(run));
      return { client, err };
    };
  },
);

const textOf = (result: unknown) => (result as { content: { text: string }[] }).content[0]?.text;

/** The secrets of every stored login. */
async function secretsOf(me: User): Promise<string[]> {
  return (await me.grants()).flatMap(({ tokens }) =>
    [tokens.accessToken, tokens.refreshToken].flatMap((secret) => secret?.reveal() ?? []),
  );
}

describe("agentauth mcp proxy", () => {
  it.for(REVISIONS)("offers tools and calls to a host of the revision %s", async (revision, { me, startHost }) => {
    await me.logIn();
    const { client, err } = await startHost([], revision);
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["whoami", "echo", "admin_report"]);
    const text = 'zwölf \u202e\u0007 \u{1f600} "\\\n';
    expect(textOf(await client.callTool({ name: "echo", arguments: { text } }))).toBe(text);
    expect(JSON.parse(textOf(await client.callTool({ name: "whoami" })) ?? "")).toMatchObject({ subject: "bob" });
    expect(client.getNegotiatedProtocolVersion()).toBe(revision);
    expect(err()).toBe("");
  });

  it("lets a host find out that it can use the newest revision", async ({ me, startHost }) => {
    await me.logIn();
    const { client, err } = await startHost([], "auto");
    expect(client.getNegotiatedProtocolVersion()).toBe("2026-07-28");
    expect(err()).toBe("");
  });

  it("passes the failures of tools and of methods on unchanged", async ({ me, startHost }) => {
    await me.logIn();
    const { client } = await startHost();
    expect(await client.callTool({ name: "echo" })).toMatchObject({ isError: true });
    const unknown = client.request({ method: "no/such" }, specTypeSchemas.EmptyResult);
    await expect(unknown).rejects.toMatchObject({ code: -32_601 });
  });

  it("refreshes a token that expires within a session, once for five proxies", async ({ me, startHost }) => {
    await me.logIn();
    const hosts = await Promise.all(Array.from({ length: 5 }, () => startHost()));
    await me.age(-10);
    const before = me.requests().length;
    const answers = await Promise.all(hosts.map(({ client }) => client.callTool({ name: "whoami" })));
    expect(answers.map((answer) => JSON.parse(textOf(answer) ?? "").subject)).toEqual(Array(5).fill("bob"));
    const since = me.requests().slice(before);
    expect(since.filter((line) => line.includes("token"))).toEqual(["POST /<pool>/token refresh_token 200"]);
    expect(since.filter((line) => line.includes("authorize"))).toEqual([]);
  });

  it("refreshes a token that the server refuses before it expires, and repeats the request", async ({
    faults,
    me,
    startHost,
  }) => {
    await me.logIn();
    const { client, err } = await startHost();
    faults.add({ kind: "status", status: 401, path: "mcp", times: 1, body: "empty" });
    expect(await client.callTool({ name: "whoami" })).toMatchObject({ content: [{ type: "text" }] });
    expect(me.requests().filter((line) => line.includes("refresh_token"))).toHaveLength(1);
    expect(err()).toBe("");
  });

  it("logs in once for five proxies with --login", async ({ me, startHost }) => {
    const hosts = await Promise.all(
      Array.from({ length: 5 }, () => startHost(["--login", "--browser", FETCH_BROWSER])),
    );
    const answers = await Promise.all(hosts.map(({ client }) => client.callTool({ name: "whoami" })));
    expect(answers.map((answer) => JSON.parse(textOf(answer) ?? "").subject)).toEqual(Array(5).fill("bob"));
    expect(me.requests().filter((line) => line.includes("authorization_code"))).toHaveLength(1);
  });

  it("steps up where it may, and prints the command where it may not", async ({ me, startHost, url }) => {
    await me.logIn("--scope", "mcp");
    const { client, err } = await startHost();
    const refused = client.callTool({ name: "admin_report" });
    await expect(refused).rejects.toThrow(`run: agentauth login ${url} --scope 'mcp reports:read'`);
    expect(await client.callTool({ name: "whoami" })).toMatchObject({ content: [{ type: "text" }] });
    expect(err()).toContain('warning: "tools/call": the token for');
    const able = await startHost(["--browser", FETCH_BROWSER]);
    expect(textOf(await able.client.callTool({ name: "admin_report" }))).toContain("12 pools");
    expect((await me.grant()).tokens.scope).toBe("mcp reports:read");
    // The host that was there before sees the login that another one made.
    expect(textOf(await client.callTool({ name: "admin_report" }))).toContain("12 pools");
  });

  it("shows no token, neither to the host nor on stderr", async ({ faults, me, url }) => {
    await me.logIn();
    const { child, out, err } = me.start(["mcp", "proxy", url, "-v"]);
    say(child, HELLO);
    faults.add({ kind: "status", status: 401, path: "mcp", times: 2, body: "empty", after: 1 });
    for (const id of [2, 3, 4]) say(child, { id, method: "tools/list" });
    await until(() => linesOf(out()).length === 4);
    const ended = once(child, "close");
    child.stdin?.end();
    await ended;
    expect(err()).toContain('host: "tools/list"');
    for (const secret of await secretsOf(me)) expect(out() + err()).not.toContain(secret);
  });
});

describe("agentauth mcp proxy, where no login is stored", () => {
  it("sends a host the command that logs in, and ends", async ({ me, startHost, url }) => {
    await expect(startHost()).rejects.toThrow(`not logged in; run: agentauth login ${url}`);
    expect(me.requests()).toEqual(["POST /mcp tools/list 401"]);
  });

  it("ends with 4 although its input stays open, with the error on stderr too", async ({ me, url }) => {
    const { child, out, err } = me.start(["mcp", "proxy", url]);
    const ended = once(child, "close");
    say(child, HELLO);
    say(child, { id: 2, method: "tools/list" });
    expect(await ended).toEqual([4, null]);
    expect(linesOf(out()).map((line) => JSON.parse(line).error.data.code)).toEqual([
      "login_required",
      "login_required",
    ]);
    expect(linesOf(err())).toEqual([
      expect.stringMatching(/^error: a login is required/),
      `hint: agentauth login ${url}`,
    ]);
  });

  it("ends with 4 where the host gives up, and with 0 where it never sent a request", async ({ me, url }) => {
    const lines = `${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" })}\n`;
    const requested = await me.run(["mcp", "proxy", url], { stdin: lines });
    expect([requested.code, JSON.parse(requested.stdout).error.data.code]).toEqual([4, "login_required"]);
    expect(await me.run(["mcp", "proxy", url], { stdin: "" })).toMatchObject({ code: 0, stdout: "", stderr: "" });
  });

  it("sees a login that is made while it runs", async ({ me, url }) => {
    const { child, out } = me.start(["mcp", "proxy", url]);
    say(child, { id: 1, method: "tools/list" });
    await until(() => linesOf(out()).length === 1);
    await me.logIn();
    say(child, { id: 2, method: "tools/list" });
    await until(() => linesOf(out()).length === 2);
    expect(JSON.parse(linesOf(out())[1] ?? "")).toMatchObject({ id: 2, result: {} });
    const ended = once(child, "close");
    child.stdin?.end();
    expect(await ended).toEqual([0, null]);
  });

  it.for([
    [["--flow", "paste"], "--flow paste reads standard input"],
    [["--client-id", "x", "--client-secret-file", "-"], "--client-secret-file - reads standard input"],
  ] as const)("refuses %j, for standard input is the host's", async ([flags, message], { me, url }) => {
    const { code, stdout, stderr } = await me.run(["mcp", "proxy", url, ...flags]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(message);
  });
});

describe("agentauth mcp proxy to a server that repeats the token in a refusal", () => {
  it("masks it", async ({ me }) => {
    const peer = await startServer((response, { headers }) => {
      response.writeHead(400).end(
        JSON.stringify({
          jsonrpc: "2.0",
          error: { code: 1, message: `no ${headers.authorization}`, data: [headers.authorization?.slice(7)] },
        }),
      );
    });
    const server = `${peer.origin}/mcp`;
    await storeGrant(me.home, server);
    const { stdout, stderr } = await me.run(["mcp", "proxy", server, "-v"], {
      stdin: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
    });
    expect(JSON.parse(stdout)).toMatchObject({
      id: 1,
      error: { code: 1, message: expect.stringMatching(/^no .*\*{8}/) },
    });
    expect(stdout + stderr).not.toContain("access-token-1");
    expect(peer.requests).toHaveLength(1);
  });
});

describe("agentauth mcp proxy behind a balancer", () => {
  it("pings with the cookie of the session, which begins again after a 403 to a refreshed token", async ({
    me,
    url,
  }) => {
    await me.logIn();
    const [stored] = await me.grants();
    if (stored === undefined) throw new Error("no login");
    let owner: string | undefined;
    let isBound = false;
    const peer = await startServer((response, { method, headers, body }) => {
      if (method !== "POST") return response.writeHead(method === "DELETE" ? 200 : 405).end();
      const { id, method: name, params } = JSON.parse(body);
      const { authorization } = headers;
      const answer = (result: object, more = {}) =>
        response
          .writeHead(200, { "content-type": "application/json", ...more })
          .end(JSON.stringify({ jsonrpc: "2.0", id, result }));
      if (name === "initialize") {
        owner = authorization;
        const { protocolVersion } = params;
        const more = { "mcp-session-id": "s", "set-cookie": "AWSALB=1; Path=/" };
        return answer({ protocolVersion, capabilities: {}, serverInfo: { name: "s", version: "1" } }, more);
      }
      if (isBound && authorization === `Bearer ${stored.tokens.accessToken.reveal()}`)
        return response.writeHead(401).end();
      if (authorization !== owner) return response.writeHead(403).end("not of this session");
      return id === undefined ? response.writeHead(202).end() : answer({});
    });
    const server = `${peer.origin}/mcp`;
    await fileStore(me.home).save({ ...stored, server, resource: url }, undefined);
    const run = startCli(["mcp", "proxy", server, "--keep-alive", "1", "--browser", FETCH_BROWSER], {
      env: { AGENTAUTH_HOME: me.home },
    });
    const out = collect(run.stdout);
    const send = (message: object) => run.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    send({ id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {} } });
    await until(() => out().includes('"id":1'));
    send({ method: "notifications/initialized" });
    const pings = () => peer.requests.filter(({ body }) => body.includes("agentauth-ping"));
    await until(() => pings().length > 0);
    expect(pings()[0]?.headers.cookie).toBe("AWSALB=1");
    isBound = true;
    send({ id: 2, method: "tools/list" });
    await until(() => out().includes('"id":2'));
    expect(JSON.parse(linesOf(out()).at(-1) ?? "")).toMatchObject({ id: 2, result: {} });
    const begun = peer.requests.filter(({ body }) => body.includes('"initialize"')).map(({ headers }) => headers);
    expect(new Set(begun.map(({ authorization }) => authorization)).size).toBe(2);
    run.stdin?.end();
    await once(run, "close");
  });
});

/** Stores a login at a server that checks no token. */
async function storeGrant(home: string, server: string): Promise<void> {
  const grant = madeGrant({ server, resource: server });
  const tokens = { ...grant.tokens, expiresAt: Date.now() + 3_600_000 };
  await fileStore(home).save({ ...grant, tokens }, undefined);
}

describe("agentauth mcp proxy to a server with sessions", () => {
  const withServer = it.extend("server", async ({ me }, { onCleanup }) => {
    const server = await startSessionServer();
    onCleanup(() => server.close());
    await storeGrant(me.home, server.url);
    return server;
  });

  withServer("passes progress, cancellation and the server's own requests", async ({ server, startHost }) => {
    const { client, err } = await startHost([], "2025-11-25", server.url);
    client.setRequestHandler("sampling/createMessage", () => ({
      role: "assistant" as const,
      model: "none",
      content: { type: "text" as const, text: "from the host" },
    }));
    const seen: number[] = [];
    const onprogress = ({ progress }: { progress: number }) => void seen.push(progress);
    const slow = client.callTool({ name: "hold" }, { onprogress });
    await until(() => seen.length === 1);
    server.release();
    expect(textOf(await slow)).toBe("released");
    expect(textOf(await client.callTool({ name: "ask" }))).toContain("from the host");
    const stop = new AbortController();
    const held = client.callTool({ name: "hold" }, { signal: stop.signal });
    await until(() => server.held.length === 1);
    stop.abort();
    await expect(held).rejects.toThrow();
    await until(() => server.cancelled.length === 1);
    expect(server.calls.every(({ headers }) => headers.authorization === "Bearer access-token-1")).toBe(true);
    expect(err()).toBe("");
  });

  withServer("reports a server that is gone, and works again after a restart", async ({ server, startHost }) => {
    const { client } = await startHost([], "2025-11-25", server.url);
    const held = client.callTool({ name: "hold" });
    await until(() => server.held.length === 1);
    await server.close();
    await expect(held).rejects.toThrow("127.0.0.1");
    await expect(client.listTools()).rejects.toThrow("the connection was refused");
    const restarted = await startSessionServer({ port: server.port });
    onTestFinished(() => restarted.close());
    expect((await client.listTools()).tools).toHaveLength(4);
  });

  withServer("ends the session and itself when the host closes its input", async ({ me, server }) => {
    const { child, err } = me.start(["mcp", "proxy", server.url]);
    say(child, HELLO);
    say(child, { method: "notifications/initialized" });
    await until(() => server.calls.some(({ method }) => method === "GET"));
    const ended = once(child, "close");
    child.stdin?.end();
    expect(await ended).toEqual([0, null]);
    expect([server.calls.at(-1)?.method, server.sessions.size, err()]).toEqual(["DELETE", 0, ""]);
  });
});

function say(child: Pick<Started, "stdin">, message: object): void {
  child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}

const HELLO = {
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "host", version: "1" } },
};
