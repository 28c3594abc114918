import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "redis";
import { describe, expect } from "vitest";
import { grantStore } from "../../../../src/store/driver/grant-store.js";
import { redisDriver } from "../../../../src/store/redis/redis-driver.js";
import { keyRing } from "../../../../src/store/seal/key-ring.js";
import { flowTest, LOGIN_FLAGS } from "../../../flow/support.js";
import { collect, runCli, runProcess, startProcess, temporaryFolder } from "../../../helpers/cli.js";
import { madeGrant } from "../../../helpers/grant.js";
import { HAS_REDIS, startRedis } from "../../../helpers/redis-server.js";
import { until } from "../../../helpers/server.js";

const it = flowTest()
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
  .extend("redis", { scope: "file" }, async ({}, { onCleanup }) => {
    const redis = await startRedis(["--requirepass", "Tr0ub4dor"]);
    onCleanup(() => redis.close());
    return redis;
  })
  /** The environment of a machine of a fleet: a folder of its own, the engine, and the keys of all. */
  .extend("machine", ({ redis }) => async (database: number) => {
    const home = temporaryFolder();
    const path = join(home, "keys.json");
    await runCli(["store", "keys", path], { env: { AGENTAUTH_HOME: home } });
    const address = `redis://:Tr0ub4dor@127.0.0.1:${redis.port}/${database}`;
    const env = { AGENTAUTH_STORE: "redis", AGENTAUTH_STORE_URL: address, AGENTAUTH_STORE_KEYS: `file:${path}` };
    const run = (args: readonly string[], more: Record<string, string> = {}) =>
      runProcess(args, { env: { AGENTAUTH_HOME: temporaryFolder(), ...env, ...more } });
    return { env, path, run, home };
  });

