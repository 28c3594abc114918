import { readdirSync } from "node:fs";
import { dirname } from "node:path";
import { describe, expect, it } from "vitest";
import { MCP_HOSTS } from "../../../../../src/cli/clients/mcp-hosts/hosts.js";
import { NAME, read, startUser, URL_OF_SERVER, write } from "../host-support.js";

const ARGS = `args = ["mcp", "proxy", "${URL_OF_SERVER}"]`;
const NEW_ARGS = `args = ["mcp", "proxy", "${URL_OF_SERVER}", "--account-hint", "bob"]`;
const CODEX = [
  'model = "m"',
  "",
  "# ours",
  `[mcp_servers.${NAME}] # added`,
  'command = "agentauth"',
  `${ARGS} # the login`,
  "# only these",
  'enabled_tools = [ # "a"',
  '  "b#",',
  "]",
  "startup_timeout_sec = 20",
  "enabled = false",
  "",
  "# the tools",
  `[mcp_servers.${NAME}.tools.b]`,
  'approval_mode = "approve"',
  "",
  "# my notes on the next table",
  "",
  "[other]",
  "x = 1",
  "",
  "# the end",
  "",
].join("\n");
const GOOSE = [
  "extensions:",
  "  # ours",
  `  ${NAME}:`,
  "    type: stdio",
  `    name: ${NAME} # the name`,
  "    # off for now",
  "    enabled: false",
  "    cmd: agentauth",
  `    args: [mcp, proxy, "${URL_OF_SERVER}"] # the login`,
  "    envs: {}",
  "    available_tools:",
  "      - a # first",
  "    timeout: 600",
  "",
  "  # my notes on the next one",
  "  other:",
  "    cmd: x",
  "# the end",
  "",
].join("\n");

/** A user with settings of a host, and the command that updates the entry in them. */
function startWith(host: string, content: string) {
  const me = startUser();
  const path = write(me.file(host), content);
  return { me, path, update: (...flags: string[]) => me.run("add", host, URL_OF_SERVER, ...flags) };
}

