import { once } from "node:events";
import { describe, expect } from "vitest";
import { fileStore } from "../../../../src/store/file/file.js";
import { collect, linesOf, type RunOptions, runCli, temporaryFolder, until } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { madeGrant } from "../../../helpers/grant.js";
import {
  type PlainAnswer,
  type PlainOptions,
  sendError,
  sendResult,
  startPlainServer,
} from "../../../mcp/plain-server.js";
import { harnessTest, type User } from "../harness.js";

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "host", version: "1" } },
};

const it = harnessTest()
  .extend("call", ({ harness, me }) => {
    return (args: string[], more: RunOptions = {}) => me.run(["mcp", "call", harness.url, ...args], more);
  })
  /** Sends one message as a host does, and closes standard input after the answer. */
  .extend("host", ({ harness }) => async (of: User, ...flags: string[]) => {
    const run = of.start(["mcp", "proxy", harness.url, ...flags]);
    const closed = once(run, "close");
    const [out, err] = [collect(run.stdout), collect(run.stderr)];
    run.stdin?.write(`${JSON.stringify(INITIALIZE)}\n`);
    await until(() => out().includes("\n") || run.exitCode !== null);
    run.stdin?.end();
    await closed;
    return { code: run.exitCode, messages: linesOf(out()).map((line) => JSON.parse(line)), stderr: err() };
  });

/** Runs of the program with a login at a server whose responses the test writes. */
async function loggedInAt(answer: PlainAnswer, options?: PlainOptions) {
  const { url } = await startPlainServer(answer, options);
  const home = temporaryFolder();
  const grant = madeGrant({ server: url, resource: url, requestedScope: undefined });
  const expiresAt = Date.now() + 3_600_000;
  const tokens = { ...grant.tokens, refreshToken: undefined, expiresAt, obtainedAt: Date.now() };
  await fileStore(home).save({ ...grant, tokens }, undefined);
  const run = (args: readonly string[], more: RunOptions = {}) =>
    runCli(args, { ...more, env: { AGENTAUTH_HOME: home, ...more.env } });
  return { url, run, call: (...flags: string[]) => run(["mcp", "call", url, "tool", ...flags]) };
}

it("keeps numbers in arguments and results as they are written", async () => {
  const { url, requests } = await startPlainServer(({ id }, response) => {
    const result = '{"content":[],"structuredContent":{"n":[12345678901234567890,0.12345678901234567890,1.0]}}';
    response.writeHead(200, { "content-type": "application/json" });
    response.end(`{"jsonrpc":"2.0","id":${id}.0,"result":${result}}`);
  });
  const env = { AGENTAUTH_HOME: temporaryFolder() };
  const args = ["--args", '{"n":98765432109876543210}', "--json", "--no-login"];
  const { code, stdout } = await runCli(["mcp", "call", url, "tool", ...args], { env });
  expect([code, stdout]).toEqual([
    0,
    expect.stringContaining('{"n":[12345678901234567890,0.12345678901234567890,1.0]}'),
  ]);
  expect(requests.at(-1)?.body).toContain('"arguments":{"n":98765432109876543210}');
});

describe("mcp tools", () => {
  it("lists the tools", async ({ harness, me }) => {
    const ids = await me.run(["mcp", "tools", harness.url, "-o", "id"]);
    expect([ids.code, linesOf(ids.stdout)]).toEqual([0, ["whoami", "echo", "admin_report"]]);
    const table = await me.run(["mcp", "tools", harness.url, "-o", "table"]);
    expect(linesOf(table.stdout)[0]).toMatch(/^TOOL +ABOUT$/);
    const json = await me.run(["mcp", "tools", harness.url, "--json"]);
    expect(JSON.parse(json.stdout)[1]).toMatchObject({ name: "echo", inputSchema: { required: ["text"] } });
  });

  it("exits with 4 without a login, and with 2 for an address that is none", async ({ harness, me }) => {
    expect(await harness.user().run(["mcp", "tools", harness.url])).toMatchObject({ code: 4, stdout: "" });
    expect(await me.run(["mcp", "tools", "nowhere"])).toMatchObject({ code: 2, stdout: "" });
  });
});

