import fs, {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { readServer } from "../../../../../src/cli/commands/mcp/hosts/run.js";
import { NAME, read, startUser, URL_OF_SERVER, write } from "../host-support.js";

const { renameSync } = fs;
afterEach(() => {
  Object.assign(fs, { renameSync });
  syncBuiltinESMExports();
});

/** The backup beside a file. */
const backupOf = (path: string) =>
  join(dirname(path), readdirSync(dirname(path)).find((name) => name.endsWith(".bak")) ?? "");

/** Runs `mcp add cursor` on a file with this content. */
async function addTo(content: string | Buffer, ...flags: string[]) {
  const me = startUser();
  const path = write(me.file("cursor"), content);
  const result = await me.run("add", "cursor", URL_OF_SERVER, ...flags);
  return { me, path, result };
}

const serversOf = (path: string) => JSON.parse(read(path)).mcpServers;

describe("agentauth mcp add keeps", () => {
  it("a byte order mark, the line breaks and the indentation", async () => {
    const { path, result } = await addTo('\uFEFF{\r\n   "a": 1,\r\n   "mcpServers": {}\r\n}');
    expect(result.code).toBe(0);
    expect(read(path)).toBe(
      [
        '\uFEFF{\r\n   "a": 1,\r\n   "mcpServers": {',
        `      "${NAME}": {`,
        '         "command": "agentauth",',
        '         "args": [',
        '            "mcp",',
        '            "proxy",',
        `            "${URL_OF_SERVER}",`,
        '            "--profile",',
        '            "default"',
        "         ]",
        "      }",
        "   }\r\n}",
      ].join("\r\n"),
    );
  });

  it("trailing commas and comments in the place of the change", async () => {
    const before = '{\n  "mcpServers": {\n    // one\n    "a": {}, // of me\n    // two\n  },\n}\n';
    const { path, me, result } = await addTo(before);
    expect(result.code).toBe(0);
    expect(read(path)).toContain(`    },\n    // one\n    "a": {}, // of me\n    // two\n  },\n}\n`);
    await me.run("remove", "cursor", "--name", NAME);
    expect(read(path)).toBe(before);
  });

  it("the mode of the file, also in the backup", async () => {
    const me = startUser();
    const path = write(me.file("cursor"), "{}");
    chmodSync(path, 0o640);
    expect((await me.run("add", "cursor", URL_OF_SERVER)).code).toBe(0);
    for (const one of [path, backupOf(path)]) expect(statSync(one).mode & 0o777).toBe(0o640);
  });

  it("the owner of the file, for an administrator", async (context) => {
    context.skip(process.getuid?.() !== 0, "only an administrator can change owners");
    const me = startUser();
    const path = write(me.file("cursor"), "{}");
    fs.chownSync(path, 12345, 12346);
    expect((await me.run("add", "cursor", URL_OF_SERVER)).code).toBe(0);
    expect(statSync(path)).toMatchObject({ uid: 12345, gid: 12346 });
  });

  it("a symbolic link to the file, and changes the file that it leads to", async () => {
    const me = startUser();
    const target = write(join(me.home, "dotfiles", "cursor.json"), "{}");
    const path = me.file("cursor");
    mkdirSync(dirname(path));
    symlinkSync(target, path);
    expect((await me.run("add", "cursor", URL_OF_SERVER)).code).toBe(0);
    expect(readlinkSync(path)).toBe(target);
    expect(lstatSync(target).isFile()).toBe(true);
    expect(Object.keys(serversOf(target))).toEqual([NAME]);
    expect(read(backupOf(target))).toBe("{}");
  });

  it("values that the user has added to the entry, when the login of the entry changes", async () => {
    const { path, me } = await addTo("{}");
    const own = JSON.parse(read(path));
    own.mcpServers[NAME].disabled = true;
    writeFileSync(path, `${JSON.stringify(own, null, 2)}\n`);
    expect((await me.run("add", "cursor", URL_OF_SERVER)).stderr).toContain("nothing was changed");
    const { stderr } = await me.run("add", "cursor", URL_OF_SERVER, "--account-hint", "bob");
    expect(stderr).toContain(`updated "${NAME}" in ${path}`);
    expect(serversOf(path)[NAME]).toMatchObject({
      disabled: true,
      args: expect.arrayContaining(["--account-hint", "bob"]),
    });
  });

  it("the file that exists, where a host reads several", async () => {
    const me = startUser();
    const path = write(join(me.home, ".config", "opencode", "opencode.jsonc"), "{ // mine\n}");
    expect((await me.run("add", "opencode", URL_OF_SERVER)).stderr).toContain(`in ${path};`);
    expect(existsSync(me.file("opencode"))).toBe(false);
    expect(read(path)).toContain("// mine");
  });
});

describe("agentauth mcp add does not change", () => {
  it.each([
    ["deep nesting", "[".repeat(200_000), /it is (nested too deeply|not valid JSON)/],
    ["UTF-16", Buffer.from('\uFEFF{"a": 1}', "utf16le"), /is not UTF-8 text/],
    ["10 MB", Buffer.alloc(10_000_000, " "), /of at most 8388608 bytes/],
  ])("a file with %s", async (_what, content, message) => {
    const { path, result } = await addTo(content);
    expect(result).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(message) });
    expect(result.stderr).toMatch(/\nhint: \S/);
    expect(fs.readFileSync(path).equals(Buffer.from(content))).toBe(true);
    expect(readdirSync(dirname(path))).toHaveLength(1);
  });

  it("anything where the folder cannot be created", async () => {
    const me = startUser();
    write(join(me.home, ".cursor"), "a file in the place of the folder");
    expect(await me.run("add", "cursor", URL_OF_SERVER)).toMatchObject({ code: 8, stdout: "" });
  });

  it("the user's files through a link in a project", async () => {
    const me = startUser();
    const target = write(join(me.home, "settings.json"), "{}");
    mkdirSync(join(me.folder, ".cursor"));
    symlinkSync(target, me.file("cursor", "project"));
    const { code, stderr } = await me.run("add", "cursor", URL_OF_SERVER, "--scope", "project");
    expect(code).toBe(2);
    expect(stderr).toContain(`leads out of the project, to ${fs.realpathSync(target)}`);
    symlinkSync(me.home, join(me.folder, ".vscode"));
    expect((await me.run("add", "vscode", URL_OF_SERVER, "--scope", "project")).code).toBe(2);
    expect(read(target)).toBe("{}");
    expect(existsSync(join(me.home, "mcp.json"))).toBe(false);
  });

  it("the file if it is stopped between the backup and the last step", async () => {
    const me = startUser();
    const path = write(me.file("cursor"), "{}");
    fs.renameSync = (from, to) => {
      if (to === path) throw Object.assign(new Error("disk"), { code: "EIO" });
      renameSync(from, to);
    };
    syncBuiltinESMExports();
    const { code, stderr } = await me.run("add", "cursor", URL_OF_SERVER);
    expect({ code, stderr }).toEqual({
      code: 8,
      stderr: `error: the file ${path} cannot be written (EIO)\nhint: the file is as it was; check its folder\n`,
    });
    expect(read(path)).toBe("{}");
    expect(readdirSync(dirname(path))).toHaveLength(2);
  });

  it("an earlier backup", async () => {
    const { me, path } = await addTo("{}");
    const first = backupOf(path);
    await me.run("add", "cursor", URL_OF_SERVER, "--account-hint", "bob");
    expect([readdirSync(dirname(path)).length, read(first)]).toEqual([3, "{}"]);
  });
});

