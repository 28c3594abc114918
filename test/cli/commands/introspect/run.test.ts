import { expect } from "vitest";
import { AgentClient } from "../../../../src/oauth/agent.js";
import { fileStore } from "../../../../src/store/file/file.js";
import { runCli, temporaryFolder } from "../../../helpers/cli.js";
import { startScene } from "../../../helpers/issuer.js";
import { TestLogin } from "../../../helpers/login.js";
import { harnessTest } from "../harness.js";

const it = harnessTest();

it("prints what the issuer says of the stored token", async ({ harness, user }) => {
  await user.logIn();
  const { code, stdout } = await user.run(["introspect", harness.url, "--json"]);
  expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ active: true, aud: harness.url })]);
  expect((await user.run(["introspect", harness.url, "--jq", ".active"])).stdout).toBe("true\n");
});

it("exits with 4 where no login is stored", async ({ harness, user }) => {
  const { code, stdout, stderr } = await user.run(["introspect", harness.url]);
  expect([code, stdout, stderr]).toEqual([4, "", expect.stringContaining(`hint: agentauth login ${harness.url}\n`)]);
});

it("exits with 6 where the issuer has no endpoint for it", async () => {
  const { mcp, issuer } = await startScene();
  delete issuer.metadata["introspection_endpoint"];
  const home = temporaryFolder();
  await new AgentClient({ store: fileStore(home), login: new TestLogin() }).login(mcp.url);
  const { code, stdout, stderr } = await runCli(["introspect", mcp.url], { env: { AGENTAUTH_HOME: home } });
  expect([code, stdout, stderr]).toEqual([6, "", expect.stringContaining("has no introspection_endpoint")]);
});

it("exits with 5 where the issuer cannot be reached", async ({ harness, faults, user }) => {
  await user.logIn();
  faults.add({ kind: "status", status: 503, path: "introspect", times: 0 });
  const { code, stdout } = await user.run(["introspect", harness.url, "--retries", "0"]);
  expect([code, stdout]).toEqual([5, ""]);
});

it("refuses an address that is none", async ({ user }) => {
  expect(await user.run(["introspect", "nowhere"])).toMatchObject({ code: 2, stdout: "" });
});