describe.skipIf(!HAS_REDIS)("the command line over Redis (needs redis-server)", () => {
  it("saves, before it exits, tokens that came while the engine was down", async ({
    url,
    me,
    machine,
    redis,
    faults,
  }) => {
    const { env, run } = await machine(9);
    expect((await me.run(["token", url, ...LOGIN_FLAGS], { env })).code).toBe(0);
    faults.add({ kind: "slow-headers", ms: 1000, path: "token", times: 1 });
    const refresh = startProcess(["token", url, "--force-refresh", "-v"], {
      env: { AGENTAUTH_HOME: temporaryFolder(), ...env },
    });
    const err = collect(refresh.stderr);
    const out = collect(refresh.stdout);
    await until(() => err().includes("refreshing the token"));
    await redis.kill("SIGKILL");
    await until(() => err().includes("Saving a refreshed token"));
    await redis.restart();
    await once(refresh, "close");
    expect([refresh.exitCode, out()]).toEqual([8, ""]);
    expect(err()).toContain("cannot be stored");
    faults.clear();
    // The sandbox would take a second use of the old refresh token for theft.
    const next = await run(["token", url, "--force-refresh"]);
    expect([next.code, next.stderr]).toEqual([0, ""]);
  });

  it("shows what a program has stored for one of its users", async ({ machine, redis }) => {
    const { path, run } = await machine(8);
    const { current, keys, name_key: nameKey } = JSON.parse(readFileSync(path, "utf8"));
    const client = createClient({ socket: { port: redis.port }, password: "Tr0ub4dor", database: 8 });
    await client.connect();
    const store = grantStore(redisDriver({ client }), { seal: keyRing({ current, keys, nameKey }), tenant: "acme" });
    await store.save(madeGrant({ profile: "ann@acme" }), undefined);
    const retired = { at: Date.now(), reason: "the issuer refused to refresh it: invalid_grant" };
    await store.save(madeGrant({ profile: "bob@acme", retired }), undefined);
    client.destroy();
    const all = await run(["status", "--all", "--tenant", "acme"]);
    expect(all).toMatchObject({ code: 0, stdout: expect.stringContaining("ann@acme") });
    expect(all.stderr).toContain("log in again at https://mcp.example/mcp: the issuer rejected the login");
    const lists: [string[], number][] = [
      [["--tenant", "acme"], 2],
      [["--tenant", "acme", "--profile", "ann@acme"], 1],
      [["--tenant", "acme", "--needs-login"], 1],
      [[], 0],
    ];
    for (const [args, count] of lists) {
      const { code, stdout } = await run(["store", "logins", "--json", ...args]);
      expect([code, JSON.parse(stdout).length, stdout.includes("token-1")]).toEqual([0, count, false]);
    }
    expect(await run(["status", "--all", "--json"])).toMatchObject({ code: 4, stdout: "[]\n" });
    for (const args of [["--tenant", "acme"], []]) {
      const { stdout } = await run(["status", "--profile", "ann@acme", "--json", ...args]);
      expect(JSON.parse(stdout)).toHaveLength(args.length / 2);
    }
  });

  it("serves a login to a second process on another machine, until it logs out", async ({ url, me, machine }) => {
    const { env, run } = await machine(0);
    const first = await me.run(["token", url, ...LOGIN_FLAGS], { env });
    expect([first.code, first.stderr.includes("Tr0ub4dor")]).toEqual([0, false]);
    const second = await run(["token", url]);
    expect([second.code, second.stdout]).toEqual([0, first.stdout]);
    const status = await run(["status", "--json"]);
    expect(JSON.parse(status.stdout)).toMatchObject([{ state: "valid" }]);
    expect(status.stdout + status.stderr).not.toContain("Tr0ub4dor");
    const doctor = await run(["doctor", "--json"]);
    expect(doctor.code).toBe(0);
    const checks = JSON.parse(doctor.stdout).checks as { name: string; state: string; found: string }[];
    const found = (name: string) => checks.find((check) => check.name === name);
    expect(found("store")?.found).toMatch(/^redis \(AGENTAUTH_STORE\): 1 login of profile "default", in redis at 127/);
    expect(found("engine")).toMatchObject({ state: "ok" });
    expect(doctor.stdout).not.toContain("Tr0ub4dor");
    expect((await run(["logout", url])).code).toBe(0);
    expect((await run(["status"])).code).toBe(4);
  });

  it("seals everything with the new key of the ring, and says which keys are in use", async ({ url, me, machine }) => {
    const { env, path, run } = await machine(2);
    await me.run(["token", url, ...LOGIN_FLAGS], { env });
    const ring = JSON.parse(readFileSync(path, "utf8"));
    const second = JSON.parse((await runCli(["store", "keys"])).stdout).keys.k1;
    writeFileSync(path, JSON.stringify({ ...ring, current: "k2", keys: { ...ring.keys, k2: second } }));
    const health = JSON.parse((await run(["store", "health", "--json"])).stdout);
    expect(health).toMatchObject({ usable: true, current_key: "k2", keys_in_use: [{ key: "k1" }] });
    const resealed = await run(["store", "reseal", "--json"]);
    expect(JSON.parse(resealed.stdout)).toMatchObject({ resealed: 2, current: 0, unusable: 0 });
    writeFileSync(path, JSON.stringify({ ...ring, current: "k2", keys: { k2: second } }));
    expect((await run(["token", url])).code).toBe(0);
    writeFileSync(path, JSON.stringify(ring));
    const foreign = await run(["store", "health", "--json"]);
    expect(foreign.code).toBe(8);
    expect(JSON.parse(foreign.stdout)).toMatchObject({ usable: false });
    expect(foreign.stderr).toContain('sealed with the key "k2", which store_keys does not have');
  });

  it("refuses an engine that evicts logins, and reports one that is gone", async ({ url, machine }) => {
    const evicting = await startRedis(["--maxmemory-policy", "allkeys-lru"]);
    const { run } = await machine(0);
    const at = { AGENTAUTH_STORE_URL: `redis://127.0.0.1:${evicting.port}/0` };
    const health = await run(["store", "health", "--json"], at);
    expect(health.code).toBe(8);
    expect(JSON.parse(health.stdout)).toMatchObject({ usable: false });
    expect(health.stderr).toContain("maxmemory-policy is allkeys-lru");
    await evicting.kill("SIGKILL");
    for (const args of [["store", "health"], ["status"], ["token", url], ["doctor"]]) {
      const gone = await run(args, at);
      expect([args[0], gone.code]).toEqual([args[0], 5]);
      expect(gone.stdout + gone.stderr).toContain(`127.0.0.1:${evicting.port}/0`);
    }
  });
});
