import { expect, it } from "vitest";
import { runDiscover } from "../../../../src/cli/commands/discover/run.js";
import { startScene } from "../../../helpers/issuer.js";
import { startRun } from "../../run-support.js";

it("discover says where the resource is a parent of the server", async () => {
  const { mcp } = await startScene();
  const facts = async () => {
    const { context, io } = startRun();
    await runDiscover({ url: mcp.url } as Parameters<typeof runDiscover>[0], context);
    return io.out().split("\n\n")[1];
  };
  expect(await facts()).toContain(`\nresource       ${mcp.url}\nissuer `);
  mcp.metadata = { ...mcp.metadata, resource: mcp.origin };
  const note = "a parent of the server URL: every server below it may accept the token";
  expect(await facts()).toContain(`\nresource       ${mcp.origin}\n               ${note}\nissuer `);
});
