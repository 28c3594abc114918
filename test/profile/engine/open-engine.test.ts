import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { findPackage } from "../../../src/profile/engine/engine.js";
import { newKeys } from "../../../src/profile/store-keys.js";
import { runCli, temporaryFolder } from "../../helpers/cli.js";

const PASSWORD = "s3cret-Passw0rd";
const KEY = Buffer.alloc(32, 7).toString("base64url");
const SHORT = Buffer.alloc(16, 7).toString("base64url");
const ring = (over: object = {}) => JSON.stringify({ current: "k1", keys: { k1: KEY }, name_key: KEY, ...over });
// Nothing listens there: no test here gets so far.
const URL_OF = { redis: `redis://:${PASSWORD}@127.0.0.1:1/0`, postgres: `postgres://u:${PASSWORD}@127.0.0.1:1/db` };

async function run(env: Record<string, string>, args: readonly string[] = ["status"]) {
  const home = temporaryFolder();
  const given = { AGENTAUTH_HOME: home, AGENTAUTH_STORE: "redis", AGENTAUTH_STORE_KEYS: ring(), ...env };
  const result = await runCli(args, { env: given });
  for (const secret of [PASSWORD, KEY, SHORT]) expect(result.stdout + result.stderr).not.toContain(secret);
  return { ...result, home };
}

describe("a store in an engine", () => {
  it.each<[string, Record<string, string>, string]>([
    ["no address", {}, "the store redis needs the address of the engine, and store_url is not set"],
    ["no keys", { AGENTAUTH_STORE_URL: URL_OF.redis, AGENTAUTH_STORE_KEYS: "" }, "the store redis needs a key ring"],
    [
      "another scheme",
      { AGENTAUTH_STORE_URL: `http://:${PASSWORD}@127.0.0.1/0` },
      'store_url (AGENTAUTH_STORE_URL) begins with "http:": the store redis needs redis: or rediss:',
    ],
    [
      "the scheme of the other engine",
      { AGENTAUTH_STORE: "postgres", AGENTAUTH_STORE_URL: URL_OF.redis },
      'begins with "redis:": the store postgres needs postgres: or postgresql:',
    ],
    ["no address at all", { AGENTAUTH_STORE_URL: `:${PASSWORD}@host` }, "is not an address"],
    ["a path", { AGENTAUTH_STORE_URL: `${URL_OF.redis}a` }, "has a path that is no number of a database"],
    ["a variable that is not set", { AGENTAUTH_STORE_URL: "env:NOT_SET" }, "the environment variable NOT_SET"],
    ["a key of another length", keys(ring({ keys: { k1: SHORT } })), "keys.k1 must have 32 bytes"],
    ["a name key of another length", keys(ring({ name_key: SHORT })), "name_key must have 32 bytes"],
  ])("is refused with %s", async (_what, env, message) => {
    const { code, stdout, stderr } = await run(env);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(message);
  });

  it("reads its secrets from private files alone", async () => {
    const folder = temporaryFolder();
    const path = join(folder, "keys.json");
    writeFileSync(path, newKeys(), { mode: 0o600 });
    chmodSync(path, 0o644);
    const env = { AGENTAUTH_STORE_URL: URL_OF.redis, AGENTAUTH_STORE_KEYS: `file:${path}` };
    const { code, stderr } = await run(env);
    expect(code).toBe(8);
    expect(stderr).toContain(`chmod 600 ${path}`);
  });

  it("that does not answer is unavailable, and its address is shown without the password", async () => {
    for (const [kind, at] of [
      ["redis", "127.0.0.1:1/0"],
      ["postgres", "127.0.0.1:1, database db"],
    ] as const) {
      const { code, stderr } = await run({ AGENTAUTH_STORE: kind, AGENTAUTH_STORE_URL: URL_OF[kind] });
      expect(code).toBe(5);
      expect(stderr).toContain(at);
      const doctor = await run({ AGENTAUTH_STORE: kind, AGENTAUTH_STORE_URL: URL_OF[kind] }, ["doctor", "--json"]);
      expect(doctor.code).toBe(5);
      const { checks } = JSON.parse(doctor.stdout) as { checks: { name: string; state: string }[] };
      expect(checks.find(({ name }) => name === "engine")).toMatchObject({ state: "failed" });
    }
  });

  it("takes its secrets from the profile, which names them", async () => {
    const home = temporaryFolder();
    const set = (...args: string[]) => runCli(["config", "set", ...args], { env: { AGENTAUTH_HOME: home } });
    const refused = await set("store_url", URL_OF.redis);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("store_url must be env:NAME, file:PATH or exec:COMMAND, never the address itself");
    expect(refused.stderr).not.toContain(PASSWORD);
    const refusedKeys = await set("store_keys", ring());
    expect(refusedKeys.code).toBe(2);
    expect(refusedKeys.stderr).not.toContain(KEY);
    for (const [key, value] of [
      ["store", "redis"],
      ["store_url", "env:MY_URL"],
      ["store_keys", "env:MY_KEYS"],
    ] as const)
      expect((await set(key, value)).code).toBe(0);
    const env = { AGENTAUTH_HOME: home, MY_URL: URL_OF.redis, MY_KEYS: ring() };
    const { code, stderr } = await runCli(["status"], { env });
    expect([code, stderr.includes("127.0.0.1:1/0"), stderr.includes(PASSWORD)]).toEqual([5, true, false]);
    const list = await runCli(["config", "list", "--json"], { env: { ...env, AGENTAUTH_STORE_KEYS: ring() } });
    expect(JSON.parse(list.stdout)).toEqual(
      expect.arrayContaining([
        { key: "store_url", value: "env:MY_URL", source: expect.stringMatching(/^profile default: line \d+ of /) },
        { key: "store_keys", value: "(set)", source: "AGENTAUTH_STORE_KEYS" },
      ]),
    );
  });

  it("takes neither address nor keys from the command line", async () => {
    for (const flag of ["--store-url", "--store-keys"]) {
      const { code, stderr } = await run({}, ["status", `${flag}=${URL_OF.redis}`]);
      expect(code).toBe(2);
      expect(stderr).toContain("a secret must not be on the command line");
    }
  });
});

describe("the client package of an engine", () => {
  it("is named with the command that installs it, if there is none", () => {
    const home = temporaryFolder();
    const beside = pathToFileURL(join(home, "cli.js")).href;
    expect(() => findPackage("redis", beside)).toThrow(
      expect.objectContaining({
        code: "usage",
        message: "the store redis needs a client package, and none of redis, ioredis, iovalkey is installed",
        hint: "npm install redis (add --global if agentauth is installed globally)",
      }),
    );
    expect(() => findPackage("postgres", beside)).toThrow(/none of pg, postgres is installed/);
  });

  it("is the first that is found beside the program", () => {
    expect(findPackage("redis").name).toBe("redis");
    expect(findPackage("postgres").name).toBe("pg");
  });
});

it("the commands of an engine name the store that has none", async () => {
  for (const verb of ["health", "reseal"]) {
    const { code, stderr } = await run({ AGENTAUTH_STORE: "file" }, ["store", verb]);
    expect(code).toBe(2);
    expect(stderr).toContain("the store is file (AGENTAUTH_STORE)");
  }
});

function keys(text: string): Record<string, string> {
  return { AGENTAUTH_STORE_URL: URL_OF.redis, AGENTAUTH_STORE_KEYS: text };
}
