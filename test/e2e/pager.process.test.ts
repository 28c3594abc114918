import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import stringWidth from "string-width";
import { describe, expect } from "vitest";
import { benchTest } from "../helpers/bench-test.js";
import { allIds, linesOf, temporaryFolder, until } from "../helpers/cli.js";
import { hasTerminal, startOnTerminal } from "./terminal-support.js";

const hasLess = spawnSync("sh", ["-c", "command -v less"]).status === 0;
if (!hasLess) process.stderr.write("SKIPPED: one test of the pager needs the program less\n");

/** A pager that writes down what it is given, and its environment. */
function makePager(body = "process.exit(0);") {
  const folder = temporaryFolder();
  const [program, seen, env] = ["pager.mjs", "seen", "env.json"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(
    program,
    `import { appendFileSync, writeFileSync } from "node:fs";
     writeFileSync(${JSON.stringify(env)}, JSON.stringify({ env: process.env, argv: process.argv.slice(2) }));
     const leave = () => { ${body} };
     process.stdin.on("data", (text) => { appendFileSync(${JSON.stringify(seen)}, text); globalThis.onText?.(); });
     process.stdin.on("end", leave);
     process.on("SIGINT", () => {
       appendFileSync(${JSON.stringify(seen)}, "SIGINT\\n");
       globalThis.isInterrupted = true;
     });`,
  );
  return {
    command: `"${process.execPath}" "${program}" 'two words'`,
    seen: () => (existsSync(seen) ? readFileSync(seen, "utf8") : ""),
    reported: () => JSON.parse(readFileSync(env, "utf8")) as { env: Record<string, string>; argv: string[] },
    started: () => existsSync(env),
  };
}

/** Lists the devices on a terminal. */
const it = benchTest().extend(
  "list",
  ({ bench }) =>
    (args: readonly string[], env: Record<string, string | undefined> = {}) =>
      startOnTerminal([...bench.devices, ...args], { ...bench.env, ...env }),
);

describe.skipIf(!hasTerminal)("output to a terminal", () => {
  it("goes through AGENTAUTH_PAGER, split into words, and what is said comes after it", async ({ bench, list }) => {
    const pager = makePager('process.stdout.write("the pager has ended\\n"); process.exit(0);');
    const run = list(["--limit", "50", "--columns", "id,status"], { AGENTAUTH_PAGER: pager.command, PAGER: "false" });
    expect(await run.ended).toBe(0);
    expect(
      linesOf(pager.seen())
        .slice(1)
        .map((line) => line.split(" ")[0]),
    ).toEqual(allIds(bench.sandbox).slice(0, 50));
    expect(pager.reported().argv).toEqual(["two words"]);
    expect(run.lines()).toEqual(["the pager has ended", expect.stringMatching(/^shown 50 of 60; continue with: /)]);
  });

  it("gives the pager none of our secrets, and less its options", async ({ list }) => {
    const pager = makePager();
    const run = list([], { AGENTAUTH_PAGER: pager.command, AGENTAUTH_CLIENT_SECRET: "planted-secret-of-a-client" });
    expect(await run.ended).toBe(0);
    const { env } = pager.reported();
    expect(Object.keys(env).filter((name) => name.startsWith("AGENTAUTH_"))).toEqual([]);
    expect(env["LESS"]).toBe("FRX");
    const own = makePager();
    await list([], { AGENTAUTH_PAGER: own.command, LESS: "-S" }).ended;
    expect(own.reported().env["LESS"]).toBe("-S");
  });

  it.for(["json", "yaml", "csv", "plain", "wide", "id"])("as %s too", async (format, { bench, list }) => {
    const pager = makePager();
    const run = list(["-o", format], { PAGER: pager.command });
    expect([await run.ended, run.lines()]).toEqual([0, []]);
    for (const id of allIds(bench.sandbox)) expect(pager.seen()).toContain(id);
  });

  it("prints one device through it too", async ({ bench }) => {
    const pager = makePager();
    const { pool } = bench.sandbox.ids;
    const id = allIds(bench.sandbox)[3] ?? "";
    const args = ["devices", "get", id, "--pool", pool];
    const run = startOnTerminal(args, { ...bench.env, PAGER: pager.command, LINES: "10" });
    expect(await run.ended).toBe(0);
    expect(pager.seen()).toContain(id);
  });

  it("a short one goes through it too", async ({ list }) => {
    const pager = makePager('process.stdout.write("the pager has ended\\n"); process.exit(0);');
    const run = list(["--limit", "5"], { PAGER: pager.command });
    expect(await run.ended).toBe(0);
    expect(linesOf(pager.seen())).toHaveLength(6);
    expect(run.lines()).toEqual(["the pager has ended", expect.stringMatching(/^shown 5 of 60/)]);
  });

  it("an error before the first row starts no pager", async ({ bench, list }) => {
    const pager = makePager();
    bench.sandbox.faults.add({ kind: "status", status: 503, path: "device", times: 0 });
    const run = list(["--retries", "0"], { PAGER: pager.command });
    expect(await run.ended).toBe(5);
    expect(run.lines()[0]).toMatch(/^error: .*HTTP 503/);
    expect(pager.started()).toBe(false);
  });

  it.skipIf(!hasLess)("less exits by itself if one screen is enough", async ({ bench, list }) => {
    const run = list(["--limit", "5", "--columns", "id"]);
    expect(await run.ended).toBe(0);
    const shown = run.lines().map((line) => stripVTControlCharacters(line).trim());
    expect(shown.slice(1, 6)).toEqual(allIds(bench.sandbox).slice(0, 5));
    expect(shown.at(-1)).toMatch(/^shown 5 of 60/);
  });

  it.for<[string, string[], Record<string, string>]>([
    ["--no-pager", ["--no-pager"], {}],
    ["--no-input", ["--no-input"], {}],
    ["AGENTAUTH_NO_INPUT", [], { AGENTAUTH_NO_INPUT: "1" }],
    ["CI", [], { CI: "true" }],
    ["an agent", [], { AI_AGENT: "someone" }],
    ["TERM=dumb", [], { TERM: "dumb" }],
    ["-o ndjson", ["-o", "ndjson"], {}],
    ["an empty AGENTAUTH_PAGER", [], { AGENTAUTH_PAGER: "" }],
    ["AGENTAUTH_PAGER=cat", [], { AGENTAUTH_PAGER: "cat" }],
  ])("%s: no pager", async ([_what, args, env], { bench, list }) => {
    const pager = makePager();
    const run = list(["--columns", "id", ...args], { PAGER: pager.command, ...env });
    expect(await run.ended).toBe(0);
    expect(run.out()).toContain(allIds(bench.sandbox).at(-1));
    expect(pager.started()).toBe(false);
  });

  it("a pager that is not there is no failure", async ({ bench, list }) => {
    const run = list(["-o", "id"], { PAGER: "/nowhere/at-all --flag" });
    expect(await run.ended).toBe(0);
    expect(run.lines()).toEqual(allIds(bench.sandbox));
  });

  it("neither is one that cannot be split into words, or that fails", async ({ bench, list }) => {
    const unsplit = list(["-o", "id"], { PAGER: "less 'x" });
    expect(await unsplit.ended).toBe(0);
    expect(unsplit.out()).toContain('warning: PAGER "less \'x" is not a valid command; printing without a pager');
    expect(unsplit.out()).toContain(allIds(bench.sandbox).at(-1));
    const failing = list(["-o", "id"], { PAGER: makePager("process.exit(3);").command });
    expect(await failing.ended).toBe(0);
    expect(failing.out()).toContain("ended with exit code 3; --no-pager prints without one");
  });

  it("left early: exit 0, not a word, and the listing ends", async ({ bench, list }) => {
    const pager = makePager();
    writeFileSync(pager.command.split('"')[3] ?? "", "process.stdin.once('data', () => process.exit(0));");
    bench.sandbox.faults.add({ kind: "slow-headers", ms: 60_000, after: 3, path: "device", times: 0 });
    const run = list(["--page-size", "10", "--concurrency", "1", "-o", "id"], { PAGER: pager.command, LINES: "15" });
    expect([await run.ended, run.lines()]).toEqual([0, []]);
  });

  it("Ctrl-C ends the listing, waits for the pager, and prints the command that continues", async ({ bench, list }) => {
    const pager = makePager(
      'setTimeout(() => { process.stdout.write("the pager has ended\\n"); process.exit(0); }, 500);',
    );
    bench.sandbox.faults.add({ kind: "slow-headers", ms: 60_000, after: 3, path: "device", times: 0 });
    const run = list(["--page-size", "10", "--concurrency", "1", "-o", "id"], { PAGER: pager.command, LINES: "15" });
    await until(() => linesOf(pager.seen()).length >= 30);
    run.type("\u0003");
    expect(await run.ended).toBe(130);
    expect(pager.seen()).toContain("SIGINT");
    expect(run.lines().slice(-3)).toEqual([
      expect.stringContaining("the pager has ended"),
      "error: ended by SIGINT",
      expect.stringMatching(/^hint: continue with: .* --offset 30$/),
    ]);
  });

  it("Ctrl-C after the last line is the pager's alone", async ({ list }) => {
    const pager = makePager("setInterval(() => globalThis.isInterrupted && process.exit(0), 10);");
    const run = list(["-o", "id"], { PAGER: pager.command });
    await until(() => linesOf(pager.seen()).length >= 60);
    run.type("\u0003");
    expect(await run.ended).toBe(0);
    expect(pager.seen()).toContain("SIGINT");
  });

  it("SIGTERM ends the pager too: exit 143", async ({ list }) => {
    const pager = makePager("setInterval(() => {}, 1000);");
    const run = list(["-o", "id"], { PAGER: pager.command });
    await until(() => linesOf(pager.seen()).length >= 60);
    run.signal("SIGTERM");
    expect(await run.ended).toBe(143);
  });

  it("an error in the middle is printed after the pager", async ({ bench, list }) => {
    const pager = makePager('process.stdout.write("the pager has ended\\n"); process.exit(0);');
    bench.sandbox.faults.add({ kind: "status", status: 503, after: 3, path: "device", times: 0 });
    const args = ["--page-size", "10", "--concurrency", "1", "--retries", "0", "-o", "id"];
    const run = list(args, { PAGER: pager.command, LINES: "15" });
    expect(await run.ended).toBe(7);
    expect(linesOf(pager.seen())).toHaveLength(30);
    expect(run.lines()).toEqual([
      "the pager has ended",
      expect.stringMatching(/^error: .*HTTP 503/),
      expect.stringMatching(/^hint: continue with: .* --offset 30$/),
    ]);
  });

  it.skipIf(!hasLess)(
    "less moves a wide table sideways, in colour, and leaves the terminal as it was",
    async ({ bench }) => {
      const args = [...bench.devices, "-o", "wide", "--limit", "40", "-q"];
      const env = { ...bench.env, COLUMNS: "80", LINES: "12", NO_COLOR: undefined, FORCE_COLOR: "1" };
      const run = startOnTerminal(args, env, (command) =>
        [
          "stty cols 80 rows 12",
          "before=$(stty -g)",
          command,
          '[ "$before" = "$(stty -g)" ] && echo "the terminal is as before"',
        ].join("; "),
      );
      await run.shows(/\n:/);
      const first = run.out();
      expect(first).toContain("\u001b[32mactive\u001b[39m");
      expect(first).not.toContain("CITY");
      for (const line of linesOf(first)) expect(stringWidth(line)).toBeLessThanOrEqual(80);
      // The arrow key to the right, as a terminal sends it to a program that set its keypad mode; half a screen each time.
      run.type("\u001bOC");
      await run.shows("CITY");
      expect(run.out().slice(first.length)).not.toContain("TITLE");
      // less draws the screen again from its first line.
      for (const line of run
        .out()
        .replaceAll("\u001b[H", "\n")
        .split(/[\r\n]/))
        expect(stringWidth(line)).toBeLessThanOrEqual(80);
      run.type("q");
      expect(await run.ended).toBe(0);
      // Nothing is left switched on: keypad mode, the alternate screen, a hidden cursor.
      expect(run.out()).toContain("\u001b[?1l\u001b>");
      for (const left of ["\u001b[?1049h", "\u001b[?25l"]) expect(run.out()).not.toContain(left);
      expect(run.out()).toContain("the terminal is as before");
    },
  );

  it.skipIf(!hasLess)("less is the pager where none is named", async ({ bench, list }) => {
    const run = list(["-q"]);
    await run.shows(/\n:/);
    run.type("q");
    expect(await run.ended).toBe(0);
    expect(run.out()).toMatch(/TITLE +ID/);
    expect(run.out()).not.toContain(allIds(bench.sandbox).at(-1));
  });
});
