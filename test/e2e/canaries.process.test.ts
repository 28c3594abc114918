import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { linesOf, runProcess, temporaryFolder } from "../helpers/cli.js";
import { testbedTest } from "../helpers/testbed-test.js";
import { unsafeCharacters } from "../helpers/unsafe.js";

const it = testbedTest({ devices: 5, autoApprove: true }).extend(
  "run",
  ({ testbed }) =>
    (args: readonly string[], { env }: { env: Record<string, string> }) =>
      runProcess(args, { env: { ...testbed.env, ...env } }),
);

/** Loaded before the program: breaks something in it, so that a bug of our own comes up with secrets in its words. */
const BUGS: readonly (readonly [string, string])[] = [
  [
    "in the work",
    `const { set } = Map.prototype;
    Map.prototype.set = function (key, value) {
      if (key === "authorization") throw bug();
      return set.call(this, key, value);
    };`,
  ],
  ["in the work and in its report", "later(() => { JSON.stringify = () => { throw bug(); }; throw bug(); });"],
  ["in a timer", "later(() => { throw bug(); });"],
  ["in a promise that is not awaited", "later(() => void Promise.reject(bug()));"],
  ["that is no error", "later(() => { throw { toString: bug, token }; });"],
];

function preload(code: string): string {
  const path = join(temporaryFolder(), "bug.cjs");
  const bug = `const token = process.env.AGENTAUTH_API_TOKEN;
    const http = require("node:http");
    const { syncBuiltinESMExports } = require("node:module");
    const bug = () => Object.assign(new Error("\\u001b[31mbug with " + token, { cause: new Error("deeper " + token) }), { token });`;
  // Once the first request is made: before that the program is not there yet.
  const later = `const { request } = http;
    const later = (work) => {
      http.request = function (...all) {
        setImmediate(work);
        return request.apply(this, all);
      };
      syncBuiltinESMExports();
    };`;
  writeFileSync(path, [bug, later, code].join("\n"));
  return path;
}

describe("a bug of our own", () => {
  it.for(BUGS)("%s is reported without the secrets that it knows of", async ([_where, code], { testbed, run }) => {
    const env = { NODE_OPTIONS: `--require=${preload(code)}` };
    for (const flags of [[], ["--debug"]]) {
      testbed.sandbox.faults.clear();
      testbed.sandbox.faults.add({ kind: "slow-headers", ms: 600, times: 1 });
      const reported = [await run([...testbed.devices, ...flags], { env })];
      reported.push(await run([...testbed.devices, "-o", "ndjson", ...flags], { env }));
      for (const { code: exit, stderr } of reported) {
        expect([exit, stderr]).toEqual([1, expect.stringContaining("a bug in agentauth")]);
        expect(stderr).not.toContain(testbed.sandbox.apiToken);
        expect(unsafeCharacters(stderr, "\n")).toEqual([]);
      }
    }
    testbed.sandbox.faults.clear();
  });

  it("says with --debug where it is, and without nothing but what it is", async ({ testbed, run }) => {
    const env = { NODE_OPTIONS: `--require=${preload("later(() => { throw bug(); });")}` };
    testbed.sandbox.faults.add({ kind: "slow-headers", ms: 600 });
    const short = await run(testbed.devices, { env });
    expect(linesOf(short.stderr)).toEqual([
      "error: a bug in agentauth: Error: \\e[31mbug with ********",
      "hint: run the command again with --debug to see where it happened",
    ]);
    const { stderr } = await run([...testbed.devices, "--debug"], { env });
    expect(stderr).toMatch(/\n {4}at .*bug\.cjs.*\ncaused by Error: deeper \*{8}\n/s);
    testbed.sandbox.faults.clear();
  });
});

describe("what other programs can see", () => {
  const linux = existsSync("/proc/self/environ");

  it.skipIf(!linux)(
    "of a command that runs with a token: that token in its environment, and nothing else",
    async ({ testbed, run }) => {
      const home = temporaryFolder();
      const browser = `"${process.execPath}" -e "fetch(process.argv[1]).then((page) => page.text())"`;
      const env = {
        AGENTAUTH_HOME: home,
        AGENTAUTH_ID_TOKEN: "canary-id-token",
        AGENTAUTH_CLIENT_SECRET: "canary-secret",
      };
      const { mcpUrl } = testbed.sandbox;
      expect((await run(["login", mcpUrl, "--browser", browser], { env })).code).toBe(0);
      const token = (await run(["token", mcpUrl], { env })).stdout.trim();
      expect(token.length).toBeGreaterThan(20);
      const look = (what: string) => `require("fs").readFileSync("/proc/" + ${what}, "latin1")`;
      const report = join(temporaryFolder(), "seen");
      const seen = [look('"self/cmdline"'), look('"self/environ"'), look('process.ppid + "/cmdline"')];
      const program = `require("fs").writeFileSync(${JSON.stringify(report)}, JSON.stringify([${seen.join(", ")}]))`;
      const execRun = await run(["exec", mcpUrl, "--", process.execPath, "-e", program], { env });
      expect([execRun.code, execRun.stderr]).toEqual([0, ""]);
      const [cmdline = "", environ = "", parent = ""] = JSON.parse(readFileSync(report, "utf8")) as string[];
      expect(environ.split("\0").filter((entry) => entry.includes(token))).toEqual([`AGENTAUTH_TOKEN=${token}`]);
      for (const text of [cmdline, parent]) expect(text).not.toContain(token);
      for (const text of [cmdline, parent, environ]) {
        expect(text).not.toMatch(/canary/);
        expect(text).not.toContain(testbed.sandbox.apiToken);
      }
    },
  );
});
