import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { compile, startChild } from "../helpers/child.js";
import { temporaryFolder } from "../helpers/folder.js";
import { ON_WINDOWS } from "../helpers/systems.js";

const WRITERS = 12;
const LINES = 150;
/** A line spans pages of memory, so that a kill may come in the middle of it. */
const TOOL = "x".repeat(3000);
/** So few files that none is discarded. */
const MAX_BYTES = (WRITERS * LINES * (TOOL.length + 200)) / 4;

/** Counts as the process of a line that is no JSON. */
const PART = -1;

function parsed(line: string): { pid: number; durationMs: number } {
  try {
    return JSON.parse(line);
  } catch {
    return { pid: PART, durationMs: 0 };
  }
}

it("is whole, private and complete after processes that wrote into it were killed", async () => {
  const folder = temporaryFolder();
  const path = join(folder, "audit.log");
  const writer = await compile(new URL("audit-writer.ts", import.meta.url));
  const heard = new Map<number, number>();
  const turns = Array.from({ length: WRITERS }, (_, nth) => nth);
  const runInTurn = async () => {
    for (let nth = turns.pop(); nth !== undefined; nth = turns.pop()) {
      const child = startChild(writer, { path, lines: LINES, maxBytes: MAX_BYTES, tool: TOOL });
      if (nth % 3 === 0) await child.ended;
      else {
        for (let left = Math.random() * LINES; left > 0; left--) await child.hears("wrote");
        await child.kill("SIGKILL");
      }
      heard.set(child.pid, child.said.length);
    }
  };
  await Promise.all([runInTurn(), runInTurn(), runInTurn(), runInTurn()]);
  const found = new Map<number, number[]>();
  const files = readdirSync(folder);
  for (const name of files) {
    for (const line of readFileSync(join(folder, name), "utf8").trimEnd().split("\n")) {
      const { pid, durationMs } = parsed(line);
      found.set(pid, [...(found.get(pid) ?? []), durationMs]);
    }
    if (!ON_WINDOWS) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  }
  expect(files.length).toBeGreaterThan(2);
  // A killed process may have been in the middle of its last line.
  expect(found.get(PART)?.length ?? 0).toBeLessThanOrEqual((WRITERS * 2) / 3);
  for (const [pid, count] of heard) {
    const lines = (found.get(pid) ?? []).toSorted((one, other) => one - other);
    expect(lines).toEqual(lines.map((_, nth) => nth));
    expect(lines.length).toBeGreaterThanOrEqual(count);
  }
});
