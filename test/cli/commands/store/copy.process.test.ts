import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openEngine } from "../../../../src/profile/engine/open-engine.js";
import type { EngineKind } from "../../../../src/profile/profile-settings.js";
import { engineSettings } from "../../../../src/profile/store-choice.js";
import { fileStore } from "../../../../src/store/file/file.js";
import { storeSql } from "../../../../src/store/postgres/store-sql.js";
import { runCli, temporaryFolder } from "../../../helpers/cli.js";
import { madeClient, madeGrant, plainGrant } from "../../../helpers/grant.js";
import { HAS_REDIS, startRedis } from "../../../helpers/redis-server.js";
import { migrate } from "../../../store/postgres/migrate.js";
import { MISSING_SERVER, startPostgres } from "../../../store/postgres/postgres-server.js";

const FORM = "http://127.0.0.1/callback";
const PASSWORD = "Tr0ub4dor";
const BINDING = {
  profile: "work",
  clientId: "my-service",
  issuer: "https://as.example/pool",
  boundBy: "issuer",
  boundAt: 1_700_000_000_000,
} as const;

/** A real engine, whose address has a password. */
interface Engine {
  url: string;
  close(): Promise<void>;
}

async function redisEngine(): Promise<Engine> {
  const redis = await startRedis(["--requirepass", PASSWORD]);
  return { url: `redis://:${PASSWORD}@127.0.0.1:${redis.port}/0`, close: () => redis.close() };
}

async function postgresEngine(): Promise<Engine> {
  const server = await startPostgres();
  await migrate(server.options, storeSql());
  const url = `postgres://postgres:${PASSWORD}@localhost/postgres?host=${server.options.host}`;
  return { url, close: () => server.close() };
}

/** Every file of a folder, with its text and the time at which it was written. */
function filesOf(folder: string): unknown[] {
  const names = readdirSync(folder, { recursive: true }).map(String).sort();
  return names
    .map((name) => [name, join(folder, name)] as const)
    .filter(([, path]) => statSync(path).isFile())
    .map(([name, path]) => [name, readFileSync(path, "base64"), statSync(path).mtimeMs]);
}

describe.each<[EngineKind, boolean, () => Promise<Engine>]>([
  ["redis", HAS_REDIS, redisEngine],
  ["postgres", MISSING_SERVER === "", postgresEngine],
])("store copy to %s (needs its server)", (kind, isInstalled, start) => {
  describe.skipIf(!isInstalled)("that is running", () => {
    const home = temporaryFolder();
    const keys = join(temporaryFolder(), "keys.json");
    let engine: Engine;
    let env: Record<string, string>;
    beforeAll(async () => {
      engine = await start();
      await runCli(["store", "keys", keys], { env: { AGENTAUTH_HOME: home } });
      env = { AGENTAUTH_HOME: home, AGENTAUTH_STORE_KEYS: `file:${keys}`, ENGINE: engine.url };
    }, 60_000);
    afterAll(() => engine?.close());

    const copy = async () => {
      const { code, stdout, stderr } = await runCli(["store", "copy", "--to", "env:ENGINE", "--json"], { env });
      for (const secret of [PASSWORD, "access-token-1", "refresh-token-1", "client-secret-1"]) {
        expect(stdout + stderr).not.toContain(secret);
      }
      return { code, stderr, report: JSON.parse(stdout) };
    };
    /** Uses the store in the engine as another process does. */
    const inEngine = async <T>(use: (store: ReturnType<typeof openEngine>["store"]) => Promise<T>): Promise<T> => {
      const settings = engineSettings({ ...env, AGENTAUTH_STORE_URL: engine.url }, { name: "default", entries: {} });
      const { store, driver } = openEngine(kind, settings, {});
      return use(store).finally(() => driver.close());
    };
    const plain = (store: Pick<ReturnType<typeof fileStore>, "list">) =>
      store.list().then((grants) => grants.map(plainGrant).sort((a, b) => a.server.localeCompare(b.server)));

    it("copies each login whole, replaces no newer one, and leaves the files as they are", async () => {
      const files = fileStore(home);
      await files.save(madeGrant({ generation: 3 }), undefined);
      await files.save(madeGrant({ profile: "work", account: "ann", server: "https://other.example/mcp" }), undefined);
      await files.saveClient(madeClient(), FORM);
      await files.saveBinding(BINDING, undefined);
      const before = filesOf(home);

      const first = await copy();
      expect([first.code, first.stderr]).toEqual([0, ""]);
      const none = { logins: 0, clients: 0, bindings: 0, unchanged: 0, skipped_records: [] };
      expect(first.report).toMatchObject({ ...none, logins: 2, clients: 1, bindings: 1 });
      expect(await inEngine(plain)).toEqual(await plain(files));
      expect(await inEngine((store) => store.readClient(madeClient().issuer, FORM))).toEqual(
        await files.readClient(madeClient().issuer, FORM),
      );
      expect(await inEngine((store) => store.listBindings())).toEqual([BINDING]);
      expect((await copy()).report).toMatchObject({ ...none, unchanged: 4 });

      const newer = madeGrant({ generation: 4, signedInAt: 1_800_000_000_000 });
      await inEngine((store) => store.save(newer, 3));
      const third = await copy();
      expect([third.code, third.report.skipped_records]).toEqual([
        0,
        [{ record: 'login at "https://mcp.example/mcp" of profile default', reason: "the engine has a newer one" }],
      ]);
      expect((await inEngine((store) => store.read(newer)))?.signedInAt).toBe(newer.signedInAt);
      expect(filesOf(home)).toEqual(before);
    }, 60_000);

    it("reports a login that it cannot read, and copies the others", async () => {
      const paths = readdirSync(join(home, "grants"), { recursive: true }).map((name) =>
        join(home, "grants", String(name)),
      );
      writeFileSync(paths.find((path) => statSync(path).isFile()) ?? "", "{}");
      const { code, stderr, report } = await copy();
      expect(code).toBe(8);
      expect(stderr).toContain("a stored login cannot be used");
      expect(report.unchanged + report.skipped_records.length).toBe(3);
    }, 60_000);
  });
});
