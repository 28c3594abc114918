import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect } from "vitest";
import { shellWord } from "../../src/redact.js";
import { BIN, cleanEnv, collect, temporaryFolder } from "../helpers/cli.js";
import { flowTest } from "./support.js";

const it = flowTest();

/** Runs git's own credential machinery with the program as its only helper, and no settings but these. */
async function gitCredential(home: string, url: string, operation: string, stdin: string) {
  const words = [process.execPath, BIN, "token", url, "--format", "git"].map(shellWord).join(" ");
  const env = cleanEnv({
    HOME: temporaryFolder(),
    AGENTAUTH_HOME: home,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_TERMINAL_PROMPT: "0",
  });
  const args = ["-c", "credential.helper=", "-c", `credential.helper=!${words}`, "credential", operation];
  const child = spawn("git", args, { cwd: temporaryFolder(), env, stdio: "pipe" });
  const [out, err] = [collect(child.stdout), collect(child.stderr)];
  child.stdin.end(stdin);
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout: out(), stderr: err() };
}

const attributes = (address: string) => {
  const { protocol, host } = new URL(address);
  return `protocol=${protocol.slice(0, -1)}\nhost=${host}\n\n`;
};

describe("git with the program as its credential helper", () => {
  it("gets the token for its server", async ({ url, user }) => {
    const { code, stdout } = await gitCredential(user.home, url, "fill", attributes(url));
    expect(code).toBe(0);
    const lines = stdout.split("\n");
    const asPassword = lines.includes("username=agentauth") && lines.includes(`password=${user.token}`);
    const asToken = lines.includes("authtype=Bearer") && lines.includes(`credential=${user.token}`);
    expect(asPassword || asToken).toBe(true);
  });

  it("gets nothing for another server, and the program says nothing", async ({ url, user }) => {
    const { code, stdout, stderr } = await gitCredential(user.home, url, "fill", attributes("https://evil.example/"));
    expect([code, stdout]).toEqual([128, ""]);
    expect(stderr).not.toContain(user.token);
    expect(stderr).not.toMatch(/^(error|hint|warning):/m);
  });

  it.for(["approve", "reject"])("may %s what it got, which changes nothing", async (operation, { url, user }) => {
    const login = `${attributes(url).trimEnd()}\nusername=agentauth\npassword=${user.token}\n\n`;
    expect(await gitCredential(user.home, url, operation, login)).toEqual({ code: 0, stdout: "", stderr: "" });
    expect((await user.run(["token", url])).stdout).toBe(`${user.token}\n`);
  });
});
