import { quote } from "../../redact.js";
import { keysInUse } from "../../store/driver/tenant-records.js";
import type { EngineKind } from "../profile-settings.js";
import type { EngineStore } from "./open-engine.js";

/** A key that records are sealed with. */
interface KeyUse {
  /** The id of the key; `none` for records that are not sealed. */
  key: string;
  /** The number of records. */
  records: number;
}

/** What an engine reports, as `store health -o json` prints it. */
export interface EngineReport {
  /** The kind of the store. */
  store: EngineKind;
  /** Where the engine is, without credentials. */
  location: string;
  /** Whether it may be used: there are no errors. */
  usable: boolean;
  /** Facts such as version, durability, eviction and replicas. */
  facts: Readonly<Record<string, string>>;
  /** When others take over an interrupted refresh: the setting, and what goes before it. */
  takeover: string;
  /** Milliseconds by which the clock of this machine is ahead of the engine's. */
  clock_ahead_ms: number;
  /** Why logins may be lost. */
  risks: string[];
  /** Why the engine must not be used. */
  errors: string[];
  /** The id of the key that seals; null if nothing is sealed. */
  current_key: string | null;
  /** The ids of the keys that this process has. */
  keys: string[];
  /** The keys that records are sealed with. */
  keys_in_use: KeyUse[];
}

const UNSEALED = "logins are not sealed: everyone who can read the engine can read the tokens";

/**
 * Looks at an engine and at the keys of its records.
 *
 * @throws `AgentAuthError` `store_unavailable` if it does not answer
 */
export async function engineReport(
  { kind, driver, ring, takeover }: EngineStore,
  signal: AbortSignal,
): Promise<EngineReport> {
  const { facts, clockAheadMs, risks, errors } = await driver.health({ signal });
  // Without its tables an engine has no records either.
  const inUse = errors.length > 0 ? {} : await keysInUse(driver);
  const keys = ring === "none" ? [] : [...ring.ids];
  const problems = [...errors, ...keyErrors(Object.keys(inUse), keys)];
  return {
    store: kind,
    location: driver.location,
    usable: problems.length === 0,
    facts,
    takeover: `${takeover}; fast where the last refresh left the refresh token as it was`,
    clock_ahead_ms: clockAheadMs,
    risks: ring === "none" ? [...risks, UNSEALED] : [...risks],
    errors: problems,
    current_key: ring === "none" ? null : ring.current,
    keys,
    keys_in_use: Object.entries(inUse).map(([key, records]) => ({ key, records })),
  };
}

/** Records that this process cannot open. */
function keyErrors(used: readonly string[], keys: readonly string[]): string[] {
  const missing = used.filter((id) => !(keys.length === 0 ? ["none"] : keys).includes(id));
  return missing.map((id) =>
    id === "none"
      ? "some records are not sealed, and store_keys is a key ring"
      : `some records are sealed with the key ${quote(id)}, which store_keys does not have`,
  );
}
