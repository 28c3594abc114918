import { expect, it } from "vitest";
import { runProcess } from "../../../helpers/cli.js";
import { temporaryFolder } from "../../../helpers/folder.js";
import { read } from "./host-support.js";

it.each([
  ["cursor", ".cursor/mcp.json"],
  ["codex", ".codex/config.toml"],
  ["goose", ".config/goose/config.yaml"],
])("the built program writes and reads the settings of %s", async (host, file) => {
  const home = temporaryFolder();
  const options = { env: { HOME: home, XDG_CONFIG_HOME: undefined }, cwd: home };
  expect(await runProcess(["mcp", "add", host, "https://mcp.example/mcp"], options)).toMatchObject({
    code: 0,
    stdout: "",
  });
  expect(read(`${home}/${file}`)).toContain("https://mcp.example/mcp");
  const listed = await runProcess(["mcp", "list", "-o", "id"], options);
  expect(listed).toMatchObject({ code: 0, stdout: "mcp-example\n" });
  const removed = await runProcess(["mcp", "remove", host, "mcp-example"], options);
  expect(removed).toMatchObject({ code: 0, stderr: expect.stringContaining("removed") });
});
