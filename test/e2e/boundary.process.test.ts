import { spawnSync } from "node:child_process";
import { cpSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { BIN, temporaryFolder } from "../helpers/cli.js";

it("says in words that a checkout is not built", () => {
  const folder = temporaryFolder();
  cpSync(dirname(BIN), join(folder, "bin"), { recursive: true });
  const run = spawnSync(process.execPath, [join(folder, "bin/agentauth.cjs"), "--version"], { encoding: "utf8" });
  expect([run.status, run.stdout]).toEqual([1, ""]);
  expect(run.stderr).toBe(`error: agentauth is not built: dist/ is missing or incomplete in ${folder}\nhint: npm ci\n`);
});
