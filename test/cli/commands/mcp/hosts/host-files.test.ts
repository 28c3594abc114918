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
import { dirname, join, posix, win32 } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { isOutside, readHostFile, writeHostFile } from "../../../../../src/cli/clients/mcp-hosts/settings-file.js";
import { originOf, printableUrl } from "../../../../../src/cli/commands/mcp/hosts/entry.js";
import { fixedText } from "../../../../helpers/fixed-text.js";
import { temporaryFolder } from "../../../../helpers/folder.js";
import { NAME, read, startUser, URL_OF_SERVER, write } from "../host-support.js";

const { fsyncSync, renameSync } = fs;
afterEach(() => {
  Object.assign(fs, { fsyncSync, renameSync });
  syncBuiltinESMExports();
});

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
        `            "${URL_OF_SERVER}"`,
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
    expect(read(path)).toContain(`    // one\n    "a": {}, // of me\n    "${NAME}": {\n`);
    expect(read(path)).toContain("    },\n    // two\n  },\n}\n");
    await me.run("remove", "cursor", NAME);
    expect(read(path)).toBe(before);
  });

  it("the mode of the file, also in the backup", async () => {
    const me = startUser();
    const path = write(me.file("cursor"), "{}");
    chmodSync(path, 0o640);
    expect((await me.run("add", "cursor", URL_OF_SERVER)).code).toBe(0);
    for (const one of [path, `${path}.agentauth.bak`]) expect(statSync(one).mode & 0o777).toBe(0o640);
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
    expect(read(`${target}.agentauth.bak`)).toBe("{}");
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
    ["a comma too few", '{\n "a": 1\n "b": 2\n}', 2, /line 3 of .*: it is not valid JSON: comma expected/],
    ["a list", "[]", 2, /line 1 of .*: the settings must be an object/],
    ["a list of servers", '{\n"mcpServers": []}', 2, /line 2 of .*: "mcpServers" must be an object/],
    [
      "the servers twice",
      '{"mcpServers": {},\n"mcpServers": {}}',
      2,
      /line 2 of .*: the key "mcpServers" is there twice/,
    ],
    ["a server twice", '{"mcpServers": {"a": 1,\n\n"a": 2}}', 2, /line 3 of .*: the key "a" is there twice/],
    ["deep nesting", "[".repeat(200_000), 2, /it is (nested too deeply|not valid JSON)/],
    ["UTF-16", Buffer.from('\uFEFF{"a": 1}', "utf16le"), 2, /is not UTF-8 text/],
    ["bytes that are no text", Buffer.from([0x7b, 0xff, 0x7d]), 2, /is not UTF-8 text/],
    ["10 MB", Buffer.alloc(10_000_000, " "), 2, /has 10000000 bytes; at most 8388608 are read/],
  ])("a file with %s", async (_what, content, code, message) => {
    const { path, result } = await addTo(content);
    expect(result).toMatchObject({ code, stdout: "", stderr: expect.stringMatching(message) });
    // How deep is too deep depends on the runtime.
    if (content.length !== 200_000) expect(fixedText(result.stderr)).toMatchSnapshot();
    expect(result.stderr).toMatch(/\nhint: \S/);
    expect(fs.readFileSync(path).equals(Buffer.from(content))).toBe(true);
    expect(readdirSync(dirname(path))).toHaveLength(1);
  });

  it.each([
    ["codex", 'mcp_servers = { a = { command = "x" } }\n'],
    ["codex", "[mcp_servers]\na = 1\n\n[[mcp_servers.x]]\nb = 1\n[mcp_servers]\n"],
    ["goose", "extensions: {a: {b: 1}}\n"],
    ["goose", "a: 1\n...\n"],
    ["goose", "a: 1\n---\nb: 1\n"],
    ["goose", "a: 1\na: 2\n"],
    [
      "goose",
      `${["a: &a [x, x]", ..."bcdefgh".split("").map((one, at) => `${one}: &${one} [${`*${"abcdefgh"[at]}, `.repeat(9)}]`)].join("\n")}\n`,
    ],
  ])("a file of %s in a form that is not changed safely", async (host, content) => {
    const me = startUser();
    const path = write(me.file(host), content);
    const { code, stderr } = await me.run("add", host, URL_OF_SERVER);
    expect({ code, stderr }).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/cannot be changed: .*\nhint: correct/),
    });
    expect(fixedText(stderr)).toMatchSnapshot();
    expect(read(path)).toBe(content);
  });

  it("a folder, a pipe, a link that leads nowhere, or a file that is read-only", async () => {
    const me = startUser();
    const path = me.file("cursor");
    mkdirSync(path, { recursive: true });
    expect(await me.run("add", "cursor", URL_OF_SERVER)).toMatchObject({
      code: 2,
      stderr: `error: ${path} is a folder, not the host's settings\nhint: move it away: mv ${path} ${path}.old\n`,
    });
    fs.rmdirSync(path);
    symlinkSync(join(me.home, "missing"), path);
    expect(await me.run("add", "cursor", URL_OF_SERVER)).toMatchObject({
      code: 2,
      stderr: `error: the file ${path} is a symbolic link that leads nowhere\nhint: remove it: rm ${path}\n`,
    });
    fs.rmSync(path);
    write(path, "{}");
    chmodSync(path, 0o444);
    const { code, stderr } = await me.run("add", "cursor", URL_OF_SERVER);
    expect(code).toBe(8);
    expect(stderr).toContain(`hint: chmod u+w ${path}\n`);
    expect(read(path)).toBe("{}");
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

  it.each([
    [win32, "C:\\project", "C:\\project\\.cursor\\mcp.json", false],
    [win32, "C:\\project", "c:\\PROJECT\\..cursor\\mcp.json", false],
    [win32, "C:\\project", "C:\\projects\\mcp.json", true],
    [win32, "C:\\project", "D:\\project\\mcp.json", true],
    [win32, "C:\\project", "\\\\server\\share\\mcp.json", true],
    [posix, "/project", "/project/..cursor/mcp.json", false],
    [posix, "/project", "/mcp.json", true],
  ])("a file outside the project, by the paths of a platform: %#", (path, folder, target, expected) => {
    expect(isOutside(folder, target, path)).toBe(expected);
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
    expect(readdirSync(dirname(path)).sort()).toEqual(["mcp.json", "mcp.json.agentauth.bak"]);
  });

  it("a backup: the next one has another name, and one with the same bytes is used again", async () => {
    const { me, path } = await addTo("{}");
    const backups = () =>
      readdirSync(dirname(path))
        .filter((name) => name.includes("bak"))
        .sort();
    const added = read(path);
    symlinkSync(join(me.home, "missing"), `${path}.agentauth.bak.1`);
    const { stderr } = await me.run("add", "cursor", URL_OF_SERVER, "--account-hint", "bob");
    expect(stderr).toContain(`; the old content is in ${path}.agentauth.bak.2\n`);
    expect(read(`${path}.agentauth.bak`)).toBe("{}");
    expect(read(`${path}.agentauth.bak.2`)).toBe(added);
    expect(existsSync(join(me.home, "missing"))).toBe(false);
    writeFileSync(path, "{}");
    const { ino } = statSync(`${path}.agentauth.bak`);
    expect((await me.run("add", "cursor", URL_OF_SERVER)).stderr).toContain(`is in ${path}.agentauth.bak\n`);
    expect(statSync(`${path}.agentauth.bak`).ino).toBe(ino);
    expect(backups()).toEqual(["mcp.json.agentauth.bak", "mcp.json.agentauth.bak.1", "mcp.json.agentauth.bak.2"]);
  });

  it("a backup that another program writes at the same time, or a link in its place", async () => {
    const me = startUser();
    const path = write(me.file("cursor"), "{}");
    const backup = `${path}.agentauth.bak`;
    // A link to a file with the same bytes, whose own text has the same length.
    write(join(dirname(path), "of"), "{}");
    symlinkSync("of", backup);
    fs.fsyncSync = (fd) => {
      fsyncSync(fd);
      writeFileSync(`${backup}.1`, "foreign");
    };
    syncBuiltinESMExports();
    const { code, stderr } = await me.run("add", "cursor", URL_OF_SERVER);
    expect([code, stderr]).toEqual([8, expect.stringContaining(`another program has written the backup ${backup}.1`)]);
    expect([read(path), read(`${backup}.1`), readlinkSync(backup)]).toEqual(["{}", "foreign", "of"]);
  });

  it("a file that the host has written since it was read", () => {
    const path = write(join(temporaryFolder(), "mcp.json"), "{}");
    const file = readHostFile(path);
    writeFileSync(path, '{"new": 1}');
    expect(() => writeHostFile(file, "{}")).toThrow(/was changed by another program/);
    expect(read(path)).toBe('{"new": 1}');
    const missing = readHostFile(join(dirname(path), "none.json"));
    write(missing.path, "{}");
    expect(() => writeHostFile(missing, "[]")).toThrow(/was changed by another program/);
    expect(read(missing.path)).toBe("{}");
  });
});

