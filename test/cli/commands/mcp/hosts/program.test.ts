import { chmodSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ON_WINDOWS } from "../../../../helpers/systems.js";
import { NAME, read, startUser, URL_OF_SERVER, write } from "../host-support.js";

/** A program that keeps servers as `codex mcp` does, with its words and its output, and notes its environment. */
const CODEX = `#!${process.execPath}
const fs = require("node:fs");
const file = process.env.CODEX_FILE;
const servers = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, "utf8")) : {};
const [, verb, name, ...rest] = process.argv.slice(2);
if (verb === "list") {
  if (fs.existsSync(file + ".broken")) { console.error("WARNING: x\\nError: config.toml:1:3: broken"); process.exit(1); }
  console.log(JSON.stringify(Object.entries(servers).map(([name, transport]) => ({ name, transport }))));
} else if (verb === "add") {
  const at = rest.indexOf("--");
  const env = Object.fromEntries(rest.slice(0, at).filter((word) => word !== "--env").map((pair) => pair.split(/=(.*)/s)));
  const [command, ...args] = rest.slice(at + 1);
  servers[name] = { type: "stdio", command, args, env: Object.keys(env).length > 0 ? env : null };
} else delete servers[name];
fs.writeFileSync(file, JSON.stringify(servers));
fs.writeFileSync(file + ".env", JSON.stringify(process.env));
`;

function startCodexUser() {
  const me = startUser();
  const bin = join(me.home, "bin");
  chmodSync(write(join(bin, "codex"), CODEX), 0o755);
  const file = join(me.home, "codex.json");
  const env = { PATH: bin, CODEX_FILE: file };
  return {
    ...me,
    file,
    servers: () => JSON.parse(read(file)),
    run: (...args: string[]) => me.runWith(env, ...args),
    env,
  };
}

describe.skipIf(ON_WINDOWS)("a host whose program changes its settings", () => {
  it("has a server added, updated, listed and removed by its own command", async () => {
    const me = startCodexUser();
    const added = await me.run("add", "codex", URL_OF_SERVER);
    expect(added).toMatchObject({
      code: 0,
      stdout: "",
      stderr: expect.stringMatching(/^added ".*" in the settings of/),
    });
    const args = ["mcp", "proxy", URL_OF_SERVER, "--profile", "default"];
    expect(me.servers()).toEqual({ [NAME]: { type: "stdio", command: "agentauth", args, env: null } });
    expect((await me.run("add", "codex", URL_OF_SERVER)).stderr).toContain("nothing was changed");
    await me.runWith({ ...me.env, AGENTAUTH_STORE: "memory" }, "add", "codex", URL_OF_SERVER, "--account-hint", "bob");
    expect(me.servers()[NAME]).toMatchObject({
      args: [...args, "--account-hint", "bob"],
      env: { AGENTAUTH_STORE: "memory" },
    });
    expect(read(`${me.file}.env`)).not.toContain('"AGENTAUTH_');
    expect(JSON.parse((await me.run("list", "--json")).stdout)).toEqual([
      { host: "codex", scope: "user", name: NAME, url: URL_OF_SERVER, file: "the settings of codex" },
    ]);
    expect((await me.run("remove", "codex", URL_OF_SERVER)).stderr).toContain(`removed "${NAME}"`);
    expect(me.servers()).toEqual({});
  });

  it("has its command printed with --dry-run, which changes nothing", async () => {
    const me = startCodexUser();
    const dry = await me.run("add", "codex", URL_OF_SERVER, "--account-hint", "it's bob", "--dry-run");
    expect(dry).toMatchObject({
      code: 0,
      stdout: `codex mcp add ${NAME} -- agentauth mcp proxy ${URL_OF_SERVER} --profile default --account-hint 'it'\\''s bob'\n`,
    });
    await me.run("add", "codex", URL_OF_SERVER);
    const before = read(me.file);
    const removal = await me.run("remove", "codex", "--name", NAME, "--dry-run");
    expect([removal.stdout, read(me.file)]).toEqual([`codex mcp remove ${NAME}\n`, before]);
  });

  it("keeps a server of another name, and one that it does not use through agentauth", async () => {
    const me = startCodexUser();
    write(me.file, JSON.stringify({ [NAME]: { type: "streamable_http", url: "https://mcp.example.com/x" } }));
    const before = read(me.file);
    expect((await me.run("add", "codex", URL_OF_SERVER)).stderr).toContain("belongs to another server");
    expect((await me.run("remove", "codex", "--name", NAME)).code).toBe(2);
    expect(read(me.file)).toBe(before);
  });

  it("is reported where its program fails, and the other hosts are listed", async () => {
    const me = startCodexUser();
    await me.run("add", "cursor", URL_OF_SERVER);
    write(`${me.file}.broken`, "");
    expect(await me.run("add", "codex", URL_OF_SERVER)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('codex mcp list failed: "Error: config.toml:1:3: broken"'),
    });
    const listed = await me.run("list", "-o", "id");
    expect([listed.code, listed.stdout]).toEqual([7, `${NAME}\n`]);
  });
});

it.each(["codex", "goose"])("%s without a program here gets the snippet and its path", async (host) => {
  const me = startUser();
  const { code, stdout, stderr } = await me.run("add", host, URL_OF_SERVER);
  const printed = await me.run("config", host, URL_OF_SERVER);
  expect([code, stdout]).toEqual([0, printed.stdout]);
  expect(stderr).toBe(`nothing was changed: ${host} has no command here that adds a server\n${printed.stderr}`);
  expect(stderr).toMatch(/\nmerge this into ~\/\./);
  expect(await me.run("remove", host, URL_OF_SERVER)).toMatchObject({ code: 2 });
  expect([readdirSync(me.home), existsSync(join(me.home, ".codex"))]).toEqual([[], false]);
});
