import { AgentAuthError, abortedError, errorMessage, isAgentAuthError, orUndefined } from "../../errors.js";
import { checkOptionNames, type OptionNames } from "../../http/public-class.js";
import { CodecError, decodeGrant } from "../../oauth/model/codec.js";
import type { ConnectionQuery } from "../../oauth/model/connection.js";
import type { Grant } from "../../oauth/model/grant.js";
import { type GrantFilter, UNREVOKED_MS } from "../../oauth/model/grant-store.js";
import { encodeSummary, markedState, summarizeGrant } from "../../oauth/model/grant-summary.js";
import { quote } from "../../redact.js";
import type { KeyRing } from "../seal/key-ring.js";
import { KeyDeletedError, parseSealed, type RecordCipher, type RecordLocation, type Sealing } from "../seal/sealing.js";
import type { PutOptions, RecordKey, RecordKind, ScanFilter, ScanPage, StoreDriver, StoredRecord } from "./driver.js";
import { isUnanswered } from "./engine.js";

export interface WriteOptions extends PutOptions {
  /** A text beside the record's own, sealed by itself, so that it can be read without opening the record. */
  readonly summary?: string | undefined;
  /** The sealed texts of earlier tries: if one of them is stored, an earlier try has succeeded. */
  readonly tries?: Set<string> | undefined;
}

interface PagesOptions extends Partial<Parameters<StoreDriver["scan"]>[1]> {
  readonly tags?: ScanFilter["tags"];
}

const SCAN_LIMIT = 200;
const OVERWRITES = 10;

interface Place {
  readonly partition: string;
  readonly cipher: RecordCipher;
}

/** The sealed records of one tenant, or those that all tenants share. */
export class TenantRecords {
  readonly driver: StoreDriver;
  readonly #sealing: Sealing;
  readonly #place: Promise<Place>;

  /** @param name the parts of the partition's name */
  constructor(driver: StoreDriver, sealing: Sealing, ...name: readonly string[]) {
    this.driver = driver;
    this.#sealing = sealing;
    this.#place = sealing
      .nameOf(JSON.stringify(["partition", ...name]))
      .then((partition) => ({ partition, cipher: sealing.cipherFor(recordLocation(driver, partition)) }));
    this.#place.catch(() => undefined);
  }

