import { hostname } from "node:os";
import { messageOf } from "../../errors.js";
import { decodeClient } from "../../oauth/model/codec.js";
import type { ClientRecord } from "../../oauth/model/grant.js";
import type { GrantStore } from "../../oauth/model/grant-store.js";
import type { StoreDriver, StoredRecord } from "../../store/driver/driver.js";
import { grantStore } from "../../store/driver/grant-store.js";
import { sealedName } from "../../store/driver/tenant-records.js";
import type { KeyRing } from "../../store/seal/key-ring.js";
import { storeError } from "../../store/store-error.js";
import type { EngineKind } from "../profile-settings.js";
import type { EngineSettings } from "../store-choice.js";
import { readKeys } from "../store-keys.js";
import { findPackage } from "./client-package.js";
import { type ClosableDriver, lazyDriver } from "./lazy-driver.js";
import { readAddress } from "./store-url.js";

/** A store in an engine, which is connected when it is first used. */
export interface EngineStore {
  kind: EngineKind;
  driver: ClosableDriver;
  ring: KeyRing | "none";
  store: GrantStore;
}

/** What an engine is opened with. */
export interface EngineHost {
  /** The folder of the settings. */
  home: string;
  /** Receives each secret, so that every output masks it. */
  hide?: ((secret: string) => void) | undefined;
  /** Does something before the run ends. */
  atEnd?: ((work: () => Promise<void>) => void) | undefined;
}

/** @throws `AgentAuthError` `usage` for a setting that is wrong or missing, or if no client package is installed */
export function openEngine(
  kind: EngineKind,
  settings: EngineSettings | undefined,
  { home, hide, atEnd }: EngineHost,
): EngineStore {
  const { url, keys, takeover, tenant } = settings ?? {};
  const address = readAddress(kind, url, hide);
  const ring = readKeys(keys, `the store ${kind}`, hide);
  const client = findPackage(kind, home);
  const driver = lazyDriver({
    system: kind === "redis" ? "redis" : "postgresql",
    location: address.location,
    connect: async () => (await import("./connect.js")).connectWith(client, address),
  });
  atEnd?.(() => driver.close());
  const listClients = () => engineClients(driver, ring);
  const holder = `process ${process.pid} on ${hostname()}`;
  return {
    kind,
    driver,
    ring,
    store: { ...grantStore(driver, { seal: ring, takeover, tenant, holder }), listClients },
  };
}

const SCAN_LIMIT = 200;

/** Every registered client in an engine: all tenants share them. @throws `AgentAuthError` class `store` */
async function engineClients(driver: StoreDriver, ring: KeyRing | "none"): Promise<ClientRecord[]> {
  const open = async ({ key, value }: StoredRecord): Promise<ClientRecord> => {
    try {
      return decodeClient(ring === "none" ? value : await ring.open(value, sealedName(key)));
    } catch (cause) {
      const reason = messageOf(cause);
      throw storeError(`a registered client in ${driver.location} cannot be used: ${reason}`, undefined);
    }
  };
  const clients: ClientRecord[] = [];
  let cursor: string | undefined;
  do {
    const page = await driver.scan({ kind: "client" }, { limit: SCAN_LIMIT, cursor });
    clients.push(...(await Promise.all(page.items.map(open))));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return clients;
}