describe("agentauth mcp add", () => {
  it("refuses a name that belongs to another server", async () => {
    const before = `{"mcpServers": {"${NAME}": {"url": "https://mcp.example.com/other"}}}`;
    const { me, path, result } = await addTo(before);
    expect(result).toMatchObject({
      code: 2,
      stderr: `error: the name "${NAME}" belongs to another server in ${path}\nhint: --name <name> sets another name\n`,
    });
    expect(read(path)).toBe(before);
    expect((await me.run("add", "cursor", URL_OF_SERVER, "--name", "b")).code).toBe(0);
    expect(Object.keys(serversOf(path))).toEqual(["b", NAME]);
    const again = await me.run("add", "cursor", "https://mcp.example.com/third", "--name", "b");
    expect(again.stderr).toContain('the name "b" belongs to another server');
  });

  it("prints the change and nothing of other servers with --dry-run", async () => {
    const before = '{\n  "mcpServers": {\n    "a": { "env": { "API_KEY": "secret-1" } }\n  }\n}\n';
    const { me, path, result } = await addTo(before, "--dry-run");
    const snippet = (await me.run("config", "cursor", URL_OF_SERVER)).stdout;
    expect(result).toMatchObject({ code: 0, stdout: snippet, stderr: `this would go into ${path} (--dry-run)\n` });
    expect([read(path), readdirSync(dirname(path)).length]).toEqual([before, 1]);
    await me.run("add", "cursor", URL_OF_SERVER);
    const after = read(path);
    const removal = await me.run("remove", "cursor", "--name", NAME, "--dry-run");
    expect(removal).toMatchObject({ stdout: "", stderr: `"${NAME}" would be removed from ${path} (--dry-run)\n` });
    expect(read(path)).toBe(after);
    await me.run("add", "windsurf", URL_OF_SERVER, "--dry-run");
    expect(existsSync(dirname(me.file("windsurf")))).toBe(false);
  });

  it.each([
    [`https://evil.example/mcp?x=$\{AWS_SECRET_ACCESS_KEY}`, '"$"', "%24"],
    ["https://evil.example/$(id)/mcp", '"$"', "%24"],
    ["https://evil.example/mcp?x={file:~/.ssh/id_ed25519}", '"{"', "%7B"],
    ["https://evil.example/mcp?x=`id`", '"`"', "%60"],
  ])("refuses the placeholder in %s", async (url, character, escaped) => {
    const me = startUser();
    for (const verb of ["add", "config"]) {
      const { code, stdout, stderr } = await me.run(verb, "cursor", url);
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toContain(
        `has a ${character}, with which hosts mark what they replace in their settings\nhint: write ${escaped} for it`,
      );
    }
    expect(existsSync(me.file("cursor"))).toBe(false);
  });

  it.each([
    [["curser", URL_OF_SERVER], "did you mean cursor?"],
    [["claude-desktop", URL_OF_SERVER], `agentauth mcp config claude-desktop ${URL_OF_SERVER} prints the entry`],
    [["goose", URL_OF_SERVER, "--scope", "project"], `agentauth mcp config goose ${URL_OF_SERVER} prints the entry`],
    [["windsurf", URL_OF_SERVER, "--scope", "project"], "agentauth mcp config windsurf"],
    [["cursor", "mcp.example"], ""],
    [["cursor", "https://mcp.example/mcp?token=secret-1"], "leave it out"],
    [["cursor", URL_OF_SERVER, "--name", "__proto__"], ""],
    [["cursor", URL_OF_SERVER, "--scope", "team"], ""],
  ])("refuses %j", async (args, hint) => {
    const me = startUser();
    const { code, stdout, stderr } = await me.run("add", ...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(hint);
    expect(stderr).not.toContain("secret-1");
    expect(readdirSync(me.home)).toEqual([]);
  });
});

describe("agentauth mcp remove", () => {
  it("removes only its own entries, by name, by URL or by both", async () => {
    const me = startUser();
    const path = write(me.file("cursor"), `{"mcpServers": {"a": {"url": "${URL_OF_SERVER}"}}}`);
    for (const words of [
      ["--name", "a"],
      [URL_OF_SERVER, "--name", "a"],
    ]) {
      const refused = await me.run("remove", "cursor", ...words);
      expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('the server "a" in') });
    }
    expect((await me.run("remove", "cursor", URL_OF_SERVER)).stderr).toContain("nothing was changed");
    await me.run("add", "cursor", URL_OF_SERVER, "--name", "b");
    await me.run("add", "cursor", URL_OF_SERVER, "--name", "c", "--account-hint", "bob");
    const several = await me.run("remove", "cursor", URL_OF_SERVER);
    expect(several).toMatchObject({ code: 2, stderr: expect.stringContaining('hint: --name names one: "c", "b"\n') });
    const other = await me.run("remove", "cursor", "https://mcp.example.com/x", "--name", "b");
    expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining("does not use https://mcp.example.com/x") });
    expect((await me.run("remove", "cursor", URL_OF_SERVER, "--name", "b")).code).toBe(0);
    expect((await me.run("remove", "cursor", URL_OF_SERVER)).code).toBe(0);
    expect(Object.keys(serversOf(path))).toEqual(["a"]);
    expect(await me.run("remove", "cursor")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--name <name>"),
    });
  });
});