describe("agentauth mcp add", () => {
  it("refuses a name that belongs to another server", async () => {
    const before = `{"mcpServers": {"${NAME}": {"url": "https://mcp.example.com/other"}}}`;
    const { me, path, result } = await addTo(before);
    expect(result).toMatchObject({
      code: 2,
      stderr: `error: the name "${NAME}" belongs to another server in ${path}\nhint: --name <name> sets another name; agentauth mcp list shows the names in use\n`,
    });
    expect(read(path)).toBe(before);
    expect((await me.run("add", "cursor", URL_OF_SERVER, "--name", "b")).code).toBe(0);
    expect(Object.keys(serversOf(path))).toEqual([NAME, "b"]);
    const again = await me.run("add", "cursor", "https://mcp.example.com/third", "--name", "b");
    expect(again.stderr).toContain('the name "b" belongs to another server');
  });

  it("finds the server under the name that it has", async () => {
    const { me, path } = await addTo("{}", "--name", "mine");
    const { stderr } = await me.run("add", "cursor", URL_OF_SERVER);
    expect(stderr).toBe(`cursor already has this server, as "mine" in ${path}: nothing was changed\n`);
  });

  it("prints the change and nothing of other servers with --dry-run", async () => {
    const before = '{\n  "mcpServers": {\n    "a": { "env": { "API_KEY": "secret-1" } }\n  }\n}\n';
    const { me, path, result } = await addTo(before, "--dry-run");
    expect(result).toEqual({
      code: 0,
      signal: null,
      stderr: "nothing was changed (--dry-run)\n",
      stdout: [
        `--- ${path}`,
        `+++ ${path}`,
        "@@ line 3 @@",
        `+    "${NAME}": {`,
        '+      "command": "agentauth",',
        '+      "args": [',
        '+        "mcp",',
        '+        "proxy",',
        `+        "${URL_OF_SERVER}"`,
        "+      ]",
        "+    }",
        "",
      ].join("\n"),
    });
    expect(read(path)).toBe(before);
    expect(readdirSync(dirname(path))).toHaveLength(1);
    await me.run("add", "cursor", URL_OF_SERVER);
    const after = read(path);
    const removal = await me.run("remove", "cursor", NAME, "--dry-run");
    expect(removal.stdout).toContain(`-    "${NAME}": {\n`);
    expect(removal.stdout).not.toContain("secret-1");
    expect(read(path)).toBe(after);
    const created = await me.run("add", "kiro", URL_OF_SERVER, "--dry-run");
    expect(created.stdout).toContain('+  "mcpServers": {\n');
    expect(existsSync(dirname(me.file("kiro")))).toBe(false);
  });

  it.each([
    [`https://evil.example/mcp?x=$\{AWS_SECRET_ACCESS_KEY}`, '"$"', "%24"],
    ["https://evil.example/$(id)/mcp", '"$"', "%24"],
    ["https://evil.example/mcp?x={file:~/.ssh/id_ed25519}", '"{"', "%7B"],
    ["https://evil.example/mcp?x=`id`", '"`"', "%60"],
  ])("refuses the placeholder in %s", async (url, character, escaped) => {
    const me = startUser();
    for (const verb of ["add", "config"]) {
      const { code, stdout, stderr } = await me.run(verb, "crush", url);
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toContain(
        `has a ${character}, with which hosts mark what they replace in their settings\nhint: write ${escaped} for it`,
      );
    }
    expect(existsSync(me.file("crush"))).toBe(false);
  });

  it.each([
    [`${URL_OF_SERVER}?a=1&b=2`],
    [`${URL_OF_SERVER}?a=%PATH%25`],
    [URL_OF_SERVER, "--account-hint", "it's; bob"],
    [URL_OF_SERVER, "--account-hint", "a|calc"],
    [URL_OF_SERVER, "--command", "C:\\%TEMP%\\agentauth.cmd"],
    [URL_OF_SERVER, "--command", "a\nb"],
  ])("refuses %j %s %j in a headers command on Windows", async (...args) => {
    const me = startUser("win32");
    for (const verb of ["add", "config"]) {
      const { code, stdout, stderr } = await me.run(verb, "claude-code", "--style", "headers-helper", ...args);
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toMatch(/has characters that cmd\.exe may interpret.*\nhint: use --style proxy: /);
      expect(fixedText(stderr)).toMatchSnapshot();
      expect((await me.run(verb, "claude-code", ...args)).code).toBe(0);
    }
  });

  it.each([
    ["agentauth.cmd", "agentauth.cmd"],
    ["C:\\Program Files\\a&b^c\\agentauth.cmd", '"C:/Program Files/a&b^c/agentauth.cmd"'],
  ])("writes a headers command on Windows with %s in the quotes of cmd.exe alone", async (command, word) => {
    const flags = ["--style", "headers-helper", "--command", command, "--account-hint", "a@b.example"];
    const { stdout } = await startUser("win32").run("config", "claude-code", `${URL_OF_SERVER}?a=1`, ...flags);
    expect(JSON.parse(stdout).mcpServers[NAME].headersHelper).toBe(
      `${word} token ${URL_OF_SERVER}?a=1 --format headers-json --account-hint a@b.example`,
    );
  });

  it.each([
    [["curser", URL_OF_SERVER], "did you mean cursor?"],
    [["jetbrains-ai-assistant", URL_OF_SERVER], "see agentauth mcp add --help"],
    [["claude-desktop", URL_OF_SERVER], `agentauth mcp config claude-desktop ${URL_OF_SERVER} prints the entry`],
    [["goose", URL_OF_SERVER, "--scope", "project"], "use --scope user"],
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
    expect(fixedText(stderr)).toMatchSnapshot();
    expect(readdirSync(me.home)).toEqual([]);
  });
});

