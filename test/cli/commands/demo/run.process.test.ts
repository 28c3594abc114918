import { readdirSync } from "node:fs";
import { expect, it } from "vitest";
import { runProcess, temporaryFolder } from "../../../helpers/cli.js";

it("has eight processes share one login, and removes what they shared", async () => {
  const TMPDIR = temporaryFolder();
  const { code, stdout, stderr } = await runProcess(["demo"], { env: { TMPDIR } });
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toContain("\n# One login, 8 processes, and the token expires\n");
  expect(stdout).toContain("\n8 of 8 processes, which share the login, were answered after 1 refresh.\n");
  expect(stdout).toMatch(/^ +2 {2}POST \/pool_\w+\/token {2}200$/m);
  expect(readdirSync(TMPDIR)).toEqual([]);
});

it("removes it where the demo is interrupted", async () => {
  const TMPDIR = temporaryFolder();
  const signalAfter = { characters: 450, signal: "SIGINT" } as const;
  const { code } = await runProcess(["demo"], { env: { TMPDIR }, signalAfter });
  expect(code).toBe(130);
  expect(readdirSync(TMPDIR)).toEqual([]);
});
