import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runLogins } from "../../../../src/cli/commands/store/keep-alive.js";
import { fileStore } from "../../../../src/store/file/file.js";
import { runCli, temporaryFolder } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { madeClient, madeGrant } from "../../../helpers/grant.js";
import { startRun } from "../../run-support.js";

const FORM = "http://127.0.0.1/callback";
const BINDING = {
  profile: "work",
  clientId: "my-service",
  issuer: "https://as.example/pool",
  boundBy: "issuer",
  boundAt: 1_700_000_000_000,
} as const;

/** A home with a key ring. */
async function madeHome() {
  const home = temporaryFolder();
  const keys = join(home, "keys.json");
  const made = await runCli(["store", "keys", keys], { env: { AGENTAUTH_HOME: home } });
  expect(made.code).toBe(0);
  return { home, keys };
}

/** Runs a command over the files of a home. */
function over(home: string, keys: string) {
  return (args: readonly string[], env: Record<string, string> = {}) =>
    runCli(args, { env: { AGENTAUTH_HOME: home, AGENTAUTH_STORE_KEYS: `file:${keys}`, ...env } });
}

async function filled(home: string) {
  const store = fileStore(home);
  await store.save(madeGrant({ generation: 3 }), undefined);
  await store.save(madeGrant({ profile: "work", account: "ann", server: "https://other.example/mcp" }), undefined);
  await store.saveClient(madeClient(), FORM);
  await store.saveBinding(BINDING, undefined);
  return store;
}

describe("store keys", () => {
  it("writes a new key ring that only its owner can read, and replaces none", async () => {
    const { home, keys } = await madeHome();
    expect(statSync(keys).mode & 0o777).toBe(0o600);
    const ring = JSON.parse(readFileSync(keys, "utf8"));
    expect(ring).toEqual({ current: "k1", keys: { k1: expect.any(String) }, name_key: expect.any(String) });
    const again = await runCli(["store", "keys", keys], { env: { AGENTAUTH_HOME: home } });
    expect([again.code, again.stdout]).toEqual([2, ""]);
    expect(again.stderr).toBe(`error: the file ${keys} exists already\nhint: name another one, or move it away\n`);
    const made = await runCli(["store", "keys", join(home, "more.json")], { env: { AGENTAUTH_HOME: home } });
    expect([made.stdout, fixedText(made.stderr)]).toEqual([
      "",
      "the key ring is in <folder>/more.json; to use it: export AGENTAUTH_STORE_KEYS=file:<folder>/more.json\n",
    ]);
    expect(JSON.parse(readFileSync(keys, "utf8"))).toEqual(ring);
  });

  it("prints one without a path", async () => {
    const [one, other] = [await runCli(["store", "keys"]), await runCli(["store", "keys"])];
    expect(Buffer.from(JSON.parse(one.stdout).keys.k1, "base64url")).toHaveLength(32);
    expect(one.stdout).not.toBe(other.stdout);
  });
});

describe("store sql", () => {
  it("prints the SQL of the tables, whatever the store is", async () => {
    const { code, stdout } = await runCli(["store", "sql"]);
    expect(code).toBe(0);
    expect(stdout).toContain("CREATE TABLE IF NOT EXISTS");
  });
});

describe("store health", () => {
  it.each([
    ["redis", "the store redis needs the address of the engine"],
    ["postgres", "the store postgres needs the address of the engine"],
    ["file", "this command is about the stores redis and postgres, and the store is file (AGENTAUTH_STORE)"],
  ])("asks an engine alone: %s", async (store, message) => {
    const { code, stderr } = await runCli(["store", "health"], { env: { AGENTAUTH_STORE: store } });
    expect([code, stderr]).toEqual([2, expect.stringContaining(`error: ${message}`)]);
    expect(fixedText(stderr)).toMatchSnapshot();
  });
});

