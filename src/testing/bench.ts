import { isAgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import type { LeaseClaim, RecordKey, RecordKind, StoreDriver, StoredRecord, Version } from "../store/driver/driver.js";

/** A rule of the contract that a driver broke. */
export class ContractViolation extends Error {
  override readonly name = "ContractViolation";
  /** The rule, as a sentence. */
  readonly rule: string;

  constructor(rule: string, expected: string, came: string) {
    super(`${rule}\n  expected: ${expected}\n  came: ${came}`);
    this.rule = rule;
  }
}

/** Fails unless a condition holds. */
export function check(rule: string, holds: boolean, expected: string, came: unknown): asserts holds {
  if (!holds) throw new ContractViolation(rule, expected, shown(came));
}

/** Fails unless two values are equal as JSON, whatever the order of their names; a name with `undefined` is none. */
export function checkEqual(rule: string, came: unknown, expected: unknown): void {
  check(rule, sorted(came) === sorted(expected), shown(expected), came);
}

/** Fails unless a value is there, and returns it. */
export function checkPresent<T>(rule: string, came: T | undefined, expected: string): T {
  check(rule, came !== undefined, expected, came);
  return came;
}

/** Fails unless an operation fails with an `AgentAuthError` that has these properties. */
export async function checkRejected(
  rule: string,
  work: Promise<unknown>,
  wanted: { code: string; class: string; retryable: boolean },
): Promise<void> {
  const outcome = await work.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  const expected = `AgentAuthError ${shown(wanted)}`;
  if ("value" in outcome) throw new ContractViolation(rule, expected, `no error, but ${shown(outcome.value)}`);
  const { error } = outcome;
  if (!isAgentAuthError(error)) throw new ContractViolation(rule, expected, quote(String(error)));
  const { code, class: kind, retryable } = error;
  checkEqual(rule, { code, class: kind, retryable }, wanted);
}

/** Fails if work is not done in `ms` milliseconds: a contract that waits for ever names no rule. */
export async function within<T>(ms: number, rule: string, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    const violation = new ContractViolation(rule, `an outcome within ${ms} ms`, "none");
    timer = setTimeout(() => reject(violation), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Repeats an attempt until it is true, and fails if it is not in `ms` milliseconds. */
export async function eventually(ms: number, rule: string, attempt: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    if (await within(ms, rule, attempt())) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new ContractViolation(rule, `an outcome within ${ms} ms`, "none");
}

function shown(value: unknown): string {
  return value === undefined ? "undefined" : quote(value, 400);
}

function sorted(value: unknown): string | undefined {
  return JSON.stringify(value, (_name, part: unknown) => {
    if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

/** What a case of the contract may need beside a driver. */
export type Need = "openElsewhere" | "kill" | "restart" | "broken" | "watch" | "health";

/** Cases of the contract, each a test: by its name what it does. */
export type Cases = Readonly<Record<string, (bench: Bench) => Promise<void>>>;

/** What a case works with. */
export interface Bench {
  /** A driver of the engine, which is closed after the case, as all that it opens. */
  readonly driver: StoreDriver;
  /** The key of a grant that no other case uses. */
  readonly key: RecordKey;
  /** Opens another driver of the engine. */
  open(): Promise<StoreDriver>;
  /** Lets at least this many milliseconds pass on the clock of the engine. */
  wait(ms: number): Promise<void>;
  openElsewhere(job: DriverJob): Promise<unknown>;
  kill(): Promise<void>;
  restart(): Promise<void>;
}

/** What one of several processes does at the same time as the others. */
export interface DriverJob {
  /** `increment`: adds 1 to a number. The others: does it once for each key, and reports where it succeeded. */
  readonly name: "increment" | "create" | "delete" | "claim";
  /** The partition of its records. */
  readonly partition: string;
  /** The number of this process. */
  readonly process: number;
  /** How many processes do the same. */
  readonly processes: number;
  /** How often. */
  readonly times: number;
}

/** Longer than any case takes, also on a busy machine. */
export const LONG_MS = 3_600_000;

/** The limit of a wait for something that happens soon; only a broken driver reaches it. */
export const SOON_MS = 30_000;

/** A name that no other case uses, in this run or another. */
export function freshName(): string {
  return `kit-${crypto.randomUUID()}`;
}

/** A key that no other case uses. */
export function freshKey(kind: RecordKind = "grant"): RecordKey {
  return { kind, partition: freshName(), id: "one" };
}

/** A claim of a lease that no case outlives. */
export function claimOf(owner: string, ttlMs = LONG_MS): LeaseClaim {
  return { owner, ttlMs, note: `note of ${owner}` };
}

/** Creates a record, and fails if there is one. */
export async function create(driver: StoreDriver, key: RecordKey, value = "text", tags = {}): Promise<Version> {
  const version = await driver.put(key, value, undefined, { tags });
  return checkPresent("put without an expected version creates a record", version, "a version");
}

/** Replaces a record, and fails if it does not have the expected version. */
export async function replace(
  driver: StoreDriver,
  key: RecordKey,
  value: string,
  expected: Version,
  tags?: Readonly<Record<string, string>>,
): Promise<Version> {
  const version = await driver.put(key, value, expected, { tags });
  return checkPresent("put with the stored version replaces the record", version, "a version");
}

/** Fails unless this record is stored. */
export async function checkStored(rule: string, driver: StoreDriver, key: RecordKey, version: Version, value = "text") {
  checkEqual(rule, await driver.get(key), { key, version, value });
}

/** Takes a lease, and fails if it is not free. */
export async function take(driver: StoreDriver, key: RecordKey, claim: LeaseClaim) {
  const answer = await driver.claim(key, claim);
  check("claim takes a lease that is free", answer.held, "held: true", answer);
  return answer;
}

/** Asks for a lease that another owner holds, and fails if it is free. */
export async function claimRefused(driver: StoreDriver, key: RecordKey, claim = claimOf("asks")) {
  const answer = await driver.claim(key, claim);
  check("claim does not take a lease that another owner holds", !answer.held, "held: false", answer);
  return answer;
}

/** Fails unless the attempts of the claims under one key rise. */
export function checkRising(attempts: readonly number[]): void {
  const rises = attempts.every(
    (attempt, index) => Number.isSafeInteger(attempt) && attempt > (attempts[index - 1] ?? 0),
  );
  check("each claim has a higher number than all before it under its key", rises, "rising whole numbers", attempts);
}

/** Fails if one of the versions of one key was used twice. */
export function checkUnique(versions: readonly Version[]): void {
  const isUnique = new Set(versions).size === versions.length;
  check("a version is never used twice for one key", isUnique, `${versions.length} versions`, versions);
}

/** All records that a scan returns, and the numbers of records in its parts. */
export async function scanAll(
  driver: StoreDriver,
  filter: Parameters<StoreDriver["scan"]>[0],
  options: { limit?: number; between?: () => Promise<void> } = {},
): Promise<StoredRecord[]> {
  const { limit = 100, between } = options;
  const found: StoredRecord[] = [];
  let cursor: string | undefined;
  do {
    const page = await driver.scan(filter, { limit, cursor });
    const size = page.items.length;
    check("scan returns at most as many records as the limit", size <= limit, `at most ${limit}`, size);
    found.push(...page.items);
    check("scan comes to an end", page.cursor === undefined || page.cursor !== cursor, "another cursor", page.cursor);
    cursor = page.cursor;
    await between?.();
  } while (cursor !== undefined);
  return found;
}
