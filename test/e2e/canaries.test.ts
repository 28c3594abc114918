import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { plant, shownSecrets, watch } from "../helpers/canaries.js";
import { type Bench, collect, linesOf, runCli, startBench, startProcesses, temporaryFolder } from "../helpers/cli.js";
import { sendJson, startServer } from "../helpers/server.js";
import { unsafeCharacters } from "../helpers/unsafe.js";

startProcesses();

let bench: Bench;

beforeAll(async () => {
  bench = await startBench({ devices: 5, autoApprove: true });
});
afterAll(() => bench.sandbox.close());

/** A child that says a text, watched as the program is. */
async function sayer(text: string, args: readonly string[], home = temporaryFolder()): Promise<string[]> {
  const child = spawn(process.execPath, ["-e", `console.error(${JSON.stringify(text)})`], { stdio: "pipe" });
  watch(child, args, { AGENTAUTH_HOME: home });
  const said = collect(child.stderr);
  child.stdout.resume();
  await once(child, "close");
  expect(said()).toBe(`${text}\n`);
  return shownSecrets();
}

describe("the check that runs after each test", () => {
  it("knows what any server of the process gave out and was told", async () => {
    const { origin } = await startServer((response) => {
      response.setHeader("location", "https://client.example/?code=code-of-a-canary");
      sendJson(response, { deeper: [{ refresh_token: "refresh-of-a-canary" }] });
    });
    const body = new URLSearchParams({ code_verifier: "verifier-of-a-canary" });
    await (await fetch(origin, { method: "POST", body })).text();
    for (const [value, name] of [
      ["code", "code"],
      ["refresh", "refresh_token"],
      ["verifier", "code_verifier"],
    ]) {
      const shown = await sayer(`it is ${value}-of-a-canary!`, ["status"]);
      expect(shown).toEqual([`${name} on stderr of agentauth status`]);
    }
    expect(await sayer("nothing of the kind", ["status"])).toEqual([]);
  });

  it("looks into every file but those that are there for secrets", async () => {
    plant("access_token", "access-of-a-canary");
    const home = temporaryFolder();
    for (const folder of ["grants", "claims"]) {
      mkdirSync(join(home, folder));
      writeFileSync(join(home, folder, "x.json"), '{"a":"access-of-a-canary"}');
    }
    expect(await sayer("", ["status"], home)).toEqual([expect.stringMatching(/^access_token in the file claims/)]);
  });
});

/** Loaded before the program: breaks something in it, so that a bug of our own comes up with secrets in its words. */
const BUGS: readonly (readonly [string, string])[] = [
  ["in the work", "Headers.prototype.set = () => { throw bug(); };"],
  ["in the work and in telling it", "later(() => { JSON.stringify = () => { throw bug(); }; throw bug(); });"],
  ["in a timer", "later(() => { throw bug(); });"],
  ["in a promise that nobody awaits", "later(() => void Promise.reject(bug()));"],
  ["that is no error", "later(() => { throw { toString: bug, token }; });"],
];

function preload(code: string): string {
  const path = join(temporaryFolder(), "bug.cjs");
  const bug = `const token = process.env.AGENTAUTH_API_TOKEN;
    const bug = () => Object.assign(new Error("\\u001b[31mbug with " + token, { cause: new Error("deeper " + token) }), { token });`;
  // Once the first request is made: before that the program is not there yet.
  const later = `const { set } = Headers.prototype;
    const later = (work) => {
      Headers.prototype.set = function (...all) {
        setImmediate(work);
        return set.apply(this, all);
      };
    };`;
  writeFileSync(path, [bug, later, code].join("\n"));
  return path;
}

describe("a bug of our own", () => {
  it.each(BUGS)("%s is told without the secrets that it knows of", async (_where, code) => {
    const env = { NODE_OPTIONS: `--require=${preload(code)}` };
    for (const flags of [[], ["--debug"]]) {
      bench.sandbox.faults.clear();
      bench.sandbox.faults.add({ kind: "slow-headers", ms: 600, times: 1 });
      const told = [await bench.run([...bench.devices, ...flags], { env })];
      told.push(await bench.run([...bench.devices, "-o", "ndjson", ...flags], { env }));
      for (const { code: exit, stderr } of told) {
        expect([exit, stderr]).toEqual([1, expect.stringContaining("a bug in agentauth")]);
        expect(stderr).not.toContain(bench.sandbox.apiToken);
        expect(unsafeCharacters(stderr, "\n")).toEqual([]);
      }
    }
    bench.sandbox.faults.clear();
  });

  it("says with --debug where it is, and without nothing but what it is", async () => {
    const env = { NODE_OPTIONS: `--require=${preload("later(() => { throw bug(); });")}` };
    bench.sandbox.faults.add({ kind: "slow-headers", ms: 600 });
    const short = await bench.run(bench.devices, { env });
    expect(linesOf(short.stderr)).toEqual([
      "error: a bug in agentauth: Error: \\e[31mbug with ********",
      "hint: run the command again with --debug to see where it happened",
    ]);
    const { stderr } = await bench.run([...bench.devices, "--debug"], { env });
    expect(stderr).toMatch(/\n {4}at .*bug\.cjs.*\ncaused by Error: deeper \*{8}\n/s);
    bench.sandbox.faults.clear();
  });
});