describe("store logins", () => {
  const lines = (text: string) => text.split("\n").filter((line) => line !== "");

  it("lists each login in every format, with none of its tokens", async () => {
    const { home, keys } = await madeHome();
    await filled(home);
    const run = over(home, keys);
    for (const format of ["table", "wide", "plain", "json", "ndjson", "csv"]) {
      const { code, stdout } = await run(["store", "logins", "-o", format]);
      expect([format, code]).toEqual([format, 0]);
      for (const server of ["https://mcp.example/mcp", "https://other.example/mcp"]) expect(stdout).toContain(server);
      expect(stdout).not.toMatch(/token-1|secret-1/);
    }
    for (const format of ["wide", "csv"]) {
      const { stdout } = await run(["store", "logins", "-o", format, "--limit", "1"]);
      expect(stdout).toMatchSnapshot(format);
    }
    expect((await run(["store", "logins", "-o", "table"])).stdout.split("\n")[0]).toMatchSnapshot("headings");
    const { stdout } = await run(["store", "logins", "--json"]);
    expect(JSON.parse(stdout)).toEqual([
      expect.objectContaining({ profile: expect.any(String), state: "valid", refreshable: true, reason: null }),
      expect.objectContaining({ profile: expect.any(String), state: "valid", refreshable: true, reason: null }),
    ]);
  });

  it.each([
    [["--profile", "work"], 1],
    [["--needs-login"], 1],
    [["--limit", "2"], 2],
  ] as const)("lists those of %j", async (args, count) => {
    const { home, keys } = await madeHome();
    const store = await filled(home);
    const retired = { at: 1, reason: "the issuer refused to refresh it: invalid_grant" };
    await store.save(madeGrant({ profile: "ended", server: "https://ended.example/mcp", retired }), undefined);
    const { code, stdout } = await over(home, keys)(["store", "logins", "-o", "ndjson", ...args]);
    expect([code, lines(stdout).length]).toEqual([0, count]);
  });

  it("reads no page beyond a limit, and up to a hundred at once", async () => {
    const asked: unknown[] = [];
    const item = { profile: "p", server: "https://mcp.example/mcp", account: null, state: "valid" };
    async function* connections(query: { onUnusable: unknown; limit: number }) {
      const { onUnusable: _, ...others } = query;
      asked.push(others);
      for (let page = 0; page < 3; page++) {
        asked.push(page);
        yield { items: [item, item], cursor: undefined };
      }
    }
    const printed = async (flags: object) => {
      asked.length = 0;
      const { context, io } = startRun({}, flags);
      const store = async () => ({ location: "there", connections, for: () => undefined });
      const without = context.with.bind(context);
      Object.assign(context, { store, with: (to: object) => Object.assign(without(to), { store }) });
      const code = await runLogins({ output: "ndjson", ...flags }, context);
      return [code, lines(io.out()).length, ...asked];
    };
    const none = { profile: undefined, tenant: undefined, state: undefined };
    expect(await printed({})).toEqual([undefined, 6, { ...none, limit: 100 }, 0, 1, 2]);
    expect(await printed({ limit: 4 })).toEqual([undefined, 4, { ...none, limit: 4 }, 0, 1]);
    expect(await printed({ limit: 3, tenant: "acme" })).toEqual([
      ...[undefined, 3],
      ...[{ ...none, tenant: "acme", limit: 3 }, 0, 1],
    ]);
    expect(await printed({ needsLogin: true, profile: "a user" })).toEqual([
      ...[undefined, 6],
      { ...none, profile: "a user", state: "needs_login", limit: 100 },
      ...[0, 1, 2],
    ]);
  });

  it.each([
    [["--tenant", "acme"], "has no tenants\nhint: leave out --tenant"],
    [["--limit", "0"], "whole number"],
  ])("refuses %j", async (args, text) => {
    const { home, keys } = await madeHome();
    const { code, stdout, stderr } = await over(home, keys)(["store", "logins", ...args]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(text);
    expect(fixedText(stderr)).toMatchSnapshot();
  });

  it("lists the others where one cannot be read, and reports that", async () => {
    const { home, keys } = await madeHome();
    await filled(home);
    const [server] = readdirSync(join(home, "grants"));
    const folder = join(home, "grants", server ?? "");
    const [id] = readdirSync(folder);
    const [file] = readdirSync(join(folder, id ?? ""));
    writeFileSync(join(folder, id ?? "", file ?? ""), "{}");
    const { code, stdout, stderr } = await over(home, keys)(["store", "logins", "-o", "ndjson"]);
    expect([code, lines(stdout).length]).toEqual([8, 1]);
    expect(stderr).toContain("a stored login cannot be used");
  });
});

it("reseals nothing where the key ring is none", async () => {
  const engine = { AGENTAUTH_STORE: "redis", AGENTAUTH_STORE_URL: "redis://127.0.0.1:1" };
  const env = { AGENTAUTH_HOME: temporaryFolder(), AGENTAUTH_STORE_KEYS: "none", ...engine };
  const { code, stderr } = await runCli(["store", "reseal"], { env });
  expect([code, stderr]).toEqual([
    2,
    "error: store_keys is none: nothing is sealed\nhint: agentauth store keys <path>\n",
  ]);
});
