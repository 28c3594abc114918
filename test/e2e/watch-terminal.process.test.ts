import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { benchTest } from "../helpers/bench-test.js";
import { allIds, temporaryFolder, until } from "../helpers/cli.js";
import { deviceIds, hasTerminal, screenOf, startOnTerminal, type TerminalRun } from "./terminal-support.js";

const ESC = "\u001b";
const HIDE = `${ESC}[?25l`;
const SHOW = `${ESC}[?25h`;

/** Watches the devices on a terminal. */
const it = benchTest({ devices: 6 }).extend(
  "watch",
  ({ bench }) =>
    (args: readonly string[] = [], env: Record<string, string> = {}) =>
      startOnTerminal([...bench.devices, "--watch=1s", ...args], { ...bench.env, ...env }),
);

/** How often the table was drawn. */
function drawn(run: TerminalRun): number {
  return run.out().split(SHOW).length - 1;
}

describe.skipIf(!hasTerminal)("--watch on a terminal", () => {
  it("draws the table again in its own place, and Ctrl-C ends it with 130", async ({ bench, watch }) => {
    const run = watch();
    await until(() => drawn(run) >= 3);
    run.type("\u0003");
    expect(await run.ended).toBe(130);
    const lines = screenOf(run.out());
    expect(lines[0]).toMatch(/^TITLE +ID +STATUS/);
    expect(deviceIds(lines)).toEqual(allIds(bench.sandbox));
    expect(lines[7]).toMatch(/^6 devices at \d\d:\d\d:\d\d, every 1s, Ctrl-C to stop$/);
    expect(lines.slice(8).join("").replace("^C", "")).toBe("");
  });

  it("gives the cursor back with each drawing, so that nothing can take it away for good", async ({ watch }) => {
    const run = watch();
    await until(() => drawn(run) >= 2);
    run.signal("SIGKILL");
    await run.ended;
    const marks = run.out().match(/\[\?(?:25|7|2026)[hl]/g) ?? [];
    const pairs = marks.join(" ").split("[?2026h ").slice(1);
    for (const pair of pairs) expect(pair.trim()).toBe("[?25l [?7l [?7h [?25h [?2026l");
    expect(run.out().lastIndexOf(SHOW)).toBeGreaterThan(run.out().lastIndexOf(HIDE));
  });

  it("shows what changes, also when the list grows shorter", async ({ bench, watch }) => {
    const { data, ids: scope } = bench.sandbox;
    const run = watch();
    await until(() => drawn(run) >= 1);
    const gone = data.device(scope.pool, 2);
    data.deleteDevice(scope.pool, gone?.id ?? "");
    await run.shows("5 devices at");
    run.signal("SIGTERM");
    expect(await run.ended).toBe(143);
    const lines = screenOf(run.out());
    expect(deviceIds(lines)).toEqual(allIds(bench.sandbox));
    expect(lines.filter((line) => line !== "")).toHaveLength(7);
    data.insertDevice(scope.pool, gone);
  });

  it("never draws more than the screen holds", async ({ bench, watch }) => {
    const run = watch([], { LINES: "5" });
    await until(() => drawn(run) >= 2);
    run.signal("SIGINT");
    await run.ended;
    const lines = screenOf(run.out()).filter((line) => line !== "");
    expect(lines).toHaveLength(4);
    expect(deviceIds(lines)).toEqual(allIds(bench.sandbox).slice(0, 2));
    expect(lines[3]).toMatch(/^6 devices \(more than fit on the screen\) at /);
  });

  it("a message is below the last table, once, and the next table is below it", async ({ bench, watch }) => {
    const run = watch(["--retries", "0"]);
    await until(() => drawn(run) >= 1);
    bench.sandbox.faults.add({ kind: "status", status: 503, times: 2 });
    await run.shows("polling works again");
    run.signal("SIGINT");
    expect(await run.ended).toBe(130);
    const lines = screenOf(run.out());
    expect(lines[8]).toMatch(/^warning: the list cannot be read: .*HTTP 503.*; next attempt in \ds$/);
    expect(lines.filter((line) => line.includes("cannot be read"))).toHaveLength(1);
    expect(lines[9]).toBe("polling works again");
    for (const table of [lines.slice(0, 8), lines.slice(10)]) expect(deviceIds(table)).toEqual(allIds(bench.sandbox));
  });

  it("an error that ends it is below the table", async ({ bench, watch }) => {
    const run = watch(["--retries", "0"]);
    await until(() => drawn(run) >= 1);
    bench.sandbox.faults.add({ kind: "status", status: 401, times: 0 });
    expect(await run.ended).toBe(4);
    const lines = screenOf(run.out());
    expect(lines[7]).toMatch(/^6 devices at /);
    expect(lines[8]).toMatch(/^error: .*HTTP 401/);
  });

  it("what is on the screen already stays", async ({ watch }) => {
    const run = watch(["--until", "length == 6", "-v"]);
    expect(await run.ended).toBe(0);
    expect(screenOf(run.out()).join("\n")).toMatch(/> GET .*\n.*< 200[\s\S]*\nTITLE +ID/);
  });

  it("hostile text does not reach the terminal", async ({ bench, watch }) => {
    bench.sandbox.faults.add({ kind: "hostile-text", times: 0 });
    const run = watch();
    await until(() => drawn(run) >= 2);
    run.signal("SIGINT");
    await run.ended;
    expect(deviceIds(screenOf(run.out()))).toEqual(allIds(bench.sandbox));
  });

  it("items are records where the table has no room", async ({ watch }) => {
    const run = watch(["--until", "true"], { COLUMNS: "30", LINES: "200" });
    expect(await run.ended).toBe(0);
    const lines = screenOf(run.out());
    expect(lines.filter((line) => line.startsWith("id: "))).toHaveLength(6);
  });

  it("a terminal that knows no sequences gets lines below lines", async ({ watch }) => {
    const run = watch([], { TERM: "dumb" });
    await run.shows(/6 devices at [\s\S]*6 devices at /);
    run.signal("SIGINT");
    await run.ended;
    expect(run.out()).not.toContain(ESC);
  });

  it("-o ndjson prints events there too, and never a pager", async ({ watch }) => {
    const seen = join(temporaryFolder(), "seen");
    const run = watch(["-o", "ndjson", "--until", "true"], { AGENTAUTH_PAGER: `tee ${seen}`, LINES: "3" });
    expect(await run.ended).toBe(0);
    expect(run.out().match(/"type":"added"/g)).toHaveLength(6);
    expect(() => readFileSync(seen)).toThrow("ENOENT");
  });
});
