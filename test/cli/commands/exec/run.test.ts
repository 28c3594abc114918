import { EventEmitter, once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { PassThrough, Writable } from "node:stream";
import { describe, expect } from "vitest";
import { parseCommand, runExec } from "../../../../src/cli/commands/exec/run.js";
import { createPendingSaves } from "../../../../src/cli/runtime/context.js";
import { processSignals } from "../../../../src/cli/runtime/signals.js";
import { memoryStore } from "../../../../src/store/memory.js";
import { collect, linesOf, runCli, temporaryFolder, until } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { ON_WINDOWS } from "../../../helpers/systems.js";
import { startRun } from "../../run-support.js";
import { harnessTest, startHarness, type User } from "../harness.js";

const it = harnessTest().extend(
  "exec",
  ({ harness, me }) =>
    (...words: string[]) =>
      me.run(["exec", harness.url, ...words]),
);

const shell = (script: string) => ["--", "sh", "-c", script];

it("runs the command with the token in its environment, and masks the token in its output", async ({ harness, me }) => {
  const script =
    'test -n "$AGENTAUTH_TOKEN" && test -z "$AGENTAUTH_API_TOKEN" && echo "it is $AGENTAUTH_TOKEN"; exit 7';
  const env = { AGENTAUTH_API_TOKEN: "tok_0123456789abcdef" };
  const { code, stdout, stderr } = await me.run(["exec", harness.url, ...shell(script)], { env });
  expect([code, stdout, stderr]).toEqual([7, "it is ********\n", ""]);
});

it("masks both outputs", async ({ exec }) => {
  const script = 'echo "$AGENTAUTH_TOKEN"; echo "$AGENTAUTH_TOKEN" >&2';
  expect(await exec(...shell(script))).toMatchObject({ code: 0, stdout: "********\n", stderr: "********\n" });
});

it("passes on its standard input", async ({ harness, me }) => {
  expect((await me.run(["exec", harness.url, "--", "cat"], { stdin: "typed\n" })).stdout).toBe("typed\n");
});

it("passes a signal on to the command, and exits as the command does", async ({ harness, me }) => {
  const run = me.start([
    "exec",
    harness.url,
    ...shell("trap 'echo got it; exit 42' TERM; echo ready; while :; do sleep 0.05; done"),
  ]);
  const closed = once(run, "close");
  const out = collect(run.stdout);
  await until(() => out().includes("ready"));
  run.kill("SIGTERM");
  expect([await closed, out()]).toEqual([[42, null], "ready\ngot it\n"]);
});

it("exits only after a save, where its reader has stopped reading and a signal has ended the command", async ({
  harness,
  me,
}) => {
  const exits: number[] = [];
  const own = {
    stdin: new PassThrough(),
    stdout: new Writable({ write: () => undefined }),
    stderr: new PassThrough(),
    env: { PATH: process.env["PATH"] },
    release: () => undefined,
    exit: (code: number) => exits.push(code) as never,
  };
  const signals = processSignals(new EventEmitter());
  const pendingSaves = createPendingSaves();
  const argv = ["exec", harness.url, "--", "yes"];
  const { context } = startRun(
    { env: { AGENTAUTH_HOME: me.home } },
    {},
    { argv, signals, pendingSaves, acquireProcess: () => own },
  );
  let save = () => {};
  const saved = new Promise<void>((resolve) => {
    save = resolve;
  });
  const saving = pendingSaves.watch(memoryStore()).lease(
    "refresh",
    async (lease) => {
      await lease.commit();
      await saved;
    },
    { durationMs: 60_000 },
  );
  const run = runExec({ url: harness.url, command: ["yes"] }, context);
  await until(() => own.stdout.writableLength > 0);
  signals.raise("SIGTERM");
  expect(await Promise.race([run, new Promise((resolve) => setTimeout(resolve, 3000, "waits"))])).toBe("waits");
  expect(exits).toEqual([]);
  save();
  expect(await run).toBe(143);
  expect(exits).toEqual([143]);
  await saving;
});

it.for([
  ["SIGTERM", 143],
  ["SIGKILL", 137],
] as const)(
  "exits with 128 and the number of the signal that ended the command: %s",
  async ([signal, code], { exec }) => {
    expect((await exec(...shell(`kill -${signal.slice(3)} $$`))).code).toBe(code);
  },
);

const folder = temporaryFolder();
const script = join(folder, "not-a-program");
writeFileSync(script, "#!/bin/sh\n");
chmodSync(script, 0o644);
const looped = join(folder, "loop");
symlinkSync(looped, looped);

it.for<[string, string, number, string]>([
  ["is not found", "no-such-program", 127, "is not found (ENOENT)"],
  ["cannot be run", script, 126, "cannot be run (EACCES)"],
  ["cannot be started", looped, 125, "cannot be started (ELOOP)"],
])("reports a command that %s, as text and as JSON", async ([_what, command, exit, words], { harness, me, exec }) => {
  const { code, stdout, stderr } = await exec("--", command);
  expect([code, stdout, stderr]).toEqual([
    exit,
    "",
    expect.stringContaining(`error: the command "${command}" ${words}\n`),
  ]);
  const json = await me.run(["exec", harness.url, "--", command], { env: { AGENTAUTH_ERRORS: "json" } });
  expect([json.code, JSON.parse(json.stderr)]).toMatchObject([exit, { error: { class: "usage", exit_code: exit } }]);
});

it.for<[string, string[], RegExp]>([
  ["without --", ["touch", "FILE"], /^error: the command must follow "--"/],
  ["without a command", ["--"], /^error: there is no command after "--"/],
  ["with a word before --", ["x", "--", "touch", "FILE"], /^error: unexpected argument "x" before "--"/],
  [
    "with a variable that is none",
    ["--as", "header:X", "--", "touch", "FILE"],
    /^error: --as "header:X" must be a name /,
  ],
])("starts nothing %s", async ([_what, words, expected], { exec }) => {
  const file = join(temporaryFolder(), "started");
  const { code, stdout, stderr } = await exec(...words.map((word) => word.replace("FILE", file)));
  expect([code, stdout, existsSync(file)]).toEqual([2, "", false]);
  expect(stderr).toMatch(expected);
  expect(fixedText(stderr)).toMatchSnapshot();
});

it("starts nothing without a login, for an address that is none, and for a token that only we can use", async ({
  harness,
  me,
}) => {
  const file = join(temporaryFolder(), "started");
  const none = await harness.user().run(["exec", harness.url, "--", "touch", file]);
  expect([none.code, none.stderr]).toEqual([4, expect.stringContaining(`hint: agentauth login ${harness.url}\n`)]);
  expect((await me.run(["exec", "nowhere", "--", "touch", file])).code).toBe(2);
  const bound = await startHarness({ dpop: "required" });
  const owner = bound.user();
  await owner.logIn();
  const refused = await owner.run(["exec", bound.url, "--", "touch", file]);
  await bound.close();
  expect([refused.code, existsSync(file)]).toEqual([2, false]);
});

const URL = "https://mcp.example/mcp";

describe("the words of the command", () => {
  it.each<[string, string[]]>([
    ["everything after the first --", ["make", "-j", "2", "test"]],
    ["flags that are ours too", ["agent", "--verbose", "--as", "x", "-q", "--help"]],
    ["another --", ["git", "log", "--", "file"]],
    ["words that a shell would read otherwise", ["echo", "$HOME", "*", "a b", "", "'"]],
  ])("%s", (_what, words) => {
    expect(parseCommand({ url: URL, command: words }, ["exec", URL, "--", ...words])).toEqual(words);
  });

  it.each<[string, string[], string[], { message: string; hint: string }]>([
    [
      "no --",
      ["exec", "-v", URL, "make", "--jobs", "two words"],
      ["make", "--jobs", "two words"],
      { message: 'the command must follow "--"', hint: `agentauth exec -v ${URL} -- make --jobs 'two words'` },
    ],
    ["no word at all", ["exec", URL], [], { message: "the command is missing", hint: expect.any(String) }],
    [
      "nothing after --",
      ["exec", URL, "--"],
      [],
      { message: 'there is no command after "--"', hint: expect.any(String) },
    ],
    [
      "a word before --",
      ["exec", URL, "x", "--", "y"],
      ["x", "y"],
      { message: 'unexpected argument "x" before "--"', hint: expect.any(String) },
    ],
    [
      "an empty word",
      ["exec", URL, "--", ""],
      [""],
      { message: "the command is an empty word", hint: expect.any(String) },
    ],
  ])("%s is a mistake that is reported", (_what, argv, command, reported) => {
    expect(() => parseCommand({ url: URL, command }, argv)).toThrow(
      expect.objectContaining({ class: "usage", ...reported }),
    );
  });

  it("a command without an address before it is a mistake too", () => {
    expect(() => parseCommand({ url: "make", command: [] }, ["exec", "--", "make"])).toThrow(
      'no MCP server is named before "--"',
    );
  });
});

describe("--as", () => {
  it.each(["", "env:A", "file:A", "2x", "A=B", "A B", "A\n", "\u00c4"])("%j is no variable", async (value) => {
    const { code, stderr } = await runCli(["exec", URL, "--as", value, "--", "true"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("must be a name of letters, digits and _")]);
  });
});

/** A program of the shell that prints its environment, and waits for a line before it ends. */
const WAITING = ["--", "sh", "-c", "env; echo ready; read line; exit 7"];

/** Starts it with a broker, and sends a request in its place. */
async function startWith({ start }: User, ...words: string[]) {
  const child = start(["exec", ...words, ...WAITING]);
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
  it("gives the command a socket of its own, and no token", async ({ harness, me }) => {
    const { environment, call, end, err } = await startWith(me, "-v", "--broker", `mcp=${harness.url},tools=who*`);
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

  it("gives it the URL of a broker on TCP", async ({ harness, me }) => {
    const { environment, call, end } = await startWith(me, "--listen", "127.0.0.1:0", "--broker", `mcp=${harness.url}`);
    expect(environment).not.toHaveProperty("AGENTAUTH_BROKER_SOCKET");
    expect(environment["AGENTAUTH_BROKER_URL"]).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[\da-f]{32}$/);
    expect((await call()).status).toBe(200);
    expect(await end()).toBe(7);
    await expect(call()).rejects.toThrow("ECONNREFUSED");
  });

  it("starts the command without a login, and names the one that is needed", async ({ harness, user }) => {
    const socket = join(mkdtempSync(join(tmpdir(), "b-")), "run", "a.sock");
    const started = await startWith(user, "--listen", `unix:${socket}`, "--broker", `mcp=${harness.url}`);
    expect(started.environment["AGENTAUTH_BROKER_SOCKET"]).toBe(socket);
    expect((await started.call()).status).toBe(503);
    await user.logIn();
    expect((await started.call()).status).toBe(200);
    expect([await started.end(), existsSync(socket)]).toEqual([7, false]);
    expect(started.err()).toBe(`warning: mcp needs a login: agentauth login ${harness.url}\n`);
  });

  it("ends with a command that is not found", async ({ harness, me }) => {
    expect(await me.run(["exec", "--broker", `mcp=${harness.url}`, "--", "no-such-program"])).toMatchObject({
      code: 127,
    });
  });

  const grant = ["--broker", "mcp=https://mcp.example/mcp"];
  it.for<[string, string[], string]>([
    [
      "an MCP server",
      [...grant, "https://mcp.example/mcp"],
      'unexpected argument "https://mcp.example/mcp" before "--"',
    ],
    ["--as", [...grant, "--as", "TOKEN"], "--broker and --as do not go together"],
    ["--min-ttl", [...grant, "--min-ttl", "5"], "--broker and --min-ttl do not go together"],
    ["--login", [...grant, "--login"], "--broker and --login do not go together"],
    ["--scope", [...grant, "--scope", "a"], "hint: --broker <name>=<url>,scope=<scopes>"],
    ["the same name again", [...grant, ...grant], '--broker names "mcp" twice'],
    ["a grant without a URL", ["--broker", "mcp"], '--broker "mcp" is not <name>=<url>'],
    ["a server that is none", ["--broker", "mcp=x"], '--broker: grants.mcp.server "x" is not a URL'],
    [
      "an address that is none",
      [...grant, "--listen", "x"],
      "is none of unix:<path>, systemd:<name> and 127.0.0.1:<port>",
    ],
    ["an address of others", [...grant, "--listen", "0.0.0.0:80"], "is not an address of this machine alone"],
    ["no broker for --listen", ["https://mcp.example/mcp", "--listen", "unix:/a"], "--listen is for a broker"],
  ])("starts nothing with %s", async ([_what, words, message]) => {
    const file = join(temporaryFolder(), "started");
    writeFileSync(`${file}.js`, `require("node:fs").writeFileSync(${JSON.stringify(file)}, "")`);
    const { code, stderr } = await runCli(["exec", ...words, "--", process.execPath, `${file}.js`]);
    expect([code, existsSync(file)]).toEqual([2, false]);
    expect(stderr).toContain(message);
    expect(fixedText(stderr).replaceAll(process.execPath, "<node>")).toMatchSnapshot();
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
    expect(fixedText(stderr)).toMatchSnapshot();
  });
});
