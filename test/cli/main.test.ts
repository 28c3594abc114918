import { Readable, Writable } from "node:stream";
import { expect, it, vi } from "vitest";
import { printRootHelp } from "../../src/cli/main.js";
import type { Host } from "../../src/cli/runtime/context.js";

// The build writes the help beside its files; the sources have none.
vi.mock("node:fs", async (original) => {
  const fs = await original<typeof import("node:fs")>();
  const readFileSync = (path: URL, encoding: "utf8") => {
    if (/\/help-(?:80|100)\.txt$/.test(path.href)) return `the help of ${path.href.split("/").at(-1)}`;
    return fs.readFileSync(path, encoding);
  };
  return { ...fs, readFileSync };
});

function hostOf(env: Record<string, string>, failure?: Error): { host: Host; out: () => string } {
  let out = "";
  const stdout = new Writable({
    write(chunk, _encoding, done) {
      out += String(chunk);
      done(failure);
    },
  });
  const streams = { stdin: Readable.from([]), stdout, stderr: new Writable() };
  const rest = { on: () => {}, off: () => {}, emit: () => false };
  const exit = () => {
    throw new Error("the process was ended");
  };
  return { host: { ...streams, ...rest, exit, env }, out: () => out };
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
