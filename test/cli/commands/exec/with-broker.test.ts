import { once } from "node:events";
import { existsSync, mkdtempSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect } from "vitest";
import { collect, linesOf, runCli, temporaryFolder, until } from "../../../helpers/cli.js";
import { ON_WINDOWS } from "../../../helpers/systems.js";
import { deskTest, type User } from "../desk.js";

const it = deskTest();

/** A program of the shell that prints its environment, and waits for a line before it ends. */
const COMMAND = ["--", "sh", "-c", "env; echo ready; read line; exit 7"];

/** Starts it with a broker, and sends a request in its place. */
async function startWith({ start }: User, ...words: string[]) {
  const child = start(["exec", ...words, ...COMMAND]);
  const [out, err, ended] = [collect(child.stdout), collect(child.stderr), once(child, "close")];
  await until(() => out().includes("ready\n") || child.exitCode !== null);
  const environment = Object.fromEntries(linesOf(out()).map((line) => line.split(/=(.*)/s, 2)));
  return {
    environment,
    err,
    async call() {
      const { AGENTAUTH_BROKER_SOCKET: socketPath, AGENTAUTH_BROKER_URL: url = "http://localhost" } = environment;
      const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
      const sent = request(`${url}/mcp`, { method: "POST", headers, socketPath, agent: false });
      sent.end(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "whoami" } }));
      const [response] = await once(sent, "response");
      let text = "";
      for await (const part of response) text += part;
      return { status: response.statusCode, text };
    },
    async end() {
      child.stdin?.write("\n");
      return (await ended)[0];
    },
  };
}

describe.skipIf(ON_WINDOWS)("exec --broker", () => {
  it("gives the command a socket of its own, and no token", async ({ desk, me }) => {
    const { environment, call, end, err } = await startWith(me, "-v", "--broker", `mcp=${desk.url},tools=who*`);
    const { AGENTAUTH_BROKER_SOCKET: socket = "", ...others } = environment;
    const folder = dirname(socket);
    expect([folder, socket].map((path) => (statSync(path).mode & 0o777).toString(8))).toEqual(["700", "600"]);
    expect(await call()).toEqual({ status: 200, text: expect.stringContaining('\\"subject\\":\\"alice\\"') });
    expect(Object.keys(others).filter((name) => /TOKEN|BROKER/.test(name))).toEqual([]);
    const [grant] = await me.store.list();
    for (const secret of [grant?.tokens.accessToken, grant?.tokens.refreshToken])
      expect(JSON.stringify(environment)).not.toContain(secret?.reveal() ?? "TOKEN");
    expect(await end()).toBe(7);
    expect(err()).toContain('default: mcp POST "whoami": 200 in ');
    expect(existsSync(folder)).toBe(false);
  });

  it("gives it the URL of a broker on TCP", async ({ desk, me }) => {
    const { environment, call, end } = await startWith(me, "--listen", "127.0.0.1:0", "--broker", `mcp=${desk.url}`);
    expect(environment).not.toHaveProperty("AGENTAUTH_BROKER_SOCKET");
    expect(environment["AGENTAUTH_BROKER_URL"]).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[\da-f]{32}$/);
    expect((await call()).status).toBe(200);
    expect(await end()).toBe(7);
    await expect(call()).rejects.toThrow("ECONNREFUSED");
  });

  it("starts the command without a login, and names the one that is needed", async ({ desk, user }) => {
    const socket = join(mkdtempSync(join(tmpdir(), "b-")), "run", "a.sock");
    const started = await startWith(user, "--listen", `unix:${socket}`, "--broker", `mcp=${desk.url}`);
    expect(started.environment["AGENTAUTH_BROKER_SOCKET"]).toBe(socket);
    expect((await started.call()).status).toBe(503);
    await user.logIn();
    expect((await started.call()).status).toBe(200);
    expect([await started.end(), existsSync(socket)]).toEqual([7, false]);
    expect(started.err()).toBe(`warning: mcp needs a login: agentauth login ${desk.url}\n`);
  });

  it("ends with a command that is not found", async ({ desk, me }) => {
    expect(await me.run(["exec", "--broker", `mcp=${desk.url}`, "--", "no-such-program"])).toMatchObject({ code: 127 });
  });

  const grant = ["--broker", "mcp=https://mcp.example/mcp"];
  it.for<[string, string[], string]>([
    [
      "an MCP server",
      [...grant, "https://mcp.example/mcp"],
      'unexpected argument "https://mcp.example/mcp" before "--"',
    ],
    ["--as", [...grant, "--as", "env:TOKEN"], "--broker and --as do not go together"],
    ["--min-ttl", [...grant, "--min-ttl", "5"], "--broker and --min-ttl do not go together"],
    ["--mask", [...grant, "--no-mask"], "--broker and --mask do not go together"],
    ["--login", [...grant, "--login"], "--broker and --login do not go together"],
    ["--scope", [...grant, "--scope", "a"], "hint: --broker <name>=<url>,scope=<scopes>"],
    ["the same name again", [...grant, ...grant], '--broker names "mcp" twice'],
    ["a grant without a URL", ["--broker", "mcp"], '--broker "mcp" is not <name>=<url>'],
    ["a server that is none", ["--broker", "mcp=x"], '--broker: grants.mcp.server "x" is not a URL'],
    ["an address that is none", [...grant, "--listen", "x"], "is neither unix:<path> nor 127.0.0.1:<port>"],
    ["an address of others", [...grant, "--listen", "0.0.0.0:80"], "is not an address of this machine alone"],
    ["no broker for --listen", ["https://mcp.example/mcp", "--listen", "unix:/a"], "--listen is for a broker"],
  ])("starts nothing with %s", async ([_what, words, message]) => {
    const file = join(temporaryFolder(), "started");
    writeFileSync(`${file}.js`, `require("node:fs").writeFileSync(${JSON.stringify(file)}, "")`);
    const { code, stderr } = await runCli(["exec", ...words, "--", process.execPath, `${file}.js`]);
    expect([code, existsSync(file)]).toEqual([2, false]);
    expect(stderr).toContain(message);
  });

  it.for<[string[], string]>([
    [grant, "error: the command is missing\nhint: agentauth exec --broker <name>=<mcp_url> -- <command> [args...]\n"],
    [[...grant, "--"], 'error: there is no command after "--"\nhint: agentauth exec --broker '],
    [
      [...grant, "make", "--jobs"],
      'error: the command must follow "--"\nhint: agentauth exec --broker mcp=https://mcp.example/mcp -- make --jobs\n',
    ],
  ])("%j has no command", async ([words, message]) => {
    const { code, stderr } = await runCli(["exec", ...words]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });
});
