import os from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { machineOf, openSettings } from "../../../../../src/cli/commands/mcp/hosts/settings.js";
import { fixedText } from "../../../../helpers/fixed-text.js";
import { startRun } from "../../../run-support.js";
import { NAME, read, startUser, URL_OF_SERVER, write } from "../host-support.js";

describe("a change that is only shown", () => {
  it.each([
    ["cursor", ""],
    ["cursor", '{"a": 1}'],
    ["cursor", '{\r\n  "mcpServers": {\r\n    "a": {}\r\n  }\r\n}\r\n'],
    ["cursor", '{\n  "mcpServers": {\n    "a": {}, // x\n    "b": {}\n  },\n  "z": 1\n}\n'],
    ["codex", ""],
    ["codex", "a = 1\n"],
    ["codex", "[mcp_servers.a]\nb = 1\n\n[z]\na = 1\n"],
    ["goose", "extensions: {}\n"],
    ["goose", "extensions:\n  a:\n    b: 1\nz: 1\n"],
  ])("of %s: %j", async (host, content) => {
    const me = startUser();
    const path = content === "" ? me.file(host) : write(me.file(host), content);
    const shown: string[] = [];
    const run = async (...args: string[]) => {
      const { code, stdout, stderr } = await me.run(...args);
      expect(code).toBe(0);
      shown.push(fixedText(`${stdout}${stderr}`).replaceAll("\r", "<cr>"));
    };
    await run("add", host, URL_OF_SERVER, "--dry-run");
    if (content !== "") expect(read(path)).toBe(content);
    await run("add", host, URL_OF_SERVER);
    await run("add", host, URL_OF_SERVER, "--account-hint", "bob", "--dry-run");
    const after = read(path);
    await run("remove", host, NAME, "--dry-run");
    expect(read(path)).toBe(after);
    expect(shown).toMatchSnapshot();
  });
});

describe("the machine of a host", () => {
  const at = (env: Record<string, string>, platform: string) =>
    machineOf(startRun({ env }, {}, { machine: { platform, folder: "/project" } }).context).home;

  it("has the folder of its user by the variables of its system", () => {
    const env = { HOME: "/home/ann", USERPROFILE: "C:\\Users\\ann" };
    expect([at(env, "linux"), at(env, "darwin"), at(env, "win32")]).toEqual([
      "/home/ann",
      "/home/ann",
      "C:\\Users\\ann",
    ]);
    expect(at({ HOME: "/home/ann" }, "win32")).toBe("/home/ann");
  });

  it("is that of the process unless another is named", () => {
    const { platform, folder } = machineOf(startRun().context);
    expect([platform, folder]).toEqual([os.platform(), process.cwd()]);
  });

  it.each([
    ["claude-desktop", "linux", "user"],
    ["claude-desktop", "linux", "project"],
    ["claude-desktop", "darwin", "project"],
    ["goose", "linux", "project"],
    ["goose", "aix", "user"],
  ] as const)("has no file of %s on %s for the scope %s", async (host, platform, scope) => {
    const { context } = startRun({}, {}, { machine: { platform, folder: "/project" } });
    const failure = await openSettings(host, scope, context).catch((error: Error & { hint?: string }) => error);
    expect([(failure as Error).message, (failure as { hint?: string }).hint]).toMatchSnapshot();
  });

  it("has a file of a project in its folder", async () => {
    const me = startUser();
    write(join(me.folder, ".cursor", "mcp.json"), '{"mcpServers": {"a": {}}}');
    const { context } = startRun({}, {}, { machine: { platform: "linux", folder: me.folder } });
    const { file, servers } = await openSettings("cursor", "project", context);
    expect([file.path, servers, file.isShared]).toEqual([join(me.folder, ".cursor", "mcp.json"), { a: {} }, true]);
  });
});
