import { once } from "node:events";
import {
  Client,
  type JSONRPCMessage,
  ReadBuffer,
  serializeMessage,
  specTypeSchemas,
  type Transport,
} from "@modelcontextprotocol/client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { fileStore } from "../../src/store/file/file.js";
import { collect, linesOf, type Started, startCli } from "../helpers/cli.js";
import { madeGrant } from "../helpers/grant.js";
import { startServer, until } from "../helpers/server.js";
import { type SessionServer, startSessionServer } from "../mcp/session-server.js";
import { type Desk, FETCH_BROWSER, type Newcomer, startDesk } from "./support.js";

let desk: Desk;
let me: Newcomer;
let url: string;
const open: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  desk = await startDesk({ autoApprove: "bob", scopesSupported: ["mcp", "reports:read"] });
  url = desk.url;
});
afterAll(() => desk.close());
beforeEach(() => {
  me = desk.newcomer();
});
afterEach(async () => {
  desk.sandbox.faults.clear();
  await Promise.all(open.splice(0).map((one) => one.close()));
});

const REVISIONS = ["2025-11-25", "2026-07-28"] as const;

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

/** The official client as a host that starts the program. */
async function startHost(
  flags: readonly string[] = [],
  revision: (typeof REVISIONS)[number] | "auto" = "2025-11-25",
  server = url,
) {
  const run = startCli(["mcp", "proxy", server, ...flags], { env: { AGENTAUTH_HOME: me.home } });
  const err = collect(run.stderr);
  const mode = revision === "2026-07-28" ? { pin: revision } : revision === "auto" ? revision : ("legacy" as const);
  const client = new Client(
    { name: "host", version: "1" },
    { versionNegotiation: { mode }, capabilities: { sampling: {} } },
  );
  open.push(client);
  await client.connect(new RunTransport(run));
  return { client, err };
}

const textOf = (result: unknown) => (result as { content: { text: string }[] }).content[0]?.text;

/** Everything that the store keeps secret. */
async function secrets(): Promise<string[]> {
  return (await me.grants()).flatMap(({ tokens }) =>
    [tokens.accessToken, tokens.refreshToken].flatMap((secret) => secret?.reveal() ?? []),
  );
}

