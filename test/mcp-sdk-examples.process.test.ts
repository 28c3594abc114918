import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { startSandbox } from "../src/sandbox/sandbox.js";
import { FETCH_BROWSER } from "./flow/support.js";
import { compile } from "./helpers/child.js";
import { temporaryFolder } from "./helpers/folder.js";

it.each(["mcp-sdk-1.ts", "mcp-sdk-2.ts"])("the example %s logs in once, steps up, and names an error", async (name) => {
  await using sandbox = await startSandbox({ devices: 0, autoApprove: "alice" });
  const path = await compile(new URL(`../examples/${name}`, import.meta.url));
  const env = { PATH: process.env["PATH"], HOME: temporaryFolder(), BROWSER: FETCH_BROWSER, DISPLAY: ":9" };
  const run = (...args: string[]) => promisify(execFile)(process.execPath, [path, ...args], { env });
  expect((await run(sandbox.mcpUrl, "whoami")).stdout).toContain("alice");
  expect((await run(sandbox.mcpUrl, "admin_report")).stdout).toContain("12 pools");
  const logins = sandbox.requests.filter(({ operation }) => operation === "authorization_code");
  expect(logins).toHaveLength(2);
  const { origin } = sandbox;
  await sandbox.close();
  await expect(run(`${origin}/other`, "whoami")).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^connection_refused: /),
  });
});