  /** As {@link nameIn}. */
  readonly name = async (...parts: readonly (string | undefined)[]): Promise<string> =>
    nameIn(this.#sealing, (await this.#place).partition, parts);

  async key(kind: RecordKind, ...parts: readonly (string | undefined)[]): Promise<RecordKey> {
    const id = await this.name(kind, ...parts);
    return { kind, partition: (await this.#place).partition, id };
  }

  async seal(key: RecordKey, text: string, summary?: string): Promise<string> {
    try {
      return await sealRecord((await this.#place).cipher, key, text, summary);
    } catch (cause) {
      throw this.#unusable(key, cause);
    }
  }

  async open(key: RecordKey, value: string): Promise<string> {
    return (await this.#place).cipher.open(splitSummary(value).value, sealedName(key));
  }

  /** The summary that a record was written with, and nothing else of it. As {@link TenantRecords.decode}. */
  async decodeSummary<T>({ key, value }: StoredRecord, decode: (text: string) => T): Promise<T | undefined> {
    const { summary } = splitSummary(value);
    return this.#opened(key, async ({ cipher }) => {
      if (summary === undefined) throw new CodecError("it has no summary");
      return decode(await cipher.open(summary, summaryName(key)));
    });
  }

  /** Reads a record and decodes its text. @throws `AgentAuthError` class `store` if it cannot be used */
  async read<T>(key: RecordKey, decode: (text: string) => T | Promise<T>): Promise<T | undefined> {
    const record = await this.driver.get(key);
    return record && this.decode(record, decode);
  }

  /**
   * What a record contains; undefined if its key was deleted, so that it is as good as gone.
   *
   * @throws `AgentAuthError` class `store` if it cannot be used
   */
  async decode<T>({ key, value }: StoredRecord, decode: (text: string) => T | Promise<T>): Promise<T | undefined> {
    return this.#opened(key, async () => decode(await this.open(key, value)));
  }

  async #opened<T>(key: RecordKey, open: (place: Place) => Promise<T>): Promise<T | undefined> {
    try {
      return await open(await this.#place);
    } catch (cause) {
      if (cause instanceof KeyDeletedError) return undefined;
      throw this.#unusable(key, cause);
    }
  }

  /**
   * Stores a text over exactly the record that was read before; undefined: over none.
   *
   * @returns whether it is stored; false if another one is
   * @throws `store_unavailable` if the engine does not respond, and a second look does not show the record
   */
  async write(
    key: RecordKey,
    text: string,
    before: StoredRecord | undefined,
    { tries = new Set(), summary, ...options }: WriteOptions = {},
  ): Promise<boolean> {
    const value = await this.seal(key, text, summary);
    tries.add(value);
    let failure: unknown;
    try {
      if ((await this.driver.put(key, value, before?.version, options)) !== undefined) return true;
    } catch (error) {
      if (!isUnanswered(error)) throw error;
      failure = error;
    }
    // The response of this try, or of an earlier one that the driver repeated, may be lost.
    const stored = await this.driver.get(key).catch((error: unknown) => {
      throw failure ?? error;
    });
    if (stored && tries.has(stored.value)) return true;
    if (failure !== undefined && isSameRecord(stored, before)) throw failure;
    return false;
  }

  /** Stores what `change` makes of the stored record, as often as another process comes first. */
  async update<T>(
    key: RecordKey,
    change: (before: StoredRecord | undefined) => Promise<{ text: string; result: T } | { result: T }>,
  ): Promise<T> {
    for (let tries = 1; ; tries++) {
      const before = await this.driver.get(key);
      const changed = await change(before);
      if (!("text" in changed) || (await this.write(key, changed.text, before))) return changed.result;
      if (tries === OVERWRITES) throw this.#contended(key);
    }
  }

  /** Stores another summary of a record, whose text stays. @returns false if another process has changed it */
  async replaceSummary({ key, version, value }: StoredRecord, summary: string, options: PutOptions): Promise<boolean> {
    const sealed = await (await this.#place).cipher.seal(summary, summaryName(key));
    return (await this.driver.put(key, joinSummary(sealed, splitSummary(value).value), version, options)) !== undefined;
  }

  /** The records of a kind that are due until then, the first ones first. */
  async due(kind: RecordKind, dueUntil: number, page: Parameters<StoreDriver["scan"]>[1]) {
    const { partition } = await this.#place;
    const { items, total = 0 } = await this.driver.scan({ kind, partition, dueUntil }, page);
    return { items, total };
  }

  async scan(kind: RecordKind, tags?: Readonly<Record<string, string>>): Promise<StoredRecord[]> {
    const found: StoredRecord[] = [];
    for await (const { items } of this.pages(kind, { tags })) found.push(...items);
    return found;
  }

  /** The records of a kind with these tags, in parts, after that with the cursor. */
  async *pages(kind: RecordKind, { tags, ...options }: PagesOptions = {}): AsyncGenerator<ScanPage> {
    const { partition } = await this.#place;
    yield* scanPages(this.driver, { kind, partition, tags }, options);
  }

  #unusable(key: RecordKey, cause: unknown): unknown {
    const isCipher = (cause as Error | undefined)?.name === "CipherError";
    if (!isCipher && !(cause instanceof CodecError)) return cause;
    const message = `the record ${this.#nameIn(key)} cannot be used: ${(cause as Error).message}`;
    const hint = isCipher
      ? "give this process the key that sealed it, or remove the record"
      : "remove the record, or update this program";
    return new AgentAuthError("store_failed", message, { class: "store", hint, cause });
  }

  #contended(key: RecordKey): AgentAuthError {
    const message = `other processes change the record ${this.#nameIn(key)} faster than this one`;
    return new AgentAuthError("store_unavailable", message, { class: "unavailable" });
  }

  #nameIn({ kind, id }: RecordKey): string {
    return `${kind} ${quote(id)} in ${this.driver.location}`;
  }
}

async function* scanPages(
  driver: StoreDriver,
  filter: ScanFilter,
  { limit = SCAN_LIMIT, cursor: first }: Omit<PagesOptions, "tags"> = {},
): AsyncGenerator<ScanPage> {
  let cursor = first;
  do {
    const page = await driver.scan(filter, { limit, cursor });
    yield page;
    cursor = page.cursor;
  } while (cursor !== undefined);
}

/** A partition, with access to the record of its key. */
export function recordLocation(driver: StoreDriver, partition: string): RecordLocation {
  const keyOf = (id: string): RecordKey => ({ kind: "key", partition, id });
  return {
    partition,
    readKey: async (id) => (await driver.get(keyOf(id)))?.value,
    createKey: async (id, text) => (await driver.put(keyOf(id), text, undefined)) !== undefined,
  };
}

/**
 * A name that shows nothing about its parts, if records are sealed, nor whether another partition has the same ones: the
 * same user of the same server at two tenants.
 */
export function nameIn(
  { nameOf }: Pick<Sealing, "nameOf">,
  partition: string,
  parts: readonly (string | undefined)[],
): Promise<string> {
  return nameOf(JSON.stringify([partition, ...parts]));
}

/** Whether two records are the same. An engine that lost writes may use a version twice. */
export function isSameRecord(one: StoredRecord | undefined, other: StoredRecord | undefined): boolean {
  return one?.version === other?.version && one?.value === other?.value;
}

/** What a sealed text is bound to, so that no record can be put in the place of another one. */
export function sealedName({ kind, partition, id }: RecordKey): string {
  return `${kind}:${partition}:${id}`;
}

function summaryName(key: RecordKey): string {
  return `${sealedName(key)}:summary`;
}

/** What is stored of a record: its summary, if it has one, after the length of it, and the record itself, each sealed. */
async function sealRecord(
  cipher: RecordCipher,
  key: RecordKey,
  text: string,
  summary: string | undefined,
): Promise<string> {
  const value = await cipher.seal(text, sealedName(key));
  if (summary === undefined) return value;
  return joinSummary(await cipher.seal(summary, summaryName(key)), value);
}

function joinSummary(summary: string, value: string): string {
  return `${summary.length}:${summary}${value}`;
}

/** The sealed parts of what {@link sealRecord} made. No record without a summary begins with digits and a colon. */
export function splitSummary(stored: string): { summary?: string; value: string } {
  const length = /^\d+(?=:)/.exec(stored)?.[0];
  if (length === undefined) return { value: stored };
  const begin = length.length + 1;
  const end = begin + Number(length);
  return { summary: stored.slice(begin, end), value: stored.slice(end) };
}

/** The parts of a grant's record that are not its own text. */
export async function besideGrant(
  nameOf: (...parts: string[]) => Promise<string>,
  grant: Grant,
): Promise<Required<Pick<WriteOptions, "summary" | "tags">>> {
  const summary = summarizeGrant(grant);
  return { summary: encodeSummary(summary), tags: await grantTags(nameOf, { ...grant, state: markedState(summary) }) };
}

/**
 * The tags that a grant is stored with, and by which a query finds it. Its state is one only where no clock decides it, or
 * where it may become `needs_login`.
 *
 * @param nameOf names the parts of a tag
 */
export async function grantTags(
  nameOf: (...parts: string[]) => Promise<string>,
  { profile, server, issuer, state, isFailing }: GrantFilter & Pick<ConnectionQuery, "state"> & { isFailing?: boolean },
): Promise<Record<string, string>> {
  const tags: Record<string, string> = {};
  if (profile !== undefined) tags["profile"] = await nameOf("tag", "profile", profile);
  if (server !== undefined) tags["server"] = await nameOf("tag", "server", server);
  if (profile !== undefined && server !== undefined) tags["login"] = await nameOf("tag", "login", profile, server);
  if (issuer !== undefined) tags["issuer"] = await nameOf("tag", "issuer", issuer);
  if (state === "needs_login" || state === "lost_refresh") tags["state"] = await nameOf("tag", "state", state);
  if (isFailing) tags["failing"] = await nameOf("tag", "failing");
  return tags;
}

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
  for await (const record of scanRecords(driver, LASTING)) {
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
  for await (const { value } of scanRecords(driver, [...LASTING, "login"])) {
    const id = orUndefined(() => parseSealed(splitSummary(value).value).key) ?? "none";
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
  // How long it was to stay is not known any more.
  const expiresInMs = key.kind === "revocation" ? UNREVOKED_MS : undefined;
  const stored = await driver.put(key, await sealRecord(ring, key, text, summary), version, { tags, expiresInMs });
  return stored === undefined ? "changed" : "resealed";
}

async function* scanRecords(driver: StoreDriver, kinds: readonly RecordKind[]): AsyncGenerator<StoredRecord> {
  for (const kind of kinds) for await (const { items } of scanPages(driver, { kind })) yield* items;
}

function unusableRecordError({ location }: StoreDriver, { key }: StoredRecord, cause: unknown): AgentAuthError {
  const reason = errorMessage(cause);
  const message = `the record ${key.kind} ${quote(key.id)} in ${location} cannot be opened: ${reason}`;
  return new AgentAuthError("store_failed", message, { class: "store", cause });
}