describe("what other programs can see", () => {
  const linux = existsSync("/proc/self/environ");

  it.skipIf(!linux)(
    "of a command that runs with a token: that token in its environment, and nothing else",
    async () => {
      const home = temporaryFolder();
      const browser = `"${process.execPath}" -e "fetch(process.argv[1]).then((page) => page.text())"`;
      const env = {
        AGENTAUTH_HOME: home,
        AGENTAUTH_ID_TOKEN: "canary-id-token",
        AGENTAUTH_CLIENT_SECRET: "canary-secret",
      };
      const { mcpUrl } = bench.sandbox;
      expect((await bench.run(["login", mcpUrl, "--browser", browser], { env })).code).toBe(0);
      const token = (await bench.run(["token", mcpUrl], { env })).stdout.trim();
      expect(token.length).toBeGreaterThan(20);
      const look = (what: string) => `require("fs").readFileSync("/proc/" + ${what}, "latin1")`;
      const report = join(temporaryFolder(), "seen");
      const seen = [look('"self/cmdline"'), look('"self/environ"'), look('process.ppid + "/cmdline"')];
      const program = `require("fs").writeFileSync(${JSON.stringify(report)}, JSON.stringify([${seen.join(", ")}]))`;
      const run = await bench.run(["exec", mcpUrl, "--", process.execPath, "-e", program], { env });
      expect([run.code, run.stderr]).toEqual([0, ""]);
      const [cmdline = "", environ = "", parent = ""] = JSON.parse(readFileSync(report, "utf8")) as string[];
      expect(environ.split("\0").filter((entry) => entry.includes(token))).toEqual([`AGENTAUTH_TOKEN=${token}`]);
      for (const text of [cmdline, parent]) expect(text).not.toContain(token);
      for (const text of [cmdline, parent, environ]) {
        expect(text).not.toMatch(/canary/);
        expect(text).not.toContain(bench.sandbox.apiToken);
      }
    },
  );
});

describe("every command with --debug", () => {
  const env = {
    AGENTAUTH_CLIENT_SECRET: "canary-client-secret",
    AGENTAUTH_ID_TOKEN: "canary-id-token",
    HTTPS_PROXY: "http://person:canary-password@127.0.0.1:9",
  };
  const { account, pool } = { account: "acc", pool: "pool" };

  it.each([
    ["devices", "list", "--pool", pool],
    ["devices", "get", "dev", "--pool", pool],
    ["tree", "--account", account],
    ["api", "GET", "/api/v1/device", "-f", "pool_id=x"],
    ["config", "list"],
    ["config", "set", "api_token", "canary-typed-token"],
    ["profile", "list"],
    ["doctor", "-o", "json"],
    ["doctor"],
    ["status", "--all"],
    ["sandbox", "status"],
    ["sandbox", "fault", "503"],
    ["discover", "https://person:canary-password@mcp.example/mcp"],
    ["token", "https://mcp.invalid/mcp", "--client-id", "x"],
    ["mcp", "tools", "https://mcp.invalid/mcp"],
  ])("shows no secret of its surroundings: %s %s", async (...args) => {
    const { stdout, stderr } = await bench.run([...args, "--debug", "--timeout", "3", "--retries", "0"], {
      env: { ...env, AGENTAUTH_HOME: temporaryFolder() },
    });
    expect(stdout + stderr).not.toMatch(/canary/);
    expect(stdout + stderr).not.toContain(bench.sandbox.apiToken);
  });

  it("and the demo, which has secrets of its own", async () => {
    const { code, stdout, stderr } = await runCli(["demo", "--debug"]);
    expect(code).toBe(0);
    expect(stdout + stderr).not.toMatch(/sandbox_[\w-]{20}|eyJ[\w-]{20}/);
  });
});
