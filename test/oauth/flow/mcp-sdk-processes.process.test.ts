import { expect, it } from "vitest";
import { AgentClient } from "../../../src/oauth/agent.js";
import { startSandbox } from "../../../src/sandbox/index.js";
import { fileStore } from "../../../src/store/file/file.js";
import { compile, startChild } from "../../helpers/child.js";
import { TestLogin } from "../../helpers/login.js";
import { folder } from "../../store/stores.js";
import { LOGIN_FLOWS } from "../mcp-sdk/login-flows.js";
import type { SdkJob } from "../mcp-sdk/sdk-driver.js";

it("five processes with both SDKs, whose token is rejected at once, refresh it once", async () => {
  await using sandbox = await startSandbox({ devices: 0, autoApprove: "alice" });
  const home = folder();
  await new AgentClient({ store: fileStore(home), login: new TestLogin() }).login(sandbox.mcpUrl);
  // The server rejects the token, which is valid by the clock of the processes.
  sandbox.clock.advance(2 * 3_600_000);
  const path = await compile(new URL("../mcp-sdk/sdk-driver.ts", import.meta.url));
  const jobs = LOGIN_FLOWS.map(([way]): SdkJob => ({ folder: home, mcpUrl: sandbox.mcpUrl, way }));
  const children = jobs.map((job) => startChild(path, job));
  await Promise.all(children.map((child) => child.hears("started")));
  for (const child of children) child.send({ go: true });
  const ends = await Promise.all(children.map((child) => child.hears("ended")));
  expect(ends.map(({ error }) => error)).toEqual(Array(5).fill(undefined));
  expect(ends.every(({ result }) => JSON.stringify(result).includes("alice"))).toBe(true);
  expect(sandbox.requests.filter(({ operation }) => operation === "refresh_token")).toHaveLength(1);
});