describe("agentauth mcp proxy", () => {
  it.each(REVISIONS)("brings tools and calls to a host that speaks the revision %s", async (revision) => {
    await me.signIn();
    const { client, err } = await startHost([], revision);
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["whoami", "echo", "admin_report"]);
    const text = 'zwölf \u202e\u0007 \u{1f600} "\\\n';
    expect(textOf(await client.callTool({ name: "echo", arguments: { text } }))).toBe(text);
    expect(JSON.parse(textOf(await client.callTool({ name: "whoami" })) ?? "")).toMatchObject({ subject: "bob" });
    expect(client.getNegotiatedProtocolVersion()).toBe(revision);
    expect(err()).toBe("");
  });

  it("lets a host find out that it may speak the newest revision", async () => {
    await me.signIn();
    const { client, err } = await startHost([], "auto");
    expect(client.getNegotiatedProtocolVersion()).toBe("2026-07-28");
    expect(err()).toBe("");
  });

  it("passes the failures of tools and of methods on as they are", async () => {
    await me.signIn();
    const { client } = await startHost();
    expect(await client.callTool({ name: "echo" })).toMatchObject({ isError: true });
    const unknown = client.request({ method: "no/such" }, specTypeSchemas.EmptyResult);
    await expect(unknown).rejects.toMatchObject({ code: -32_601 });
  });

  it("refreshes a token that expires within a session, once for five proxies", async () => {
    await me.signIn();
    const hosts = await Promise.all(Array.from({ length: 5 }, () => startHost()));
    await me.age(-10);
    const before = me.asked().length;
    const answers = await Promise.all(hosts.map(({ client }) => client.callTool({ name: "whoami" })));
    expect(answers.map((answer) => JSON.parse(textOf(answer) ?? "").subject)).toEqual(Array(5).fill("bob"));
    const since = me.asked().slice(before);
    expect(since.filter((line) => line.includes("token"))).toEqual(["POST /<pool>/token refresh_token 200"]);
    expect(since.filter((line) => line.includes("authorize"))).toEqual([]);
  });

  it("refreshes a token that the server refuses before it expires, and repeats the request", async () => {
    await me.signIn();
    const { client, err } = await startHost();
    desk.sandbox.faults.add({ kind: "status", status: 401, path: "mcp", times: 1, body: "empty" });
    expect(await client.callTool({ name: "whoami" })).toMatchObject({ content: [{ type: "text" }] });
    expect(me.asked().filter((line) => line.includes("refresh_token"))).toHaveLength(1);
    expect(err()).toBe("");
  });

  it("logs in once for five proxies with --login", async () => {
    const hosts = await Promise.all(
      Array.from({ length: 5 }, () => startHost(["--login", "--browser", FETCH_BROWSER])),
    );
    const answers = await Promise.all(hosts.map(({ client }) => client.callTool({ name: "whoami" })));
    expect(answers.map((answer) => JSON.parse(textOf(answer) ?? "").subject)).toEqual(Array(5).fill("bob"));
    expect(me.asked().filter((line) => line.includes("authorization_code"))).toHaveLength(1);
  });

  it("steps up where it may, and prints the command where it may not", async () => {
    await me.signIn("--scope", "mcp");
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

  it("shows no token, neither to the host nor on stderr", async () => {
    await me.signIn();
    const { child, out, err } = me.start(["mcp", "proxy", url, "-v"]);
    say(child, HELLO);
    desk.sandbox.faults.add({ kind: "status", status: 401, path: "mcp", times: 2, body: "empty", after: 1 });
    for (const id of [2, 3, 4]) say(child, { id, method: "tools/list" });
    await until(() => linesOf(out()).length === 4);
    const ended = once(child, "close");
    child.stdin?.end();
    await ended;
    expect(err()).toContain('host: "tools/list"');
    for (const secret of await secrets()) expect(out() + err()).not.toContain(secret);
  });
});

describe("agentauth mcp proxy, where no login is stored", () => {
  it("sends a host the command that helps, and ends", async () => {
    await expect(startHost()).rejects.toThrow(`not logged in; run: agentauth login ${url}`);
    expect(me.asked()).toEqual([]);
  });

  it("ends with 4 although its input stays open, with the error on stderr too", async () => {
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

  it("ends with 4 where the host gives up, and with 0 where it never asked for anything", async () => {
    const lines = `${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" })}\n`;
    const asked = await me.run(["mcp", "proxy", url], { stdin: lines });
    expect([asked.code, JSON.parse(asked.stdout).error.data.code]).toEqual([4, "login_required"]);
    expect(await me.run(["mcp", "proxy", url], { stdin: "" })).toMatchObject({ code: 0, stdout: "", stderr: "" });
  });

  it("sees a login that is made while it runs", async () => {
    const { child, out } = me.start(["mcp", "proxy", url]);
    say(child, { id: 1, method: "tools/list" });
    await until(() => linesOf(out()).length === 1);
    await me.signIn();
    say(child, { id: 2, method: "tools/list" });
    await until(() => linesOf(out()).length === 2);
    expect(JSON.parse(linesOf(out())[1] ?? "")).toMatchObject({ id: 2, result: {} });
    const ended = once(child, "close");
    child.stdin?.end();
    expect(await ended).toEqual([0, null]);
  });

  it.each([
    [["--flow", "paste"], "--flow paste reads standard input"],
    [["--client-id", "x", "--client-secret-file", "-"], "--client-secret-file - reads standard input"],
  ])("refuses %j, for standard input is the host's", async (flags, message) => {
    const { code, stdout, stderr } = await me.run(["mcp", "proxy", url, ...flags]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(message);
  });
});

describe("agentauth mcp proxy to a server that repeats the token in a refusal", () => {
  it("masks it", async () => {
    const peer = await startServer((response, { headers }) => {
      response.writeHead(400).end(
        JSON.stringify({
          jsonrpc: "2.0",
          error: { code: 1, message: `no ${headers.authorization}`, data: [headers.authorization?.slice(7)] },
        }),
      );
    });
    const server = `${peer.origin}/mcp`;
    await keepGrant(server);
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

/** Keeps a login at a server that checks no token. */
async function keepGrant(server: string): Promise<void> {
  const grant = madeGrant({ server, resource: server });
  const tokens = { ...grant.tokens, expiresAt: Date.now() + 3_600_000 };
  await fileStore(me.home).save({ ...grant, tokens }, undefined);
}

describe("agentauth mcp proxy to a server with sessions", () => {
  let server: SessionServer;
  beforeEach(async () => {
    server = await startSessionServer();
    await keepGrant(server.url);
  });
  afterEach(() => server.close());

  it("passes progress, cancellation and the server's own requests", async () => {
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

  it("reports a server that is gone, and works again with one that has come back", async () => {
    const { client } = await startHost([], "2025-11-25", server.url);
    const held = client.callTool({ name: "hold" });
    await until(() => server.held.length === 1);
    await server.close();
    await expect(held).rejects.toThrow("127.0.0.1");
    await expect(client.listTools()).rejects.toThrow("the connection was refused");
    server = await startSessionServer({ port: server.port });
    await expect(client.listTools()).rejects.toThrow("has ended the session, or was restarted");
  });

  it("ends the session and itself when the host closes its input", async () => {
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
