import { hostname } from "node:os";
import type { GrantStore } from "../../oauth/model/grant-store.js";
import { grantStore } from "../../store/driver/grant-store.js";
import type { KeyRing } from "../../store/seal/key-ring.js";
import { type EngineKind, readTakeover, TAKEOVERS } from "../profile-settings.js";
import type { EngineSettings } from "../store-choice.js";
import { readKeys } from "../store-keys.js";
import { type ClosableDriver, findPackage, lazyDriver, readAddress } from "./engine.js";

/** A store in an engine, which is connected when it is first used. */
export interface EngineStore {
  kind: EngineKind;
  driver: ClosableDriver;
  ring: KeyRing | "none";
  /** As {@link EngineSettings.takeover}. */
  takeover: string;
  store: GrantStore;
}

export interface EngineHost {
  /** Receives each secret, so that every output masks it. */
  hide?: ((secret: string) => void) | undefined;
  /** Does something before the run ends. */
  onExit?: ((work: () => Promise<void>) => void) | undefined;
}

/** @throws `AgentAuthError` `usage` for a setting that is wrong or missing, or if no client package is installed */
export function openEngine(
  kind: EngineKind,
  settings: EngineSettings | undefined,
  { hide, onExit }: EngineHost,
): EngineStore {
  const { url, keys, takeover = TAKEOVERS[0], tenant } = settings ?? {};
  const address = readAddress(kind, url, hide);
  const ring = readKeys(keys, `the store ${kind}`, hide);
  const client = findPackage(kind);
  const connect = async () => (await import("./connect.js")).connectWith(client, address);
  const driver = lazyDriver(kind, address.location, connect);
  onExit?.(() => driver.close());
  const holder = `process ${process.pid} on ${hostname()}`;
  const store = grantStore(driver, { seal: ring, takeover: readTakeover(takeover), tenant, holder });
  return { kind, driver, ring, takeover, store };
}
