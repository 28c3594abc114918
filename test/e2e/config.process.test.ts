import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { configTest } from "../cli/commands/config/support.js";
import { runProcess, temporaryFolder } from "../helpers/cli.js";

const it = configTest(runProcess);

describe("settings that are changed at once", () => {
  it("are all stored, by 20 processes in two profiles while another one selects a profile", {
    timeout: 120_000,
  }, async ({ home, run, set }) => {
    const keys = [
      ...["account", "domain", "pool", "base_url", "auth_header", "output", "store", "client_cert", "client_key"],
    ];
    const values = { base_url: "https://x.example", auth_header: "X-Key", output: "json", store: "file" } as const;
    const wanted = (key: string) => (values as Record<string, string>)[key] ?? `/${key}`;
    await set("pool", "p", "--profile", "b");
    const sets = ["a", "b"].flatMap((profile) =>
      keys.map((key) => run(["config", "set", key, wanted(key), "--profile", profile])),
    );
    const others = [run(["profile", "use", "b"]), run(["config", "unset", "store_fallback"])];
    const ended = await Promise.all([...sets, ...others]);
    expect(ended.map(({ code, stderr }) => [code, /error|warning/.exec(stderr)?.[0]])).toEqual(
      ended.map(() => [0, undefined]),
    );
    const whole = Object.fromEntries(keys.map((key) => [key, wanted(key)]));
    const written = JSON.parse(readFileSync(join(home, "config.json"), "utf8")) as unknown;
    expect(written).toEqual({ schema: 1, profile: "b", profiles: { a: whole, b: whole } });
    expect(readdirSync(join(home, "claims"))).toEqual([]);
  });
});

describe("in a working folder", () => {
  it("a relative AGENTAUTH_HOME is refused", async ({ run }) => {
    const { code, stdout, stderr } = await run(["config", "path"], { env: { AGENTAUTH_HOME: "relative" }, cwd: "/" });
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain('AGENTAUTH_HOME is "relative"');
  });

  it("a relative path of a token file is stored as an absolute one, which works in every other folder", async ({
    testbed,
    home,
    run,
    set,
  }) => {
    const { apiToken, baseUrl, ids } = testbed.sandbox;
    await set("base_url", baseUrl);
    const folder = temporaryFolder();
    writeFileSync(join(folder, "token.txt"), apiToken, { mode: 0o600 });
    expect((await run(["config", "set", "api_token", "file:token.txt"], { cwd: folder })).code).toBe(0);
    const { profiles } = JSON.parse(readFileSync(join(home, "config.json"), "utf8"));
    expect(profiles.default.api_token).toBe(`file:${join(folder, "token.txt")}`);
    expect((await run(["devices", "list", "--pool", ids.pool, "-o", "id"], { cwd: "/" })).code).toBe(0);
  });
});
