import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { shellWord } from "../../src/redact.js";
import { BIN, cleanEnv, collect, runCli, temporaryFolder } from "../helpers/cli.js";
import { flowTest } from "./support.js";

const it = flowTest();

type Page = "help" | "docs/tokens.md";

/** The lines of a page for the settings of git. */
async function settingsIn(page: Page): Promise<string> {
  const text = page === "help" ? (await runCli(["token", "--help", "--all"])).stdout : readFileSync(page, "utf8");
  return /^ *\[credential "https:\/\/mcp\.example"\]\n( .*\n)+/m.exec(text)?.[0] ?? "";
}

/** The program as the help tells git to start it, below git's own helper that stores the credentials that it receives. */
async function gitSettings(
  url: string,
  { page = "help", omitted = "" }: { page?: Page; omitted?: string | RegExp } = {},
) {
  const program = [process.execPath, BIN].map(shellWord).join(" ");
  const lines = (await settingsIn(page)).replace(omitted, "");
  const own = lines.replaceAll("https://mcp.example/mcp", url).replace("https://mcp.example", new URL(url).origin);
  return `[credential]\n\thelper = store\n${own.replace("!agentauth", `!${program}`)}`;
}

/** Runs git's own credential machinery with these settings and no others. */
async function gitCredential(home: string, settings: string, operation: string, stdin: string) {
  const HOME = temporaryFolder();
  writeFileSync(join(HOME, ".gitconfig"), settings);
  const env = cleanEnv({ HOME, AGENTAUTH_HOME: home, GIT_CONFIG_NOSYSTEM: "1", GIT_TERMINAL_PROMPT: "0" });
  const child = spawn("git", ["credential", operation], { cwd: temporaryFolder(), env, stdio: "pipe" });
  const [out, err] = [collect(child.stdout), collect(child.stderr)];
  child.stdin.end(stdin);
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout: out(), stderr: err(), isStored: existsSync(join(HOME, ".git-credentials")) };
}

const attributes = (address: string) => {
  const { protocol, host } = new URL(address);
  return `protocol=${protocol.slice(0, -1)}\nhost=${host}\n\n`;
};

const login = (url: string, token: string) => `${attributes(url).trimEnd()}\nusername=agentauth\npassword=${token}\n\n`;

/** The line that starts the program. */
const ownHelper = (settings: string) => /!.*$/m.exec(settings)?.[0] ?? "";

describe("git with the program as its credential helper", () => {
  it("gets the token for its server", async ({ url, user }) => {
    const { code, stdout } = await gitCredential(user.home, await gitSettings(url), "fill", attributes(url));
    expect(code).toBe(0);
    expect(stdout.split("\n")).toEqual(expect.arrayContaining(["username=agentauth", `password=${user.token}`]));
  });

  it("gets nothing for another server, and the program says nothing", async ({ url, user }) => {
    const settings = `${await gitSettings(url)}[credential]\n\thelper = ${ownHelper(await gitSettings(url))}\n`;
    const other = attributes("https://evil.example/");
    const { code, stdout, stderr } = await gitCredential(user.home, settings, "fill", other);
    expect([code, stdout]).toEqual([128, ""]);
    expect(stderr).not.toContain(user.token);
    expect(stderr).not.toMatch(/^(error|hint|warning):/m);
  });

  it.for(["approve", "reject"])("may %s what it got, which changes nothing", async (operation, { url, user }) => {
    const settings = await gitSettings(url);
    const result = { code: 0, stdout: "", stderr: "", isStored: false };
    expect(await gitCredential(user.home, settings, operation, login(url, user.token))).toEqual(result);
    expect((await user.run(["token", url])).stdout).toBe(`${user.token}\n`);
  });

  it.for([
    ["help", "", false],
    ["docs/tokens.md", "", false],
    ["help", / +helper =\n/, true],
  ] as const)("passes the token on to other helpers by the lines of %s without %s: %s", async (row, { url, user }) => {
    const [page, omitted, isStored] = row;
    const settings = await gitSettings(url, { page, omitted });
    expect(await gitCredential(user.home, settings, "approve", login(url, user.token))).toMatchObject({ isStored });
  });
});
