import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { linesOf, type RunOptions, runCli, temporaryFolder } from "../../../helpers/cli.js";

let home: string;

beforeEach(() => {
  home = join(temporaryFolder(), "below", "home");
});

function run(args: readonly string[], options: RunOptions = {}) {
  return runCli(args, { ...options, env: { AGENTAUTH_HOME: home, ...options.env } });
}

async function set(key: string, value: string, ...more: string[]): Promise<void> {
  const { code, stderr } = await run(["config", "set", key, value, ...more]);
  if (code !== 0) throw new Error(stderr);
}

describe("profiles", () => {
  it("are made by a setting, listed, used and deleted with their token", async () => {
    await set("base_url", "https://staging.example", "--profile", "staging");
    await run(["config", "set", "api_token", "-", "--profile", "staging"], { stdin: "tok_0123456" });
    const names = async () => linesOf((await run(["profile", "list"])).stdout).map((line) => line.split("\t"));
    expect(await names()).toEqual([
      ["default", "true", "", "settings file"],
      ["staging", "false", "https://staging.example", ""],
    ]);
    for (const format of ["table", "csv"]) {
      expect((await run(["profile", "list", "-o", format])).stdout).toMatchSnapshot(format);
    }
    expect(await run(["profile", "use", "staging"])).toMatchObject({
      code: 0,
      stderr: "using profile staging from now on\n",
    });
    expect((await names()).map(([name, used]) => [name, used])).toEqual([
      ["default", "false"],
      ["staging", "true"],
    ]);
    expect((await run(["config", "get", "base_url"])).stdout).toBe("https://staging.example\n");
    const same = await run(["profile", "use", "staging"], { env: { AGENTAUTH_PROFILE: "staging" } });
    expect(same.stderr).toBe("using profile staging from now on\n");
    await run(["profile", "use", "staging"]);
    await set("pool", "p", "--profile", "other");
    expect((await run(["profile", "delete", "other"])).code).toBe(0);
    expect((await names()).map(([name, used]) => [name, used])).toEqual([
      ["default", "false"],
      ["staging", "true"],
    ]);
    expect((await run(["profile", "delete", "staging"])).code).toBe(0);
    expect(await names()).toEqual([["default", "true", "", "settings file"]]);
    expect(readdirSync(join(home, "tokens"))).toEqual([]);
  });

  it("that have nothing written down are not said to be deleted", async () => {
    expect(await run(["profile", "delete", "default"])).toMatchObject({
      code: 0,
      stderr: "profile default has no settings to delete\n",
    });
    await set("pool", "p");
    expect((await run(["profile", "delete", "default"])).stderr).toBe("profile default is deleted\n");
  });

  it("say which one is used, and why, also where it does not exist", async () => {
    await set("pool", "p", "--profile", "staging");
    const used = async (args: string[], env: Record<string, string> = {}) => {
      const { stdout, stderr } = await run(["profile", "list", "-o", "json", ...args], { env });
      const rows = JSON.parse(stdout) as { name: string; current: boolean; source?: string }[];
      return [rows.filter(({ current }) => current).map(({ name, source }) => `${name}: ${source}`), stderr];
    };
    expect(await used([])).toEqual([["default: settings file"], ""]);
    expect(await used([], { AGENTAUTH_PROFILE: "staging" })).toEqual([["staging: AGENTAUTH_PROFILE"], ""]);
    expect(await used(["--profile", "staging"])).toEqual([["staging: --profile"], ""]);
    expect(await used([], { AGENTAUTH_PROFILE: "stagin" })).toEqual([
      [],
      'warning: AGENTAUTH_PROFILE names the profile "stagin", which does not exist\n',
    ]);
  });

  it("that do not exist are reported with those that do", async () => {
    await set("base_url", "https://staging.example", "--profile", "staging");
    expect(await run(["profile", "use", "stagin"])).toMatchObject({
      code: 2,
      stderr: 'error: unknown profile "stagin"\nhint: did you mean staging?\n',
    });
    expect(await run(["profile", "delete", "zzz"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("hint: profiles: default, staging"),
    });
  });

  it("sandbox stands for the running one and takes no settings", async () => {
    const { code, stderr } = await run(["config", "set", "pool", "p", "--profile", "sandbox"]);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining("the profile sandbox is reserved for the running sandbox"),
    ]);
    expect(await run(["profile", "use", "sandbox"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("hint: --profile sandbox uses it in one command"),
    });
    expect(await run(["devices", "list", "--profile", "sandbox"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("no sandbox is running\nhint: agentauth sandbox start"),
    });
  });

  it("that are used are not, while AGENTAUTH_PROFILE names another one, which is said", async () => {
    await set("pool", "p", "--profile", "staging");
    const { code, stderr } = await run(["profile", "use", "default"], { env: { AGENTAUTH_PROFILE: "staging" } });
    expect([code, stderr]).toEqual([
      0,
      'using profile default from now on\nwarning: AGENTAUTH_PROFILE is set to "staging" and takes precedence\n',
    ]);
  });

  it("are listed in the format of the default profile, through jq, and not in one that is none", async () => {
    await set("output", "json");
    expect(JSON.parse((await run(["profile", "list"])).stdout)).toMatchObject([{ name: "default", current: true }]);
    expect((await run(["profile", "list", "--jq", ".[0].name"])).stdout).toBe("default\n");
    const { code, stdout, stderr } = await run(["profile", "list", "-o", "jsn"]);
    expect([code, stdout, stderr]).toEqual([2, "", expect.stringContaining("did you mean json?")]);
  });

  it("cannot be listed, used or deleted where the settings file is broken", async () => {
    mkdirSync(home, { recursive: true });
    writeFileSync(join(home, "config.json"), "{");
    for (const args of [["list"], ["use", "x"], ["delete", "x"]]) {
      const { code, stdout, stderr } = await run(["profile", ...args]);
      expect([code, stdout, stderr]).toEqual([2, "", expect.stringContaining("is not valid JSON")]);
    }
  });
});
