import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runLogins } from "../../../../src/cli/commands/store/logins.js";
import { exportStore, importStore } from "../../../../src/cli/commands/store/transfer.js";
import type { Grant } from "../../../../src/oauth/model/grant.js";
import type { GrantStore } from "../../../../src/oauth/model/grant-store.js";
import { Secret } from "../../../../src/redact.js";
import { fileStore } from "../../../../src/store/file/file.js";
import { runCli, temporaryFolder } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { madeClient, madeGrant, plainGrant } from "../../../helpers/grant.js";
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
      const { stdout } = await run([
        "store",
        "logins",
        "-o",
        format,
        "--limit",
        "1",
        "--server",
        "https://mcp.example/mcp",
      ]);
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
    [["--server", "https://other.example/mcp"], 1],
    [["--state", "valid"], 2],
    [["--state", "expired"], 0],
    [["--needs-login"], 1],
    [["--limit", "2"], 2],
    [["--limit", "1", "--server", "https://mcp.example/mcp"], 1],
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
    const none = { profile: undefined, tenant: undefined, server: undefined, state: undefined };
    expect(await printed({})).toEqual([undefined, 6, { ...none, limit: 100 }, 0, 1, 2]);
    expect(await printed({ limit: 4 })).toEqual([undefined, 4, { ...none, limit: 4 }, 0, 1]);
    expect(await printed({ limit: 3, tenant: "acme", state: "expired" })).toEqual([
      ...[undefined, 3],
      ...[{ ...none, tenant: "acme", state: "expired", limit: 3 }, 0, 1],
    ]);
    expect(await printed({ needsLogin: true, profile: "a user", server: "https://mcp.example/mcp" })).toEqual([
      ...[undefined, 6],
      { ...none, profile: "a user", server: "https://mcp.example/mcp", state: "needs_login", limit: 100 },
      ...[0, 1, 2],
    ]);
  });

  it.each([
    [["--needs-login", "--state", "valid"], "leave one of the two out"],
    [["--tenant", "acme"], "has no tenants\nhint: leave out --tenant"],
    [["--limit", "0"], "whole number"],
    [["--state", "gone"], "valid, expired, needs_login, lost_refresh"],
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

describe("store export and store import", () => {
  it("carry each login, client and binding from one store to another", async () => {
    const { home, keys } = await madeHome();
    const store = await filled(home);
    const path = join(temporaryFolder(), "logins.ndjson");
    const exported = await over(home, keys)(["store", "export", path, "--json"]);
    expect(exported.code).toBe(0);
    expect(JSON.parse(exported.stdout)).toEqual({ path, sealed: true, logins: 2, clients: 1, bindings: 1 });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const text = readFileSync(path, "utf8");
    for (const secret of ["access-token-1", "refresh-token-1", "client-secret-1", "mcp.example"])
      expect(text).not.toContain(secret);

    const target = temporaryFolder();
    const imported = await over(target, keys)(["store", "import", path, "--json"]);
    expect(imported.code).toBe(0);
    const none = { logins: 0, clients: 0, bindings: 0, unchanged: 0, skipped_records: [] };
    expect(JSON.parse(imported.stdout)).toEqual({ ...none, logins: 2, clients: 1, bindings: 1 });
    const copy = fileStore(target);
    const plain = async (from: typeof store) => (await from.list()).map(plainGrant).sort(byServer);
    expect(await plain(copy)).toEqual(await plain(store));
    expect(await copy.readClient(madeClient().issuer, FORM)).toEqual(await store.readClient(madeClient().issuer, FORM));
    expect(await copy.listBindings()).toEqual([BINDING]);

    const again = await over(target, keys)(["store", "import", path, "--json"]);
    expect(JSON.parse(again.stdout)).toEqual({ ...none, unchanged: 4 });
  });

  it("replace no newer login and no binding, and say so", async () => {
    const { home, keys } = await madeHome();
    await filled(home);
    const path = join(temporaryFolder(), "logins.ndjson");
    await over(home, keys)(["store", "export", path]);
    const target = temporaryFolder();
    const copy = fileStore(target);
    const newer = madeGrant({ generation: 1, signedInAt: 1_800_000_000_000 });
    await copy.save(newer, undefined);
    await copy.save(
      madeGrant({ profile: "work", account: "ann", server: "https://other.example/mcp", signedInAt: 1, generation: 9 }),
      undefined,
    );
    await copy.saveBinding({ ...BINDING, issuer: "https://another.example" }, undefined);
    const { code, stdout, stderr } = await over(target, keys)(["store", "import", path, "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ logins: 1, bindings: 0, clients: 1, unchanged: 0 });
    expect(stderr).toContain(
      'skipped the login at "https://mcp.example/mcp" of profile default: the store has a newer one',
    );
    expect(stderr).toContain('skipped the binding of "my-service": it is bound to "https://another.example"');
    expect(JSON.parse(stdout).skipped_records).toEqual([
      { record: 'binding of "my-service"', reason: 'it is bound to "https://another.example"' },
      { record: 'login at "https://mcp.example/mcp" of profile default', reason: "the store has a newer one" },
    ]);
    expect((await copy.read(newer))?.signedInAt).toBe(newer.signedInAt);
    // A generation is never used twice, although the generations of the imported login begin at 1.
    const older = await copy.read({ profile: "work", account: "ann", server: "https://other.example/mcp" });
    expect(older).toMatchObject({ generation: 10, signedInAt: 1_700_000_000_000 });
  });

  it.each<[string, number[] | undefined, number[] | undefined, number]>([
    ["registered later", [2], [1], 0],
    ["registered at the same time", [1], [1], 0],
    ["of an unknown time, as the other", undefined, undefined, 0],
    ["registered earlier", [1], [1, 2], 1],
  ])("keep another client that was %s, and else replace it", async (_what, there, imported, clients) => {
    const { home, keys } = await madeHome();
    const clientOf = (clientId: string, times?: number[]) =>
      madeClient({ clientId, ...(times && { registeredAt: times }) });
    await fileStore(home).saveClient(clientOf("imported", imported), FORM);
    const path = join(temporaryFolder(), "logins.ndjson");
    await over(home, keys)(["store", "export", path]);
    const target = temporaryFolder();
    await fileStore(target).saveClient(clientOf("there", there), FORM);
    const { stdout, stderr } = await over(target, keys)(["store", "import", path, "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ clients });
    expect(stderr.includes('skipped the client "imported": the store has a newer one')).toBe(clients === 0);
    const kept = await fileStore(target).readClient(madeClient().issuer, FORM);
    expect(kept?.clientId).toBe(clients === 0 ? "there" : "imported");
  });

  it.each<[string, (lines: string[]) => string[], RegExp]>([
    ["without its end", (lines) => lines.slice(0, -1), /its end is missing/],
    ["without a line", (lines) => lines.slice(1), /line 1: it cannot be opened|line 1: /],
    ["with a line twice", (lines) => [lines[0] ?? "", ...lines], /line 2: /],
    ["with a line behind its end", (lines) => [...lines, lines[0] ?? ""], /it is behind the end/],
    ["that is no export", () => ["hello"], /line 1: it is not valid JSON/],
    ["that is empty", () => [], /its end is missing/],
  ])("change nothing for a file %s", async (_what, change, reason) => {
    const { home, keys } = await madeHome();
    await filled(home);
    const path = join(temporaryFolder(), "logins.ndjson");
    await over(home, keys)(["store", "export", path]);
    const lines = readFileSync(path, "utf8").trimEnd().split("\n");
    writeFileSync(
      path,
      change(lines)
        .map((line) => `${line}\n`)
        .join(""),
    );
    const target = temporaryFolder();
    const { code, stdout, stderr } = await over(target, keys)(["store", "import", path]);
    expect([code, stdout]).toEqual([8, ""]);
    expect(stderr).toMatch(reason);
    expect(fixedText(stderr)).toMatchSnapshot();
    expect(await fileStore(target).list()).toEqual([]);
  });

  it.each<[string, object[], RegExp]>([
    ["another end", [{ kind: "export-end", records: 1 }], /line 1: it is no record of an export/],
    ["what is no record", [{ kind: "else", records: 0 }], /line 1: it is no record of an export/],
    ["a sealed record", [{ kind: "sealed" }], /line 1: it is sealed, and store_keys is none/],
    ["a list", [[]], /line 1: it is no record of an export/],
  ])("change nothing for a file that is not sealed, and has %s", async (_what, lines, reason) => {
    const path = join(temporaryFolder(), "logins.ndjson");
    writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""), { mode: 0o600 });
    const env = { AGENTAUTH_HOME: temporaryFolder(), AGENTAUTH_STORE_KEYS: "none" };
    const { code, stdout, stderr } = await runCli(["store", "import", path], { env });
    expect([code, stdout, stderr]).toEqual([8, "", expect.stringMatching(reason)]);
    expect(fixedText(stderr)).toMatchSnapshot();
  });

  it("change nothing for a file that is absent, or has a line that is none", async () => {
    const path = join(temporaryFolder(), "logins.ndjson");
    const env = { AGENTAUTH_HOME: temporaryFolder(), AGENTAUTH_STORE_KEYS: "none" };
    const absent = await runCli(["store", "import", path], { env });
    writeFileSync(path, '{"kind":"grant","access_token":"access-token-1"\n', { mode: 0o600 });
    const broken = await runCli(["store", "import", path], { env });
    for (const { code, stdout, stderr } of [absent, broken]) {
      expect([code, stdout, fixedText(stderr)]).toMatchSnapshot();
    }
  });

  it("refuse the keys of another ring, a file that others can read, and a file that is there", async () => {
    const { home, keys } = await madeHome();
    await filled(home);
    const path = join(temporaryFolder(), "logins.ndjson");
    await over(home, keys)(["store", "export", path]);
    const other = await madeHome();
    const foreign = await over(temporaryFolder(), other.keys)(["store", "import", path]);
    expect(foreign.code).toBe(8);
    expect((await over(home, keys)(["store", "export", path])).code).toBe(2);
    chmodSync(path, 0o644);
    const loose = await over(home, keys)(["store", "import", path]);
    expect(loose.code).toBe(8);
    expect(loose.stderr).toContain("can be read by others");
    const memory = await over(home, keys)(["store", "export", `${path}.2`], { AGENTAUTH_STORE: "memory" });
    expect([memory.code, memory.stderr]).toEqual([
      2,
      "error: the store is memory (AGENTAUTH_STORE): it has nothing beyond this command\n",
    ]);
  });

  it("need a key ring, and seal nothing only for none", async () => {
    const { home } = await madeHome();
    await filled(home);
    const path = join(temporaryFolder(), "logins.ndjson");
    const missing = await runCli(["store", "export", path], { env: { AGENTAUTH_HOME: home } });
    expect(missing.code).toBe(2);
    expect(missing.stderr).toContain("store_keys is not set");
    expect(missing.stderr).toContain("agentauth store keys <path>");
    for (const word of ["None", "no", "none ", "off"]) {
      const env = { AGENTAUTH_HOME: home, AGENTAUTH_STORE_KEYS: word };
      expect((await runCli(["store", "export", path], { env })).code).toBe(2);
    }
    const env = { AGENTAUTH_HOME: home, AGENTAUTH_STORE_KEYS: "none" };
    const plain = await runCli(["store", "export", path], { env });
    expect(plain.code).toBe(0);
    expect(plain.stderr).toBe(`warning: store_keys is none: the tokens in ${path} are not sealed\n`);
    const lines = readFileSync(path, "utf8").trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line).kind)).toEqual(["binding", "client", "grant", "grant", "export-end"]);
    expect(lines.at(-1)).toBe('{"kind":"export-end","records":4}');
    const target = temporaryFolder();
    const read = await runCli(["store", "import", path], { env: { ...env, AGENTAUTH_HOME: target } });
    expect(read.code).toBe(0);
    expect(await fileStore(target).list()).toHaveLength(2);
  });
});

describe("a store that other processes change at the same time", () => {
  const GRANT = madeGrant({ profile: "work", account: "ann", generation: 2 });
  const exported = async () => {
    const path = join(temporaryFolder(), "logins.ndjson");
    const from = {
      list: async () => [GRANT],
      listClients: async () => [madeClient({ redirectUri: undefined })],
      listBindings: async () => [],
    };
    const report = await exportStore(from as unknown as GrantStore, { path, ring: "none", onUnusable() {} });
    expect(report).toEqual({ path, sealed: false, logins: 1, clients: 1, bindings: 0 });
    return path;
  };
  const importedInto = async (store: object) =>
    importStore(store as GrantStore, { path: await exported(), ring: "none" });
  const NO_CLIENT = { record: 'client "client-1"', reason: "it has no redirect address" };
  const NONE = { logins: 0, clients: 0, bindings: 0, unchanged: 0, skipped_records: [NO_CLIENT] };

  it("is tried again five times, with what it has by then", async () => {
    const saved: unknown[] = [];
    const store = {
      read: async () => (saved.length === 0 ? undefined : { ...GRANT, signedInAt: 1, generation: 6 + saved.length }),
      save: async (grant: Grant, before: number | undefined) => {
        saved.push([grant.generation, before]);
        return false;
      },
    };
    const record = 'login at "https://mcp.example/mcp" of profile work, account "ann"';
    const skipped = [NO_CLIENT, { record, reason: "other processes change it at the same time" }];
    expect(await importedInto(store)).toEqual({ ...NONE, skipped_records: skipped });
    expect(saved).toEqual([
      [2, undefined],
      [8, 7],
      [9, 8],
      [10, 9],
      [11, 10],
    ]);
  });

  it.each<[string, Partial<Grant>, string]>([
    ["the same login", {}, "unchanged"],
    ["the same login, refreshed", { generation: 3 }, "unchanged"],
    ["the same login before", { generation: 1 }, "imported"],
    ["another one of the same time and generation", { tokens: otherTokens() }, "newer"],
    ["another one of the same time, later", { tokens: otherTokens(), generation: 3 }, "newer"],
    ["another one of the same time, earlier", { tokens: otherTokens(), generation: 1 }, "imported"],
    ["a later one", { signedInAt: GRANT.signedInAt + 1, generation: 1 }, "newer"],
    ["an earlier one", { signedInAt: GRANT.signedInAt - 1, generation: 9 }, "imported"],
  ])("has %s", async (_what, over, outcome) => {
    const store = { read: async () => ({ ...GRANT, ...over }), save: async () => true };
    const { logins, unchanged, skipped_records } = await importedInto(store);
    expect([logins, unchanged, skipped_records.length - 1]).toEqual(
      ["imported", "unchanged", "newer"].map((one) => Number(one === outcome)),
    );
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

function otherTokens(): Grant["tokens"] {
  return { ...madeGrant().tokens, accessToken: new Secret("access-token-2") };
}

function byServer(one: { server: string }, other: { server: string }): number {
  return one.server < other.server ? -1 : 1;
}
