import { Readable, Writable } from "node:stream";
import { expect, it, vi } from "vitest";
import { main, printRootHelp } from "../../src/cli/main.js";
import type { Host } from "../../src/cli/runtime/context.js";
import { VERSION } from "../../src/http/version.js";
import { temporaryFolder } from "../helpers/folder.js";

// The build writes the help beside its files; the sources have none.
vi.mock("node:fs", async (original) => {
  const fs = await original<typeof import("node:fs")>();
  const readFileSync = (path: URL, encoding: "utf8") => {
    if (/\/help-(?:80|100)\.txt$/.test(path.href)) return `the help of ${path.href.split("/").at(-1)}`;
    return fs.readFileSync(path, encoding);
  };
  return { ...fs, readFileSync };
});

function hostOf(env: Record<string, string>, failure?: Error): { host: Host; out: () => string; err: () => string } {
  let out = "";
  const stdout = new Writable({
    write(chunk, _encoding, done) {
      out += String(chunk);
      done(failure);
    },
  });
  let err = "";
  const stderr = new Writable({
    write(chunk, _encoding, done) {
      err += String(chunk);
      done();
    },
  });
  const streams = { stdin: Readable.from([]), stdout, stderr };
  const rest = { on: () => {}, off: () => {}, emit: () => false };
  const exit = () => {
    throw new Error("the process was ended");
  };
  return { host: { ...streams, ...rest, exit, env }, out: () => out, err: () => err };
}

it.each<[string[], Record<string, string>, string]>([
  [[], {}, "help-80.txt"],
  [["--help"], {}, "help-80.txt"],
  [["-h"], { COLUMNS: "100" }, "help-100.txt"],
  [["help"], { COLUMNS: "400" }, "help-100.txt"],
])("%j with %j prints the help as the build has written it: %s", async (argv, env, file) => {
  const { host, out } = hostOf(env);
  expect([await printRootHelp(argv, host), out()]).toEqual([true, `the help of ${file}`]);
});

it.each<[string, string[], Record<string, string>]>([
  ["another command line", ["--help", "--help"], {}],
  ["another command", ["devices"], {}],
  ["a width for which no help is written", ["--help"], { COLUMNS: "57" }],
])("leaves %s to the program", async (_what, argv, env) => {
  const { host, out } = hostOf(env);
  expect([await printRootHelp(argv, host), out()]).toEqual([false, ""]);
});

it("has printed it where the reader has closed the pipe, and leaves any other failure to the program", async () => {
  const failure = (code: string) => Object.assign(new Error(code), { code });
  expect(await printRootHelp([], hostOf({}, failure("EPIPE")).host)).toBe(true);
  expect(await printRootHelp([], hostOf({}, failure("ENOSPC")).host)).toBe(false);
});

it.each<[string[], number, string | RegExp, string | RegExp]>([
  [["--version"], 0, `${VERSION}\n`, ""],
  [["-V"], 0, `${VERSION}\n`, ""],
  [["--help"], 0, "the help of help-80.txt", ""],
  [[], 0, "the help of help-80.txt", /^\nNothing is set up here yet/],
  [["help", "exit-codes"], 0, /^Exit codes/i, ""],
  [["config", "path"], 0, /config\.json\n$/, ""],
  [["-q", "config", "path"], 0, /config\.json\n$/, ""],
  [["devices", "list", "--help"], 0, /^Usage: agentauth devices list/, ""],
  [["devices", "list"], 2, "", /no pool is named/],
  [["token"], 2, "", /^error: missing required argument/],
  [["token", "https://mcp.example/mcp", "--format", "xml"], 2, "", /must be one of raw, /],
  [["sandbox", "--help"], 0, /^Usage: agentauth sandbox/, ""],
  [["zzzzzzzz"], 2, "", "error: unknown command 'zzzzzzzz'\nhint: see agentauth --help\n"],
  [["devics"], 2, "", /did you mean devices/],
  ...["-h", "--help", "-vh"].map((flag): [string[], number, RegExp, string] => [
    ["zzzzzzzz", flag],
    0,
    /Lists +devices, pools, domains, api/,
    "",
  ]),
  [["zzzzzzzz", "x-h"], 2, "", /unknown command/],
  [["--version", "x"], 0, `${VERSION}\n`, ""],
])("%j ends with %i", async (argv, code, out, err) => {
  const run = hostOf({ AGENTAUTH_HOME: temporaryFolder() });
  expect([argv, await main(argv, run.host)]).toEqual([argv, code]);
  const fits = (pattern: string | RegExp) => (typeof pattern === "string" ? pattern : expect.stringMatching(pattern));
  expect([run.out(), run.err()]).toEqual([fits(out), fits(err)]);
});