describe("mcp call", () => {
  it("prints the text of the result, or the result as JSON", async ({ call }) => {
    expect(await call(["echo", "--args", '{"text":"hello"}'])).toMatchObject({
      code: 0,
      stdout: "hello\n",
      stderr: "",
    });
    const piped = await call(["echo", "--args", "-", "--json"], { stdin: '{"text":"from a pipe"}' });
    expect([piped.code, JSON.parse(piped.stdout).content]).toEqual([0, [{ type: "text", text: "from a pipe" }]]);
  });

  it("exits with 6 where the tool fails, with its output on standard output", async ({ call }) => {
    const { code, stdout, stderr } = await call(["echo"]);
    expect([code, stdout]).toEqual([6, 'echo needs the argument "text", a string\n']);
    expect(stderr).toContain('error: the tool "echo" failed; its output is on standard output\n');
  });

  it.for<[string, string[], RegExp]>([
    ["arguments that are no JSON", ["--args", "{"], /--args "\{" is not JSON/],
    ["arguments that are no object", ["--args", "[1]"], /is not a JSON object/],
  ])("refuses %s", async ([_what, flags, words], { call }) => {
    const { code, stdout, stderr } = await call(["echo", ...flags]);
    expect([code, stdout, stderr]).toEqual([2, "", expect.stringMatching(words)]);
    expect(fixedText(stderr)).toMatchSnapshot();
  });

  it.each<[number, number]>([
    [401, 4],
    [404, 6],
    [503, 5],
  ])("exits for HTTP %i with %i", async (status, exit) => {
    const { call: callPlain } = await loggedInAt((_call, response) => response.writeHead(status).end());
    expect(await callPlain("--retries", "0")).toMatchObject({ code: exit, stdout: "" });
  });

  it("exits with 6 for an error of the protocol, and prints its message", async () => {
    const { call: callPlain } = await loggedInAt(({ id }, response) =>
      sendError(response, id, -32_602, "no such tool"),
    );
    const { code, stderr } = await callPlain();
    expect([code, stderr]).toEqual([6, expect.stringContaining("no such tool")]);
    const failing = await loggedInAt(({ id }, response) => sendError(response, id, -32_602, "bad words", 400));
    const failed = await failing.call();
    expect([failed.code, failed.stderr]).toEqual([6, expect.stringContaining("bad words")]);
  });

  it.each<[string, PlainOptions]>([
    ["a call", {}],
    ["the end of the handshake", { handshake: "endless" }],
    ["the handshake", { handshake: "none" }],
  ])("exits with 5 where %s gets no response in time", async (_what, options) => {
    const { call: callPlain } = await loggedInAt(() => undefined, options);
    const { code, stderr } = await callPlain("--timeout", "1");
    expect([code, stderr]).toEqual([5, expect.stringContaining("no response in 1 s")]);
  });

  it("exits with 5 where the connection breaks, and with 130 at SIGINT", async () => {
    const broken = await loggedInAt((_call, response) => response.destroy());
    expect((await broken.call("--retries", "0")).code).toBe(5);
    const controller = new AbortController();
    const silent = await loggedInAt(() => controller.abort());
    const { code } = await silent.run(["mcp", "call", silent.url, "tool"], { signal: controller.signal });
    expect(code).toBe(130);
  });

  it("masks a token that the server repeats", async () => {
    const { call: callPlain } = await loggedInAt(({ id }, response) =>
      sendResult(response, id, { content: [{ type: "text", text: "it is access-token-1" }] }),
    );
    expect(await callPlain()).toMatchObject({ code: 0, stdout: "it is ********\n" });
  });
});

describe("what mcp tools and mcp call print of a plain server", () => {
  const tool = (name: string, more: object = {}) => ({ name, inputSchema: { type: "object" }, ...more });
  const TOOLS = [
    tool("a", { description: "First\nof all", title: "A", annotations: { readOnlyHint: true }, _meta: { x: 1 }, y: 2 }),
    tool("b\u001b[31m"),
    tool("access-token-1"),
  ];
  const CONTENT = [
    { type: "text", text: "one\ntwo" },
    { type: "image", data: "AA==", mimeType: "image/png" },
  ];

  it.each(["table", "wide", "plain", "json", "ndjson", "csv", "id"])("as %s", async (format) => {
    const { url, run } = await loggedInAt(({ id, method }, response) =>
      sendResult(
        response,
        id,
        method === "tools/list" ? { tools: TOOLS } : { content: CONTENT, structuredContent: { b: 1 } },
      ),
    );
    const tools = await run(["mcp", "tools", url, "-o", format]);
    const called = await run(["mcp", "call", url, "a", "--args", '{"x":1}', "-o", format]);
    expect([tools.code, tools.stderr, called.code, called.stderr]).toEqual([0, "", 0, ""]);
    expect(`${tools.stdout}---\n${called.stdout}`.replaceAll("\u001b", "<esc>")).toMatchSnapshot();
  });

  it("sends the arguments, and as the client that it is", async () => {
    const calls: unknown[] = [];
    const { call: callPlain } = await loggedInAt(({ id, method, params }, response) => {
      calls.push([method, params]);
      sendResult(response, id, { content: [] });
    });
    await callPlain("--args", '{"x":[1]}');
    await callPlain();
    expect(calls).toMatchObject([
      ["tools/call", { name: "tool", arguments: { x: [1] } }],
      ["tools/call", { name: "tool", arguments: {} }],
    ]);
  });
});

