import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { shellWord } from "../../src/redact.js";
import { allIds, BIN, cleanEnv, collect, linesOf, temporaryFolder } from "../helpers/cli.js";
import { testbedTest } from "../helpers/testbed-test.js";
import { deviceIds, hasTerminal } from "./terminal-support.js";

const ESC = "\u001b";

/** Runs the program with a terminal as its stdin, stdout and stderr. */
const it = testbedTest().extend(
  "onTerminal",
  ({ testbed }) =>
    async (args: readonly string[], env: Record<string, string> = {}, redirect = "") => {
      const command = `${[process.execPath, BIN, ...args].map(shellWord).join(" ")} ${redirect}`;
      const all = cleanEnv({ TERM: "xterm-256color", COLUMNS: "120", ...testbed.env, ...env });
      const child = spawn("script", ["-qec", command, "/dev/null"], { env: all, stdio: "pipe" });
      const out = collect(child.stdout);
      const [code] = (await once(child, "close")) as [number | null];
      return { code, raw: out(), lines: rendered(out()) };
    },
);

/** The lines as a terminal shows them in the end, their colours left out. */
function rendered(raw: string): string[] {
  return linesOf(raw.replaceAll("\r\n", "\n")).flatMap((line) => {
    const shown =
      line
        .split(`\r${ESC}[2K`)
        .at(-1)
        ?.replace(new RegExp(`${ESC}\\[\\d+m`, "g"), "") ?? "";
    return shown === "" ? [] : [shown];
  });
}

describe.skipIf(!hasTerminal)("on a terminal", () => {
  it("a list is a table with a bold heading and relative times", async ({ testbed, onTerminal }) => {
    const { code, raw, lines } = await onTerminal([...testbed.devices, "--limit", "3"]);
    expect(code).toBe(0);
    expect(raw).toContain(`${ESC}[1mTITLE `);
    expect(lines[0]).toMatch(/^TITLE +ID +STATUS +LAST SEEN +PLACE/);
    expect(deviceIds(lines)).toEqual(allIds(testbed.sandbox).slice(0, 3));
    for (const line of lines.slice(1, 4)) expect(line).toMatch(/ \d+(s|min|h|d|mo|y) ago /);
    expect(lines[4]).toMatch(/^shown 3 of 60; continue with: /);
  });

  it.for<[string, string[], Record<string, string>]>([
    ["--no-color", ["--no-color"], {}],
    ["NO_COLOR", [], { NO_COLOR: "1" }],
    ["NO_COLOR against FORCE_COLOR", [], { NO_COLOR: "1", FORCE_COLOR: "1" }],
    ["TERM=dumb", [], { TERM: "dumb" }],
  ])("%s: no colour", async ([_what, args, env], { testbed, onTerminal }) => {
    const colour = new RegExp(`${ESC}\\[\\d*m`);
    expect((await onTerminal([...testbed.devices, "--limit", "3"])).raw).toMatch(colour);
    expect((await onTerminal([...testbed.devices, "--limit", "3", ...args], env)).raw).not.toMatch(colour);
    expect((await onTerminal(["nope"])).raw).toContain(`${ESC}[31merror:`);
    expect((await onTerminal(["nope", ...args], env)).raw).toMatch(/^error: unknown command/);
  });

  it("no escape sequence at all with TERM=dumb", async ({ testbed, onTerminal }) => {
    expect((await onTerminal(testbed.devices, { TERM: "dumb" })).raw).not.toContain(ESC);
  });

  it("progress comes and goes without harm to the rows", async ({ testbed, onTerminal }) => {
    testbed.sandbox.faults.add({ kind: "slow-headers", ms: 30, times: 0 });
    const { raw, lines } = await onTerminal([...testbed.devices, "--page-size", "10", "-o", "id"]);
    expect(raw).toContain("devices: 19 of 60");
    expect(lines).toEqual(allIds(testbed.sandbox));
  });

  it("progress is on stderr alone", async ({ testbed, onTerminal }) => {
    const file = join(temporaryFolder(), "out");
    const { raw } = await onTerminal([...testbed.devices, "--page-size", "10", "-o", "id"], {}, `> ${shellWord(file)}`);
    expect(raw).toContain("devices: 19 of 60");
    expect(readFileSync(file, "utf8")).toBe(`${allIds(testbed.sandbox).join("\n")}\n`);
    const quiet = await onTerminal(
      [...testbed.devices, "-q", "--page-size", "10", "-o", "id"],
      {},
      `> ${shellWord(file)}`,
    );
    expect(quiet.raw).toBe("");
  });

  it("colour is decided for each stream on its own", async ({ testbed, onTerminal }) => {
    const file = join(temporaryFolder(), "out");
    await onTerminal([...testbed.devices, "--limit", "1", "-o", "table"], {}, `> ${shellWord(file)}`);
    expect(readFileSync(file, "utf8")).not.toContain(ESC);
    const forced = await testbed.run([...testbed.devices, "--limit", "1", "-o", "table"], {
      env: { FORCE_COLOR: "1" },
    });
    expect(forced.stdout).toContain(`${ESC}[1mID `);
  });
});
