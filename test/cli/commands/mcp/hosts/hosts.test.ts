import { readdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { parse } from "jsonc-parser";
import { describe, expect, it } from "vitest";
import { HOST_SCOPES, MCP_HOSTS } from "../../../../../src/cli/clients/hosts.js";
import { NAME, read, startUser, URL_OF_SERVER, write } from "../host-support.js";

/** Settings with comments, another setting and another server. */
const settings = (key: string) =>
  `// my settings\n{\n\t"theme": "dark", /* why */\n\t"${key}": { // mine\n\t\t// first\n\t\t"other": { "command": "x", "args": ["--y"] }, // last\n\t},\n\t"zoom": 1.5\n}\n`;

const EVERY = Object.entries(MCP_HOSTS).flatMap(([host, { user, project = [] }]) =>
  HOST_SCOPES.filter((scope) => (scope === "user" ? user !== undefined : project.length > 0)).map(
    (scope) => [host, scope] as const,
  ),
);

const platformOf = (host: string) => (host === "claude-desktop" ? "darwin" : "linux");

describe.each(EVERY)("agentauth mcp add %s --scope %s", (host, scope) => {
  const key = MCP_HOSTS[host]?.key ?? "";

  it("creates the file, changes nothing when run again, and removes the entry", async () => {
    const me = startUser(platformOf(host));
    const added = await me.run("add", host, URL_OF_SERVER, "--scope", scope);
    const path = me.file(host, scope);
    expect(added).toMatchObject({ code: 0, stdout: "" });
    expect(added.stderr).toBe(
      `added "${NAME}" in ${path}\nrestart ${host} if it does not show the server\n` +
        `log in once: agentauth login ${URL_OF_SERVER} --profile default\n`,
    );
    expect(parse(read(path))).toEqual(parse((await me.run("config", host, URL_OF_SERVER)).stdout));
    expect(statSync(path).mode & 0o777).toBe(scope === "user" ? 0o600 : 0o644);
    const text = read(path);

    const again = await me.run("add", host, URL_OF_SERVER, "--scope", scope);
    expect(again.stderr).toBe(`${host} already has this server, as "${NAME}" in ${path}: nothing was changed\n`);
    expect([read(path), readdirSync(dirname(path))]).toEqual([text, [path.split("/").at(-1)]]);

    const rows = JSON.parse((await me.run("list", "--json")).stdout);
    expect(rows).toEqual([{ host, scope, name: NAME, url: URL_OF_SERVER, file: path }]);

    const removed = await me.run("remove", host, URL_OF_SERVER, "--scope", scope);
    expect(removed).toMatchObject({ code: 0, stderr: expect.stringContaining(`removed "${NAME}" from ${path}; `) });
    expect(parse(read(path))).toEqual({ [key]: {} });
    const gone = await me.run("remove", host, "--name", NAME, "--scope", scope);
    expect(gone).toMatchObject({ code: 0, stderr: `${host} has no such server in ${path}: nothing was changed\n` });
  });

  it("leaves every byte of comments, other settings and other servers as it is", async () => {
    const me = startUser(platformOf(host));
    const before = settings(key);
    const path = write(me.file(host, scope), before);
    expect((await me.run("add", host, URL_OF_SERVER, "--scope", scope)).code).toBe(0);
    const [head = "", tail = ""] = before.split("// mine\n");
    expect(read(path).startsWith(`${head}// mine\n\t\t"${NAME}": {\n`)).toBe(true);
    expect(read(path).endsWith(`},\n${tail}`)).toBe(true);
    expect((await me.run("remove", host, "--name", NAME, "--scope", scope)).code).toBe(0);
    expect(read(path)).toBe(before);
  });

  it("does not change a file that cannot be parsed", async () => {
    const me = startUser(platformOf(host));
    const path = write(me.file(host, scope), '{\n  "a": 1,\n  "b": [1, 2\n}');
    const { code, stderr } = await me.run("add", host, URL_OF_SERVER, "--scope", scope);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(`in ${path} cannot be changed: it is not valid JSON, in line 4`),
    ]);
    expect(stderr).toContain("\nhint: correct the file, or change it by hand: agentauth mcp config");
    expect([read(path), readdirSync(dirname(path)).length]).toEqual(['{\n  "a": 1,\n  "b": [1, 2\n}', 1]);
  });
});