describe("an update of an entry", () => {
  it("changes one line of codex, and leaves the keys, tables, switches and comments of the user", async () => {
    const { path, update } = startWith("codex", CODEX);
    expect((await update()).stderr).toContain("nothing was changed");
    expect((await update("--account-hint", "bob")).stderr).toContain(`updated "${NAME}"`);
    expect(read(path)).toBe(CODEX.replace(ARGS, NEW_ARGS));
  });

  it("changes one value of goose, and leaves the keys, switches and comments of the user", async () => {
    const { path, update } = startWith("goose", GOOSE);
    expect((await update()).stderr).toContain("nothing was changed");
    expect((await update("--account-hint", "bob")).stderr).toContain(`updated "${NAME}"`);
    const args = ["mcp", "proxy", URL_OF_SERVER, "--account-hint", "bob"].map((word) => `\n      - ${word}`).join("");
    expect(read(path)).toBe(GOOSE.replace(/ \[mcp, .*\]/, args));
  });

  it.each(["enabled", "disabled"])("leaves the switch %s of JSON settings", async (key) => {
    for (const value of [true, false]) {
      const entry = { type: "local", command: ["agentauth", "mcp", "proxy", URL_OF_SERVER], [key]: value };
      const { path, update } = startWith("opencode", JSON.stringify({ mcp: { [NAME]: entry } }));
      expect((await update()).stderr).toContain("nothing was changed");
      expect((await update("--account-hint", "bob")).code).toBe(0);
      const { command, ...others } = JSON.parse(read(path)).mcp[NAME];
      expect(others).toEqual({ type: "local", [key]: value });
      expect(command).toContain("bob");
    }
  });

  it("leaves the tools that the user allows copilot-cli", async () => {
    const entry = { type: "local", command: "agentauth", args: ["mcp", "proxy", URL_OF_SERVER], tools: ["a"] };
    const { path, update } = startWith("copilot-cli", JSON.stringify({ mcpServers: { [NAME]: entry } }));
    expect((await update("--account-hint", "bob")).code).toBe(0);
    expect(JSON.parse(read(path)).mcpServers[NAME].tools).toEqual(["a"]);
  });

  it.each([
    ["codex", CODEX.replace("\n# the tools", `\n[mcp_servers.${NAME}.env] # mine\nMINE = "1"\n\n# the tools`)],
    ["goose", GOOSE.replace("envs: {}", "envs:\n      MINE: '1'")],
    [
      "cursor",
      JSON.stringify({
        mcpServers: { [NAME]: { command: "agentauth", args: ["mcp", "proxy", URL_OF_SERVER], env: { MINE: "1" } } },
      }),
    ],
  ])("of %s leaves the user's own variables", async (host, content) => {
    const { path, update } = startWith(host, content);
    expect((await update()).stderr).toContain("nothing was changed");
    const { code } = await update("--account-hint", "bob");
    expect(code).toBe(0);
    expect(read(path)).toContain("MINE");
  });

  const STYLED = Object.keys(MCP_HOSTS).filter((host) => MCP_HOSTS[host]?.helper !== undefined);

  it("has hosts with several styles to switch between", () => {
    expect(STYLED).toEqual(["claude-code"]);
  });

  it.each(STYLED)("of %s in another style leaves no field of the first, and what the user added", async (host) => {
    const env = { AGENTAUTH_HOME: "/logins", AGENTAUTH_STORE: "file" };
    const { me, path } = startWith(host, "{}");
    const add = (style: string) => me.runWith(env, "add", host, URL_OF_SERVER, "--style", style);
    const entryIn = (text: string) => JSON.parse(text.replace(/ \/\/.*/g, "")).mcpServers[NAME] as object;
    const [made, keys] = [new Map<string, object>(), new Map<string, string[]>()];
    for (const style of ["proxy", "headers-helper"]) {
      expect((await me.runWith(env, "remove", host, NAME)).code).toBe(0);
      expect((await add(style)).code).toBe(0);
      made.set(style, entryIn(read(path)));
      keys.set(style, Object.keys(made.get(style) ?? {}));
    }
    for (const style of ["proxy", "headers-helper", "proxy"]) {
      expect((await add(style)).stderr).toContain(`updated "${NAME}"`);
      expect(entryIn(read(path))).toEqual(made.get(style));
      expect((await add(style)).stderr).toContain("nothing was changed");
    }
    const own = { ...made.get("proxy"), headers: { "x-mine": "1" }, env: { ...env, MINE: "1" }, timeout: 5 };
    write(
      path,
      `${JSON.stringify({ mcpServers: { [NAME]: own } }, null, 2).replace('"timeout": 5', '"timeout": 5 // mine')}\n`,
    );
    expect((await add("headers-helper")).code).toBe(0);
    const added = { headers: own.headers, env: { MINE: "1" }, timeout: 5 };
    expect(entryIn(read(path))).toEqual({ ...made.get("headers-helper"), ...added });
    expect(read(path)).toContain('"timeout": 5, // mine');
    expect((await add("proxy")).code).toBe(0);
    expect(entryIn(read(path))).toEqual({ ...made.get("proxy"), ...added, env: { ...env, MINE: "1" } });
  });

  it("cleans an entry that has the fields of two styles", async () => {
    const both = { type: "http", url: URL_OF_SERVER, headersHelper: `agentauth token ${URL_OF_SERVER}`, command: "x" };
    const { path, update } = startWith("claude-code", JSON.stringify({ mcpServers: { [NAME]: both } }));
    expect((await update("--style", "headers-helper")).code).toBe(0);
    expect(JSON.parse(read(path)).mcpServers[NAME]).not.toHaveProperty("command");
  });

  it.each([
    ["an inline table", `[mcp_servers]\n${NAME} = { command = "agentauth", ${ARGS}, enabled_tools = ["a"] } # mine\n`],
    ["keys with dots", `[mcp_servers]\n${NAME}.command = "agentauth"\n${NAME}.${ARGS}\n`],
  ])("that codex has as %s is refused, with the file and the name", async (_what, content) => {
    const { path, me, update } = startWith("codex", content);
    for (const run of [() => update("--account-hint", "bob"), () => me.run("remove", "codex", NAME)]) {
      const { code, stderr } = await run();
      expect(code).toBe(2);
      expect(stderr).toMatch(
        new RegExp(`settings in ${path} cannot be changed: the .*${NAME}.*\nhint: correct the file`),
      );
      expect(read(path)).toBe(content);
    }
    expect(readdirSync(dirname(path))).toHaveLength(1);
  });
});

describe("a removal", () => {
  it("leaves the comments around the tables of codex", async () => {
    const { me, path } = startWith("codex", CODEX);
    expect((await me.run("remove", "codex", NAME)).code).toBe(0);
    const [before] = CODEX.split(`[mcp_servers.${NAME}]`);
    const after = CODEX.slice(CODEX.indexOf("\n# my notes"));
    expect(read(path)).toBe(`${before}${after}`);
  });

  it("leaves the comments around the entry of goose", async () => {
    const { me, path } = startWith("goose", GOOSE);
    expect((await me.run("remove", "goose", NAME)).code).toBe(0);
    const [before] = GOOSE.split(`  ${NAME}:`);
    expect(read(path)).toBe(`${before}${GOOSE.slice(GOOSE.indexOf("\n  # my notes"))}`);
  });

  it("leaves a file as it was before the server was added", async () => {
    const before = 'model = "m"\n\n# mine\n[other]\nx = 1\n';
    const { me, path, update } = startWith("codex", before);
    await update();
    expect(read(path)).not.toBe(before);
    await me.run("remove", "codex", NAME);
    expect(read(path)).toBe(before);
  });
});
