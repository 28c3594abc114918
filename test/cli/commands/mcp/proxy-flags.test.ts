import { once } from "node:events";
import { chmodSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { fileStore } from "../../../../src/store/file/file.js";
import { collect, linesOf, type RunOptions, runCli, startCli, temporaryFolder, until } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { madeGrant } from "../../../helpers/grant.js";
import { ON_WINDOWS } from "../../../helpers/systems.js";
import { startLossyServer } from "../../../mcp/lossy-server.js";
import { type PlainAnswer, sendResult, startPlainServer } from "../../../mcp/plain-server.js";
import { HELLO, type HostMessage } from "../../../mcp/stdio-host.js";

const TOOLS = ["read_a", "delete_a", "evil\u001b[2J"].map((name) => ({ name, inputSchema: { type: "object" } }));
const answerTools: PlainAnswer = ({ id, method }, response) =>
  sendResult(response, id, method === "tools/list" ? { tools: TOOLS } : { content: [] });

type Flags = (url: string) => string[];

const hostOf = async (answer: PlainAnswer, flags: Flags, env: RunOptions["env"] = {}) =>
  hostAt(await startPlainServer(answer), flags, env);

/** A host that starts the program with a login at the server. */
async function hostAt<S extends { url: string }>(server: S, flags: Flags, env: RunOptions["env"] = {}) {
  const home = temporaryFolder();
  const grant = madeGrant({ server: server.url, resource: server.url, requestedScope: undefined });
  const expiresAt = Date.now() + 3_600_000;
  const tokens = { ...grant.tokens, refreshToken: undefined, expiresAt, obtainedAt: Date.now() };
  await fileStore(home).save({ ...grant, tokens }, undefined);
  const run = startCli(["mcp", "proxy", ...flags(server.url)], { env: { AGENTAUTH_HOME: home, ...env } });
  const [out, err] = [collect(run.stdout), collect(run.stderr)];
  const messages = () => linesOf(out()).map((line) => JSON.parse(line) as HostMessage);
  const send = (message: object) => void run.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const ask = async (id: number, method: string, params: object = {}) => {
    send({ id, method, params });
    await until(() => messages().some((one) => one.id === id));
    return messages().find((one) => one.id === id);
  };
  const end = async () => {
    const closed = once(run, "close");
    run.stdin?.end();
    await closed;
    return { code: run.exitCode, stderr: err() };
  };
  return { server, ask, send, end, token: grant.tokens.accessToken.reveal(), err };
}

/** A private file. */
function fileOf(text: string): string {
  const path = join(temporaryFolder(), "headers");
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

const proxy = (...args: string[]) =>
  runCli(["mcp", "proxy", ...args], {
    env: { AGENTAUTH_HOME: temporaryFolder(), KEY: "from-env-123", BAD: "a\r\nX-Evil: 1" },
  });
const URL_ = "https://mcp.example/mcp";

describe("the tools of mcp proxy", () => {
  it("that are hidden or not allowed are neither listed nor called", async () => {
    const host = await hostOf(answerTools, (url) => [url, "--allow-tool", "*_a", "--hide-tool", "delete_*"]);
    await host.ask(1, "initialize", HELLO);
    expect((await host.ask(2, "tools/list"))?.result).toMatchObject({ tools: [{ name: "read_a" }] });
    expect((await host.ask(3, "tools/call", { name: "Delete_A" }))?.error).toEqual({
      code: -32_602,
      message: 'refused by the tool policy: the tool "Delete_A" is hidden by "delete_*"',
      data: { code: "tool_refused" },
    });
    const { message } = (await host.ask(4, "tools/call", { name: "evil\u001b[2J" }))?.error ?? {};
    expect(message).toContain('"evil\\e[2J" has a control character');
    host.send({ method: "tools/call", params: { name: "delete_a" } });
    expect((await host.ask(5, "tools/call", { name: "read_a" }))?.result).toEqual({ content: [] });
    const { code, stderr } = await host.end();
    const calls = host.server.requests.filter(({ body }) => body.includes("tools/call"));
    expect([code, calls.length, stderr.match(/refused: /g)?.length]).toEqual([0, 1, 3]);
    expect(stderr).not.toContain("\u001b");
  });
});

describe("the headers of mcp proxy", () => {
  it("go with each request, beside the token, and are shown nowhere", async () => {
    const file = fileOf("# of the tenant\nX-Api-Key: file-secret-1\r\n\nX-Other: env:KEY\n");
    const answer: PlainAnswer = (_call, response) =>
      response.writeHead(500).end("no file-secret-1 from-env-123 plain-value of-a-scheme-9");
    const headers = [
      "X-Tenant: plain-value",
      "X-TE: a",
      "X-Scheme: env:SCHEMED",
      "Accept-Language: de",
      "X-Token: env:KEY",
    ];
    const host = await hostOf(
      answer,
      (url) => [url, "--debug", ...headers.flatMap((header) => ["--header", header]), "--header-file", file],
      { KEY: "from-env-123", SCHEMED: "Token of-a-scheme-9" },
    );
    await host.ask(1, "initialize", HELLO);
    const { error } = (await host.ask(2, "ping")) ?? {};
    const { stderr } = await host.end();
    for (const { headers: sent } of host.server.requests.filter(({ method }) => method === "POST")) {
      expect(sent).toMatchObject({
        ...{ "x-tenant": "plain-value", "x-token": "from-env-123", "x-other": "from-env-123", "x-te": "a" },
        ...{ "accept-language": "de", "x-api-key": "file-secret-1", authorization: `Bearer ${host.token}` },
      });
    }
    expect(error?.message).toContain("HTTP 500");
    expect(`${error?.message}${stderr}`).not.toMatch(/file-secret-1|from-env-123|plain-value|of-a-scheme-9/);
  });

  it("may replace the login", async () => {
    const flags = (url: string) => [url, "--header", "Authorization: Bearer env:KEY"];
    const host = await hostOf(answerTools, flags, { KEY: "own-token-123" });
    await host.ask(1, "initialize", HELLO);
    await host.end();
    expect(host.server.requests.map(({ headers }) => headers.authorization)).toEqual(["Bearer own-token-123"]);
  });

  it.skipIf(ON_WINDOWS)("may have a secret that a command prints", async () => {
    const host = await hostOf(answerTools, (url) => [url, "--header", "X-Api-Key: exec:printf %s printed-123"]);
    await host.ask(1, "initialize", HELLO);
    await host.end();
    expect(host.server.requests[0]?.headers["x-api-key"]).toBe("printed-123");
  });

  it.each<[string, string[]]>([
    ["a secret on the command line", ["--header", "Authorization: Bearer abcdefgh"]],
    ["a key on the command line", ["--header", "X-Api-Key: abcdefgh"]],
    ["no header", ["--header", "abcdefgh"]],
    ["a name with a space", ["--header", "X y: abcdefgh"]],
    ["a second header in a value", ["--header", "X-A: a\r\nX-B: abcdefgh"]],
    ["a second header in a variable", ["--header", "X-A: env:BAD"]],
    ["a second header in a file", ["--header-file", fileOf("X-A: a\u0000b\n")]],
    ["a variable that is not set", ["--header", "X-Token: env:MISSING"]],
    ["the session", ["--header", "Mcp-Session-Id: abcdefgh"]],
    ["a header twice", ["--header", "X-A: 1", "--header", "x-a: 2"]],
  ])("are refused: %s", async (_what, flags) => {
    const { code, stderr } = await proxy(URL_, ...flags);
    expect(code).toBe(2);
    expect(fixedText(stderr)).toMatchSnapshot();
    expect(stderr).not.toContain("abcdefgh");
  });

  it.each(
    `HOST Accept Accept-Encoding Connection Content-Type DPoP Keep-Alive Last-Event-ID Mcp-Protocol-Version
      Proxy-Authorization TE Trailer Transfer-Encoding Upgrade`.split(/\s+/),
  )("are refused: %s", async (name) => {
    const stderr = `error: --header "${name}" is set by the proxy itself\nhint: leave it out\n`;
    expect(await proxy(URL_, "--header", `${name}: abcdefgh`)).toMatchObject({ code: 2, stderr });
  });

  it.skipIf(ON_WINDOWS)("are refused in a file that other users can read", async () => {
    const file = fileOf("X-Api-Key: file-secret-1\n");
    chmodSync(file, 0o644);
    const { code, stderr } = await proxy(URL_, "--header-file", file);
    expect([code, stderr]).toEqual([8, expect.stringMatching(/can be read by others.*chmod 600/s)]);
    expect(stderr).not.toContain("file-secret-1");
  });
});

it("mcp proxy asks for no login where the server answers 401 because it has lost the session", async () => {
  const lost = (response: ServerResponse) => {
    const text = "Unauthorized: Session not found";
    response.writeHead(401, { "content-length": text.length }).end(text);
  };
  const host = await hostAt(await startLossyServer({ lost }), (url) => [url, "--login", "--browser", "none"]);
  await host.ask(1, "initialize", HELLO);
  host.server.restart();
  expect(await host.ask(2, "tools/list")).toMatchObject({ result: {} });
  const { code, stderr } = await host.end();
  expect([code, stderr, host.server.of("initialize").length]).toEqual([0, "", 2]);
});

it("mcp proxy needs the URL of one server", async () => {
  expect(await proxy()).toMatchObject({ code: 2, stderr: expect.stringContaining("mcp_url") });
});

it("mcp proxy sends nothing before the login has the scope that is named", async () => {
  const host = await hostOf(answerTools, (url) => [url, "--scope", "tools admin"]);
  host.send({ id: 1, method: "initialize", params: HELLO });
  const { code, stderr } = await host.end();
  expect([code, stderr]).toEqual([4, expect.stringContaining("the token lacks the scope tools admin\n")]);
  expect(stderr).toContain(`hint: agentauth login ${host.server.url} --scope 'tools admin'\n`);
  expect(host.server.requests.filter(({ headers }) => headers.authorization !== undefined)).toEqual([]);
});

it("mcp proxy keeps an idle session alive, and shows the host nothing of it", async () => {
  const host = await hostOf(answerTools, (url) => [url, "--keep-alive", "0.02"]);
  const pings = () => host.server.requests.filter(({ body }) => body.includes('"ping"')).length;
  await host.ask(1, "initialize", HELLO);
  await until(() => pings() > 1);
  const { result } = (await host.ask(2, "tools/list")) ?? {};
  expect(result?.["tools"]).toHaveLength(3);
  expect(await host.end()).toEqual({ code: 0, stderr: "" });
});
