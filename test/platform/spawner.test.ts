import { spawn } from "node:child_process";
import crossSpawn from "cross-spawn";
import { describe, expect, it } from "vitest";
import { spawner } from "../../src/platform/spawner.js";
import { onSystem } from "./support.js";

describe("what starts programs", () => {
  it("finds scripts of cmd.exe and quotes for it on Windows, and is Node's own elsewhere", async () => {
    onSystem({ name: "win32" });
    expect(await spawner()).toBe(crossSpawn);
    for (const name of ["linux", "darwin"] as const) {
      onSystem({ name });
      expect(await spawner()).toBe(spawn);
    }
  });
});
