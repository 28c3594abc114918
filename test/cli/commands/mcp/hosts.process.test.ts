import { expect, it } from "vitest";
import { runProcess } from "../../../helpers/cli.js";
import { temporaryFolder } from "../../../helpers/folder.js";
import { read } from "./host-support.js";

it("the built program writes and reads the settings of a host, whose entry starts it by its path", async () => {
  const home = temporaryFolder();
  const options = { env: { HOME: home, XDG_CONFIG_HOME: undefined }, cwd: home };
  const added = await runProcess(["mcp", "add", "cursor", "https://mcp.example/mcp"], options);
  expect(added).toMatchObject({ code: 0, stdout: "" });
  const { command, args } = JSON.parse(read(`${home}/.cursor/mcp.json`)).mcpServers["mcp-example"];
  expect([command, args.slice(1)]).toEqual([
    process.execPath,
    ["mcp", "proxy", "https://mcp.example/mcp", "--profile", "default"],
  ]);
  const listed = await runProcess(["mcp", "list", "-o", "id"], options);
  expect(listed).toMatchObject({ code: 0, stdout: "mcp-example\n" });
  const removed = await runProcess(["mcp", "remove", "cursor", "--name", "mcp-example"], options);
  expect(removed).toMatchObject({ code: 0, stderr: expect.stringContaining("removed") });
});