describe("the failures of mcp call, whole", () => {
  const html =
    (status: number, headers: Record<string, string> = {}): PlainAnswer =>
    (_call, response) =>
      response.writeHead(status, headers).end("<html>");

  it.each<[string, PlainAnswer, string[]]>([
    ["401", html(401), []],
    ["403 with words", ({ id }, response) => sendError(response, id, -32_000, "not \u001b[31m allowed", 403), []],
    ["404", html(404, { "x-request-id": "r-1" }), []],
    ["429", html(429, { "retry-after": "7" }), []],
    ["503 with words", ({ id }, response) => sendError(response, id, -32_000, "closed", 503), []],
    ["an error of the protocol", ({ id }, response) => sendError(response, id, -32_602, `no\n${"x".repeat(400)}`), []],
    ["a tool that fails", ({ id }, response) => sendResult(response, id, { content: [], isError: true }), []],
    ["no response in time", () => undefined, ["--timeout", "1"]],
    ["a connection that breaks", (_call, response) => response.destroy(), []],
  ])("%s", async (_what, answer, flags) => {
    const { url, run } = await loggedInAt(answer);
    const env = { AGENTAUTH_ERRORS: "json", AGENTAUTH_CLIENT_SECRET: "machine-secret" };
    const { code, stderr } = await run(["mcp", "call", url, "tool", "--retries", "0", "--no-login", ...flags], { env });
    const { error } = JSON.parse(linesOf(stderr).at(-1) ?? "") as { error: object };
    expect({ code, error: JSON.parse(fixedText(JSON.stringify(error))) }).toMatchSnapshot();
  });
});

describe("mcp proxy", () => {
  it.for<[string[]]>([[[]], [["--scope", "mcp"]], [["-v"]]])(
    "passes a message on and its answer back: %j",
    async ([flags], { me, host }) => {
      const { code, messages } = await host(me, ...flags);
      expect([code, messages]).toEqual([0, [expect.objectContaining({ id: 1, result: expect.any(Object) })]]);
    },
  );

  it("reports the login command to the host, and exits with 4", async ({ harness, host }) => {
    const { code, messages, stderr } = await host(harness.user());
    expect([code, stderr]).toEqual([4, expect.stringContaining(`agentauth login ${harness.url}`)]);
    expect(JSON.stringify(messages)).toContain("agentauth login");
  });

  it("asks no user to log in, on a terminal either", async ({ harness }) => {
    const run = harness.user().start(["mcp", "proxy", harness.url], { tty: true });
    const [closed, err] = [once(run, "close"), collect(run.stderr)];
    run.stdin?.write(`${JSON.stringify(INITIALIZE)}\n`);
    await until(() => run.exitCode !== null || err().includes("/authorize?"));
    run.stdin?.end();
    await closed;
    expect([run.exitCode, err()]).toEqual([4, expect.not.stringContaining("/authorize?")]);
  });

  it("exits with 4 where the server rejects the token", async ({ faults, me, host }) => {
    faults.add({ kind: "status", status: 401, path: "mcp", times: 0 });
    const { code, stderr } = await host(me);
    expect([code, stderr]).toEqual([4, expect.stringContaining("the server rejected the token (HTTP 401)")]);
  });

  it("passes an error of the server on to the host", async ({ faults, me, host }) => {
    faults.add({ kind: "status", status: 503, path: "mcp", times: 0 });
    const { messages } = await host(me, "--retries", "0");
    expect(messages).toEqual([expect.objectContaining({ id: 1, error: expect.any(Object) })]);
  });

  it.for<[string, string[], RegExp]>([
    ["--flow paste", ["--flow", "paste"], /--flow paste reads standard input, which carries the MCP host's messages/],
    [
      "a secret on standard input",
      ["--client-id", "x", "--client-secret-file", "-"],
      /--client-secret-file - reads standard input/,
    ],
  ])("refuses %s", async ([_what, flags, words], { harness, me }) => {
    const { code, stdout, stderr } = await me.run(["mcp", "proxy", harness.url, ...flags]);
    expect([code, stdout, stderr]).toEqual([2, "", expect.stringMatching(words)]);
    expect(fixedText(stderr)).toMatchSnapshot();
  });

  it("refuses an address that is none", async ({ me }) => {
    expect(await me.run(["mcp", "proxy", "nowhere"])).toMatchObject({ code: 2, stdout: "" });
  });
});