describe("agentauth mcp remove", () => {
  it("removes only its own entries, by name or URL", async () => {
    const me = startUser();
    const path = write(me.file("cursor"), `{"mcpServers": {"a": {"url": "${URL_OF_SERVER}"}}}`);
    const refused = await me.run("remove", "cursor", "a");
    expect(fixedText(refused.stderr)).toMatchSnapshot();
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('the server "a" in') });
    expect((await me.run("remove", "cursor", URL_OF_SERVER)).stderr).toContain("nothing was changed");
    await me.run("add", "cursor", URL_OF_SERVER, "--name", "b");
    await me.run("add", "cursor", URL_OF_SERVER, "--name", "c", "--account-hint", "bob");
    const several = await me.run("remove", "cursor", URL_OF_SERVER);
    expect(fixedText(several.stderr)).toMatchSnapshot();
    expect(several).toMatchObject({ code: 2, stderr: expect.stringContaining('hint: name one of them: "b", "c"\n') });
    expect((await me.run("remove", "cursor", "b")).code).toBe(0);
    expect((await me.run("remove", "cursor", URL_OF_SERVER)).code).toBe(0);
    expect(Object.keys(serversOf(path))).toEqual(["a"]);
  });

  it("removes an entry with a headers command", async () => {
    const me = startUser();
    expect((await me.run("add", "claude-code", URL_OF_SERVER, "--style", "headers-helper")).code).toBe(0);
    expect((await me.run("remove", "claude-code", URL_OF_SERVER)).stderr).toContain(`removed "${NAME}"`);
  });
});

