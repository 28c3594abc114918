import { AgentAuthError, abortedError, isAgentAuthError, messageOf } from "../../errors.js";
import { checkOptionNames, type OptionNames } from "../../http/public-class.js";
import { decodeGrant } from "../../oauth/model/codec.js";
import { quote } from "../../redact.js";
import type { KeyRing } from "../seal/key-ring.js";
import { parseSealed } from "../seal/sealing.js";
import type { RecordKind, StoreDriver, StoredRecord } from "./driver.js";
import { besideGrant, nameIn, scanPages, sealedName, sealRecord, splitSummary } from "./tenant-records.js";

/** Options of {@link reseal}. */
export interface ResealOptions {
  /** Ends it before the next record; it may be called again, and goes on with the records that are left. */
  signal?: AbortSignal | undefined;
  /** Called for each record that cannot be opened. It stays as it is. */
  onUnusable?: ((error: AgentAuthError) => void) | undefined;
}

/** What {@link reseal} has done, as numbers of records. */
export interface ResealReport {
  /** Sealed with the current key now. */
  resealed: number;
  /** Sealed with the current key before. */
  current: number;
  /** Changed by another process in between, which sealed them with its own current key. */
  changed: number;
  /** Impossible to open. */
  unusable: number;
}

/** Records that stay until they are removed. A login that waits for its callback expires within minutes. */
const LASTING: readonly RecordKind[] = ["grant", "client", "binding", "revocation"];

/**
 * Seals every record of every tenant with the current key of a ring that was sealed with another one. It saves over
 * exactly what it has read, so it can run beside processes that use the store.
 *
 * @throws `AgentAuthError` `store_unavailable` if the engine does not respond, `aborted`
 */
export async function reseal(driver: StoreDriver, ring: KeyRing, options: ResealOptions = {}): Promise<ResealReport> {
  checkOptionNames(options, { signal: true, onUnusable: true } satisfies OptionNames<ResealOptions>, "reseal");
  const { signal, onUnusable = () => {} } = options;
  const report: ResealReport = { resealed: 0, current: 0, changed: 0, unusable: 0 };
  for await (const record of recordsOf(driver, LASTING)) {
    if (signal?.aborted) throw abortedError(signal);
    try {
      report[await resealRecord(driver, ring, record)]++;
    } catch (cause) {
      if (isAgentAuthError(cause)) throw cause;
      report.unusable++;
      onUnusable(unusableRecordError(driver, record, cause));
    }
  }
  return report;
}

/**
 * The ids of the keys that records are sealed with, each with the number of its records: drop no key from the ring that
 * is among them. Records that are not sealed count under `none`.
 */
export async function keysInUse(driver: StoreDriver): Promise<Record<string, number>> {
  const counts = new Map<string, number>();
  for await (const { value } of recordsOf(driver, [...LASTING, "login"])) {
    const id = keyOf(value) ?? "none";
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return Object.fromEntries(counts);
}

async function resealRecord(
  driver: StoreDriver,
  ring: KeyRing,
  { key, version, value }: StoredRecord,
): Promise<"resealed" | "current" | "changed"> {
  const sealed = splitSummary(value);
  if (parseSealed(sealed.value).key === ring.current) return "current";
  const text = await ring.open(sealed.value, sealedName(key));
  const nameOf = (...parts: string[]) => nameIn(ring, key.partition, parts);
  // A record that is stored again loses the tags that are not named again.
  const { summary, tags } = key.kind === "grant" ? await besideGrant(nameOf, decodeGrant(text)) : {};
  const stored = await driver.put(key, await sealRecord(ring, key, text, summary), version, { tags });
  return stored === undefined ? "changed" : "resealed";
}

async function* recordsOf(driver: StoreDriver, kinds: readonly RecordKind[]): AsyncGenerator<StoredRecord> {
  for (const kind of kinds) for await (const { items } of scanPages(driver, { kind })) yield* items;
}

function keyOf(value: string): string | undefined {
  try {
    return parseSealed(splitSummary(value).value).key;
  } catch {
    return undefined;
  }
}

function unusableRecordError({ location }: StoreDriver, { key }: StoredRecord, cause: unknown): AgentAuthError {
  const reason = messageOf(cause);
  const message = `the record ${key.kind} ${quote(key.id)} in ${location} cannot be opened: ${reason}`;
  return new AgentAuthError("store_failed", message, { class: "store", cause });
}
