import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { writeSandboxState } from "../../../../src/profile/settings-file.js";
import { fileStore } from "../../../../src/store/file/file.js";
import { linesOf, runCli, temporaryFolder } from "../../../helpers/cli.js";
import { madeGrant } from "../../../helpers/grant.js";
import { prepare, SERVER } from "./support.js";

const home = temporaryFolder();
const env = { HOME: home, AGENTAUTH_HOME: join(home, "settings") };

const STAGING = "https://staging.example/mcp";
beforeAll(async () => {
  await prepare(env);
  const grant = madeGrant({ profile: "staging", account: "ann", server: STAGING, resource: STAGING });
  await fileStore(env.AGENTAUTH_HOME).save(grant, undefined);
});

/** The answer to the scripts for words of which the last one is to be completed. */
async function offered(...words: string[]) {
  const { code, stdout, stderr } = await runCli(["complete", "--", ...words], { env });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const lines = linesOf(stdout);
  return { values: lines.slice(0, -1).map((line) => line.split("\t")[0]), end: lines.at(-1) };
}

describe("agentauth complete", () => {
  it.each<[string, string[], string[]]>([
    ["a command", ["dev"], ["devices"]],
    ["a verb", ["devices", "l"], ["list"]],
    ["a flag of the command", ["devices", "list", "--page"], ["--page-size"]],
    ["a flag that every command has", ["devices", "list", "--prof"], ["--profile"]],
    [
      "a flag after another one",
      ["devices", "list", "--json", "--output=json", "-ojson", "--seen-a"],
      ["--seen-after"],
    ],
    ["a flag before the command", ["--prof"], ["--profile"]],
    ["a choice", ["devices", "list", "-o", "nd"], ["ndjson"]],
    ["a choice in the same word", ["devices", "list", "--output=nd"], ["ndjson"]],
    ["a choice of an operand", ["completion", "b"], ["bash"]],
    ["a profile", ["devices", "list", "--profile", ""], ["default", "staging"]],
    ["an account", ["domains", "list", "--account", ""], ["acc_1"]],
    ["a domain", ["pools", "list", "--domain", ""], ["dom_1"]],
    ["a pool", ["devices", "list", "--pool", "pool"], ["pool_staging"]],
    [
      "a field of a device",
      ["devices", "list", "--columns", "last_seen.c"],
      ["last_seen.city", "last_seen.country_code"],
    ],
    ["a field after others", ["devices", "list", "--columns=id,sess"], ["id,session_type"]],
    ["a field to sort by", ["devices", "list", "--sort", "l"], ["last_seen"]],
    ["a documented value", ["devices", "list", "--session-type", ""], ["browser", "api", "mcp"]],
    ["a setting", ["config", "set", "base"], ["base_url"]],
    ["a profile to use", ["profile", "use", "st"], ["staging"]],
    ["a server with a login", ["token", ""], [SERVER]],
    ["the same after a flag", ["token", "--force-refresh", ""], [SERVER]],
    ["a topic of the help", ["help", "exit"], ["exit-codes"]],
    ["of the help no command that is for shells", ["help", "comp"], ["completion"]],
    ["a type of output", ["schema", "rep"], ["report"]],
    ["a host", ["mcp", "config", "claude-c"], ["claude-code"]],
    ["a profile to delete", ["profile", "delete", ""], ["default", "staging"]],
    ["a setting to get", ["config", "get", "store_t"], ["store_takeover", "store_tenant"]],
    ["a browser that is none", ["login", SERVER, "--browser", ""], ["none"]],
    ["a method", ["api", ""], ["GET"]],
    ["a host to add to", ["mcp", "add", "claude-c"], ["claude-code"]],
    ["a host to remove from", ["mcp", "remove", "claude-c"], ["claude-code"]],
    ["a documented status", ["devices", "report", "--status", "act"], ["active"]],
    ["no documented value of pools", ["pools", "list", "--sort", ""], []],
    ["a field of a pool", ["pools", "list", "--columns", "sta"], ["status"]],
    ["the logins of a profile", ["token", "--profile", "staging", ""], [STAGING]],
    ["the accounts of a profile", ["token", "--profile", "staging", "--account-hint", ""], ["ann"]],
    ["no account where none is named", ["token", "--account-hint", ""], []],
    ["a field after others, in the next word", ["devices", "list", "--columns", "id,sess"], ["id,session_type"]],
    ["no logins of a profile that is none", ["token", "--profile", "nope", ""], []],
    ["a flag of the program alone", ["--vers"], ["--version"]],
    ["nothing for what is no command", ["nonsense", ""], []],
  ])("offers %s", async (_what, words, values) => {
    expect(await offered(...words)).toEqual({ values, end: ":4" });
  });

  it("offers short and long flags after a dash", async () => {
    const { values } = await offered("devices", "list", "-");
    expect(values).toEqual(expect.arrayContaining(["-o", "--output", "-q", "--quiet"]));
    expect(new Set(values).size).toBe(values.length);
  });

  it("leaves files to the shell where one is meant", async () => {
    expect(await offered("token", "--ca-file", "")).toEqual({ values: [], end: ":0" });
    expect(await offered("exec", SERVER, "--", "ls", "")).toEqual({ values: [], end: ":0" });
  });

  it("is silent where settings and logins cannot be read, and still knows the commands", async () => {
    const broken = temporaryFolder();
    writeFileSync(join(broken, "config.json"), "{");
    const { code, stdout, stderr } = await runCli(["complete", "--", "token", "--form"], {
      env: { AGENTAUTH_HOME: broken, AGENTAUTH_STORE: "nonsense", AGENTAUTH_AGENT: "1" },
    });
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: "--format\tOutput format (default: raw)\n:4\n",
      stderr: "",
    });
  });

  it("says what each flag is", async () => {
    const { stdout } = await runCli(["complete", "--", "introspect", "--account"], { env });
    expect(stdout).toBe("--account-hint\tAccount to use, if several are logged in at the server\n:4\n");
  });

  it("offers what the running sandbox has, and leaves the console as it was", async () => {
    const before = { ...console };
    const own = { AGENTAUTH_HOME: temporaryFolder() };
    const state = { pid: process.pid, base_url: "http://127.0.0.1:1", api_token: "t", control_token: "c" };
    const ids = { account_id: "acc_s", domain_id: "dom_s", pool_id: "pool_s", mcp_url: "http://127.0.0.1:1/mcp" };
    writeSandboxState(own.AGENTAUTH_HOME, { ...state, ...ids });
    const first = async (...words: string[]) =>
      (await runCli(["complete", "--", ...words, ""], { env: own })).stdout.replace(/\t\n:4\n$/, "");
    expect(await first("domains", "list", "--account")).toBe("acc_s");
    expect(await first("pools", "list", "--domain")).toBe("dom_s");
    expect(await first("devices", "list", "--pool")).toBe("pool_s");
    expect(await first("token")).toBe("http://127.0.0.1:1/mcp");
    expect(await first("status", "--profile")).toContain("sandbox");
    expect({ ...console }).toEqual(before);
  });

  it("opens no keychain", async () => {
    const { stdout } = await runCli(["complete", "--", "token", ""], { env: { ...env, AGENTAUTH_STORE: "keyring" } });
    expect(stdout).toBe(":4\n");
  });
});

// The tests in test/e2e run those of bash, zsh and fish.
it.each(["bash", "zsh", "fish", "powershell"])("has a script for %s, which calls the program", async (shell) => {
  const { code, stdout, stderr } = await runCli(["completion", shell]);
  expect([code, stderr, stdout.endsWith("\n")]).toEqual([0, "", true]);
  expect(stdout).toMatch(/\bagentauth complete -- /);
});

it("has a script for PowerShell as it was approved, and none for an unknown shell", async () => {
  const { stdout } = await runCli(["completion", "powershell"]);
  expect(stdout).toMatchSnapshot();
  // What was typed must not run: the comment names how the user loads the script, and no other line evaluates.
  const lines = stdout.split("\n").filter((line) => !line.trimStart().startsWith("#"));
  expect(lines.filter((line) => /Invoke-Expression|\biex\b|ScriptBlock\]::Create|ExpandString/i.test(line))).toEqual(
    [],
  );
  const { code, stderr } = await runCli(["completion", "bsh"]);
  expect(code).toBe(2);
  expect(stderr).toContain("hint: did you mean bash?");
});
