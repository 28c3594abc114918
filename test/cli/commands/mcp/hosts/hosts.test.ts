import { readdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { parse as parseJson } from "jsonc-parser";
import { parse as parseToml } from "smol-toml";
import { describe, expect, it } from "vitest";
import { parse as parseYaml } from "yaml";
import type { HostScope, McpHost } from "../../../../../src/cli/clients/mcp-hosts/host.js";
import { MCP_HOSTS, WRITABLE_HOSTS } from "../../../../../src/cli/clients/mcp-hosts/hosts.js";
import { NAME, read, startUser, URL_OF_SERVER, write } from "../host-support.js";

function parse(language: McpHost["language"], text: string): Record<string, Record<string, unknown>> {
  if (language === "toml") return JSON.parse(JSON.stringify(parseToml(text)));
  return language === "yaml" ? parseYaml(text) : parseJson(text);
}

/** Settings of each language with a comment, another setting and another server. */
const SETTINGS = {
  json: (key: string) =>
    `// my settings\n{\n\t"theme": "dark", /* why */\n\t"${key}": {\n\t\t// first\n\t\t"other": { "command": "x", "args": ["--y"] }, // last\n\t},\n\t"zoom": 1.5\n}\n`,
  toml: (key: string) =>
    `# my settings\nmodel = "m" # why\n\n[${key}.other] # first\ncommand = "x"\nargs = ["--y"]\n\n# the end\n[zoom]\nlevel = 1.5\n`,
  yaml: (key: string) =>
    `# my settings\nmodel: m # why\n${key}:\n  # first\n  other:\n    cmd: x\n    args: ["--y"] # last\n\n# the end\nzoom:\n  level: 1.5\n`,
};

const EVERY = WRITABLE_HOSTS.flatMap((host) =>
  (Object.keys(MCP_HOSTS[host]?.settingsPaths ?? {}) as HostScope[]).map((scope) => [host, scope] as const),
);

const platformOf = (host: string) => ({ "claude-desktop": "darwin", "visual-studio": "win32" })[host] ?? "linux";

describe.each(EVERY)("agentauth mcp add %s --scope %s", (host, scope) => {
  const { key, language } = MCP_HOSTS[host] as McpHost;

  it("creates the file, changes nothing when run again, and removes the entry", async () => {
    const me = startUser(platformOf(host));
    const added = await me.run("add", host, URL_OF_SERVER, "--scope", scope);
    const path = me.file(host, scope);
    expect(added).toMatchObject({ code: 0, stdout: "" });
    expect(added.stderr).toBe(
      `added "${NAME}" in ${path}\nrestart ${host} if it does not show the server\n` +
        `log in once, if not done yet: agentauth login ${URL_OF_SERVER}\n`,
    );
    const printed = await me.run("config", host, URL_OF_SERVER);
    expect(parse(language, read(path))).toEqual(parse(language, printed.stdout));
    expect(statSync(path).mode & 0o777).toBe(scope === "user" ? 0o600 : 0o644);
    const text = read(path);

    const again = await me.run("add", host, URL_OF_SERVER, "--scope", scope);
    expect(again.stderr).toBe(`${host} already has this server, as "${NAME}" in ${path}: nothing was changed\n`);
    expect(read(path)).toBe(text);
    expect(readdirSync(dirname(path)).filter((name) => name.includes("agentauth.bak"))).toEqual([]);

    const rows = JSON.parse((await me.run("list", "--json")).stdout);
    expect(rows).toEqual([{ host, scope, name: NAME, url: URL_OF_SERVER, by_agentauth: true, file: path }]);

    const removed = await me.run("remove", host, URL_OF_SERVER, "--scope", scope);
    expect(removed).toMatchObject({
      code: 0,
      stderr: `removed "${NAME}" from ${path}; the old content is in ${path}.agentauth.bak\n`,
    });
    expect(parse(language, read(path))?.[key] ?? {}).toEqual({});
    const gone = await me.run("remove", host, NAME, "--scope", scope);
    expect(gone).toMatchObject({ code: 0, stderr: `${host} has no such server in ${path}: nothing was changed\n` });
  });

  it("leaves comments, other settings and other servers as they are", async () => {
    const me = startUser(platformOf(host));
    const before = SETTINGS[language](key.includes(".") && language === "toml" ? `"${key}"` : key);
    const path = write(me.file(host, scope), before);
    expect((await me.run("add", host, URL_OF_SERVER, "--scope", scope)).code).toBe(0);
    const after = read(path);
    for (const line of before.split("\n")) expect(after).toContain(line.replace(/,? \/\/ last/, ""));
    for (const comment of ["my settings", "why", "first", "last", "the end"].filter((one) => before.includes(one)))
      expect(after).toContain(comment);
    expect(Object.keys(parse(language, after)[key] ?? {})).toEqual(["other", NAME]);
    expect(read(`${path}.agentauth.bak`)).toBe(before);
    expect((await me.run("remove", host, NAME, "--scope", scope)).code).toBe(0);
    expect(parse(language, read(path))).toEqual(parse(language, before));
    expect(read(path)).toContain("first");
  });

  it("does not change a file that cannot be parsed", async () => {
    const me = startUser(platformOf(host));
    const broken = {
      json: '{\n  "a": 1,\n  "b": [1, 2\n}',
      toml: 'a = 1\n\nb = "open\n',
      yaml: "a: 1\nb: [1, 2\nc: 3\n",
    };
    const path = write(me.file(host, scope), broken[language]);
    const { code, stderr } = await me.run("add", host, URL_OF_SERVER, "--scope", scope);
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /^error: the host's settings in line \d of .* cannot be changed: it is not valid (JSON|TOML|YAML): /,
    );
    expect(stderr).toContain(path);
    expect(stderr).toContain("\nhint: correct the file, or change it by hand: agentauth mcp config");
    expect(read(path)).toBe(broken[language]);
    expect(readdirSync(dirname(path))).toHaveLength(1);
  });
});
