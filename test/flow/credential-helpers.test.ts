import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { shellWord } from "../../src/redact.js";
import { BIN, cleanEnv, collect, startProcesses, temporaryFolder } from "../helpers/cli.js";
import { type Desk, type Newcomer, startDesk } from "./support.js";

startProcesses();

let desk: Desk;
let me: Newcomer;
let url: string;
let token: string;

beforeAll(async () => {
  desk = await startDesk();
  url = desk.url;
});
afterAll(() => desk.close());
beforeEach(async () => {
  me = desk.newcomer();
  token = (await me.signIn()).stdout.trim();
});

/** Runs git's own credential machinery with the program as its only helper, and no settings but these. */
async function gitCredential(operation: string, stdin: string) {
  const words = [process.execPath, BIN, "token", url, "--format", "git"].map(shellWord).join(" ");
  const env = cleanEnv({
    HOME: temporaryFolder(),
    AGENTAUTH_HOME: me.home,
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
  it("gets the token for its server", async () => {
    const { code, stdout } = await gitCredential("fill", attributes(url));
    expect(code).toBe(0);
    const lines = stdout.split("\n");
    const asPassword = lines.includes("username=agentauth") && lines.includes(`password=${token}`);
    const asToken = lines.includes("authtype=Bearer") && lines.includes(`credential=${token}`);
    expect(asPassword || asToken).toBe(true);
  });

  it("gets nothing for another server, and the program says nothing", async () => {
    const { code, stdout, stderr } = await gitCredential("fill", attributes("https://evil.example/"));
    expect([code, stdout]).toEqual([128, ""]);
    expect(stderr).not.toContain(token);
    expect(stderr).not.toMatch(/^(error|hint|warning):/m);
  });

  it.each(["approve", "reject"])("may %s what it got, which changes nothing", async (operation) => {
    const login = `${attributes(url).trimEnd()}\nusername=agentauth\npassword=${token}\n\n`;
    expect(await gitCredential(operation, login)).toEqual({ code: 0, stdout: "", stderr: "" });
    expect((await me.run(["token", url])).stdout).toBe(`${token}\n`);
  });
});

describe("the program as a credential helper", () => {
  const helper = (format: string, words: string[], stdin = "", env: Record<string, string> = {}) =>
    me.run(["token", url, "--format", format, ...words], { stdin, env });

  it("hands git the token as such where git knows what that is", async () => {
    const { code, stdout, stderr } = await helper("git", ["get"], `capability[]=authtype\n${attributes(url)}`);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^capability\[\]=authtype\nauthtype=Bearer\ncredential=\S+\npassword_expiry_utc=\d+\n$/);
    expect(stdout).toContain(`credential=${token}\n`);
  });

  it("hands bazel the headers for its server, and refuses another", async () => {
    const mine = await helper("bazel", ["get"], JSON.stringify({ uri: `${url}/x` }));
    expect(JSON.parse(mine.stdout)).toMatchObject({ headers: { Authorization: [`Bearer ${token}`] } });
    const other = await helper("bazel", ["get"], '{"uri":"https://evil.example/"}');
    expect([other.code, other.stdout]).toEqual([3, ""]);
    expect(other.stderr).toContain('"https://evil.example/"');
  });

  it("answers kubectl in the version that kubectl reads", async () => {
    const info = (version: string) => ({ KUBERNETES_EXEC_INFO: JSON.stringify({ apiVersion: version }) });
    const beta = await helper("k8s", [], "", info("client.authentication.k8s.io/v1beta1"));
    expect(JSON.parse(beta.stdout)).toMatchObject({
      apiVersion: "client.authentication.k8s.io/v1beta1",
      kind: "ExecCredential",
      status: { token },
    });
    const unknown = await helper("k8s", [], "", info("client.authentication.k8s.io/v9"));
    expect([unknown.code, unknown.stdout]).toEqual([2, ""]);
  });

  it.each([
    ["git", ["get"]],
    ["bazel", ["get"]],
    ["k8s", []],
    ["env", []],
    ["headers-json", []],
    ["json", []],
    ["header", []],
    ["raw", []],
  ])("%s prints nothing where nobody is signed in, and ends with 4", async (format, words) => {
    me = desk.newcomer();
    const stdin = format === "git" ? attributes(url) : format === "bazel" ? JSON.stringify({ uri: url }) : "";
    const { code, stdout, stderr } = await helper(format, words, stdin);
    expect([code, stdout]).toEqual([4, ""]);
    expect(stderr).toContain("agentauth login");
  });

  it.each([
    ["git", "list"],
    ["bazel", "list"],
    ["raw", "get"],
  ])("%s does not take %s for an operation", async (format, word) => {
    const { code, stdout } = await helper(format, [word]);
    expect([code, stdout]).toEqual([2, ""]);
  });
});