describe("agentauth mcp list", () => {
  it("lists the servers of all hosts and scopes, without their secrets", async () => {
    const me = startUser();
    await me.run("add", "codex", URL_OF_SERVER);
    await me.run("add", "cursor", URL_OF_SERVER, "--scope", "project", "--name", "mine");
    const windsurf = {
      a: { serverUrl: "https://x.example/s/a1B2c3D4e5F6g7H8i9J0k1/mcp?api_key=secret-1" },
      "b\u001b[31m": { command: "npx", args: ["--token", "secret-2"] },
    };
    write(me.file("windsurf"), JSON.stringify({ mcpServers: windsurf }));
    const { code, stdout } = await me.run("list", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual([
      { host: "codex", scope: "user", name: NAME, url: URL_OF_SERVER, by_agentauth: true, file: me.file("codex") },
      {
        host: "cursor",
        scope: "project",
        name: "mine",
        url: URL_OF_SERVER,
        by_agentauth: true,
        file: me.file("cursor", "project"),
      },
      {
        host: "windsurf",
        scope: "user",
        name: "a",
        url: "https://x.example/s/***/mcp?api_key=***",
        by_agentauth: false,
        file: me.file("windsurf"),
      },
      {
        host: "windsurf",
        scope: "user",
        name: "b\u001b[31m",
        url: null,
        by_agentauth: false,
        file: me.file("windsurf"),
      },
    ]);
    const { stdout: text } = await me.run("list");
    expect(text).not.toContain("secret-");
    expect(text).not.toContain("\u001b");
    expect(fixedText(text)).toMatchSnapshot();
    for (const format of ["table", "wide", "csv"]) {
      expect(fixedText((await me.run("list", "-o", format)).stdout)).toMatchSnapshot();
    }
    expect((await me.run("list", "-o", "id")).stdout.split("\n")).toContain("mine");
  });

  it("lists the rest if a file cannot be read, and exits with 7", async () => {
    const me = startUser();
    await me.run("add", "codex", URL_OF_SERVER);
    const path = write(me.file("zed"), "{");
    const { code, stdout, stderr } = await me.run("list", "-o", "id");
    expect({ code, stdout }).toEqual({ code: 7, stdout: `${NAME}\n` });
    expect(fixedText(stderr)).toMatchSnapshot();
    expect(stderr).toContain(path);
  });

  it("reports that there is none", async () => {
    const { code, stdout, stderr } = await startUser().run("list", "--json");
    expect({ code, stdout: stdout.trim(), stderr }).toEqual({
      code: 0,
      stdout: "[]",
      stderr: "no MCP host has a server in its settings here\n",
    });
  });
});

describe("what agentauth mcp list prints of an address", () => {
  it.each([
    ["https://a.example:8443/mcp", "https://a.example:8443/mcp"],
    ["https://u:p@a.example/#x", "https://a.example/"],
    ["https://a.example/?a b=1&c=2", "https://a.example/?a%20b=***&c=***"],
    [`https://a.example/${"a1".repeat(10)}/x`, "https://a.example/***/x"],
    [`https://a.example/${"a1".repeat(9)}b/x`, `https://a.example/${"a1".repeat(9)}b/x`],
    [`https://a.example/${"ab".repeat(10)}/x`, `https://a.example/${"ab".repeat(10)}/x`],
    [`https://a.example/${"12".repeat(10)}/x`, `https://a.example/${"12".repeat(10)}/x`],
    [`https://a.example/A1-._~+=${"A1".repeat(8)}`, "https://a.example/***"],
    [`https://a.example/!${"a1".repeat(10)}`, `https://a.example/!${"a1".repeat(10)}`],
    [`https://a.example/${"a1".repeat(10)}!`, `https://a.example/${"a1".repeat(10)}!`],
    ["nowhere", "***"],
  ])("%s is %s", (url, printed) => {
    expect(printableUrl(url)).toBe(printed);
  });
});

describe("what an entry is for", () => {
  const AT = URL_OF_SERVER;
  const PROXY = ["mcp", "proxy", AT];
  const helper = (headersHelper: unknown, url: unknown = AT) => ({ url, headersHelper });

  it.each<[string, unknown, string | undefined, boolean]>([
    ["our command", { command: "x", args: PROXY }, AT, true],
    ["Node and our script", { command: "node", args: ["a.js", ...PROXY] }, AT, true],
    ["npx", { command: "npx", args: ["--yes", "agentauth@0.1.0", ...PROXY] }, AT, true],
    ["npx of Windows", { command: "cmd", args: ["/c", "npx", "--yes", "agentauth@0.1.0", ...PROXY] }, AT, true],
    ["a command of goose", { cmd: "x", args: PROXY }, AT, true],
    ["a command in one list", { command: ["x", ...PROXY] }, AT, true],
    ["five words before it", { command: "a", args: ["b", "c", "d", ...PROXY] }, undefined, false],
    ["another verb", { command: "x", args: ["mcp", "call", AT] }, undefined, false],
    ["another group", { command: "x", args: ["http", "proxy", AT] }, undefined, false],
    ["no address", { command: "x", args: ["mcp", "proxy"] }, undefined, false],
    ["a word that is none", { command: "x", args: ["mcp", "proxy", 5] }, undefined, false],
    ...["url", "serverUrl", "httpUrl", "uri"].map((field): [string, unknown, string, boolean] => [
      field,
      { [field]: AT },
      AT,
      false,
    ]),
    ["the first address", { serverUrl: 5, httpUrl: "a", uri: "b" }, "a", false],
    ["our headers", helper(`x token ${AT} --format headers-json`), AT, true],
    ["a helper of our name", helper("/opt/agentauth x"), AT, true],
    ["another helper", helper("/opt/agentauthx token"), AT, false],
    ["a helper that is no text", helper(5), AT, false],
    ["our headers for no address", helper(`x token ${AT} --format headers-json`, 5), undefined, false],
    ["no map", [AT], undefined, false],
  ])("by %s", (_what, entry, url, isByAgentauth) => {
    expect(originOf(entry)).toEqual({ url, isByAgentauth });
  });
});

describe("agentauth mcp config --link", () => {
  it("prints the link of Cursor and VS Code, with the entry and no secret", async () => {
    const me = startUser();
    const cursor = new URL((await me.run("config", "cursor", URL_OF_SERVER, "--link")).stdout);
    const entry = { command: "agentauth", args: ["mcp", "proxy", URL_OF_SERVER] };
    expect(cursor.href).toMatch(/^cursor:\/\/anysphere\.cursor-deeplink\/mcp\/install\?/);
    expect(cursor.searchParams.get("name")).toBe(NAME);
    expect(JSON.parse(Buffer.from(cursor.searchParams.get("config") ?? "", "base64").toString())).toEqual(entry);
    const { stdout, stderr } = await me.run("config", "vscode", URL_OF_SERVER, "--link");
    const [address, query = ""] = stdout.trim().split("?");
    expect(address).toBe("vscode:mcp/install");
    expect(JSON.parse(decodeURIComponent(query))).toEqual({ name: NAME, type: "stdio", ...entry });
    expect(stderr).toContain(`agentauth login ${URL_OF_SERVER}\n`);
    expect(fixedText(stderr)).toMatchSnapshot();
    expect(await me.run("config", "zed", URL_OF_SERVER, "--link")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("hint: leave --link out; these hosts have one: cursor, vscode\n"),
    });
  });
});