describe("agentauth mcp list", () => {
  it("lists what hosts use through agentauth in all scopes, and no other server", async () => {
    const me = startUser();
    await me.run("add", "claude-code", URL_OF_SERVER);
    await me.run("add", "cursor", URL_OF_SERVER, "--scope", "project", "--name", "mine");
    const windsurf = {
      a: { serverUrl: "https://x.example/mcp?api_key=secret-1" },
      "b\u001b[31m": { command: "npx", args: ["--token", "secret-2"] },
    };
    write(me.file("windsurf"), JSON.stringify({ mcpServers: windsurf }));
    const { code, stdout } = await me.run("list", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual([
      { host: "claude-code", scope: "user", name: NAME, url: URL_OF_SERVER, file: me.file("claude-code") },
      { host: "cursor", scope: "project", name: "mine", url: URL_OF_SERVER, file: me.file("cursor", "project") },
    ]);
    const { stdout: text } = await me.run("list");
    expect(text).not.toContain("secret-");
    expect(text).not.toContain("\u001b");
    expect((await me.run("list", "-o", "id")).stdout.split("\n")).toContain("mine");
  });

  it("lists the rest if a file cannot be read, and exits with 7", async () => {
    const me = startUser();
    await me.run("add", "claude-code", URL_OF_SERVER);
    const path = write(me.file("zed"), "{");
    const { code, stdout, stderr } = await me.run("list", "-o", "id");
    expect({ code, stdout }).toEqual({ code: 7, stdout: `${NAME}\n` });
    expect(stderr).toContain(path);
  });

  it("reports that there is none", async () => {
    const { code, stdout, stderr } = await startUser().run("list", "--json");
    expect({ code, stdout: stdout.trim(), stderr }).toEqual({
      code: 0,
      stdout: "[]",
      stderr: "no MCP host uses a server through agentauth here\n",
    });
  });
});

describe("what an entry is for", () => {
  const AT = URL_OF_SERVER;
  const PROXY = ["mcp", "proxy", AT];

  it.each<[string, unknown, string | undefined]>([
    ["our command", { command: "x", args: PROXY }, AT],
    ["Node and our script", { command: "node", args: ["a.js", ...PROXY] }, AT],
    ["npx", { command: "npx", args: ["--yes", "agentauth@0.1.0", ...PROXY] }, AT],
    ["npx of Windows", { command: "cmd", args: ["/c", "npx", "--yes", "agentauth@0.1.0", ...PROXY] }, AT],
    ["a command of goose", { cmd: "x", args: PROXY }, AT],
    ["a command in one list", { command: ["x", ...PROXY] }, AT],
    ["five words before it", { command: "a", args: ["b", "c", "d", ...PROXY] }, undefined],
    ["another verb", { command: "x", args: ["mcp", "call", AT] }, undefined],
    ["another group", { command: "x", args: ["http", "proxy", AT] }, undefined],
    ["no address", { command: "x", args: ["mcp", "proxy"] }, undefined],
    ["a word that is none", { command: "x", args: ["mcp", "proxy", 5] }, undefined],
    ["another program", { url: AT }, undefined],
    ["no map", [AT], undefined],
  ])("by %s", (_what, entry, url) => {
    expect(readServer(entry)).toBe(url);
  });
});
