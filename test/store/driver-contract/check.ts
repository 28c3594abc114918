import { isAgentAuthError } from "../../../src/errors.js";
import { quote } from "../../../src/redact.js";
import type { Version } from "../../../src/store/driver/driver.js";

/** A rule of the contract, as a sentence, that a driver broke. */
export class ContractViolation extends Error {
  override readonly name = "ContractViolation";

  constructor(rule: string, expected: string, came: string) {
    super(`${rule}\n  expected: ${expected}\n  came: ${came}`);
  }
}

/** Fails unless a condition holds. */
export function check(rule: string, holds: boolean, expected: string, came: unknown): asserts holds {
  if (!holds) throw new ContractViolation(rule, expected, showValue(came));
}

/** Fails unless two values are equal as JSON, whatever the order of their names; a name with `undefined` is none. */
export function checkEqual(rule: string, came: unknown, expected: unknown): void {
  check(rule, sortKeys(came) === sortKeys(expected), showValue(expected), came);
}

/** Fails unless a value is there, and returns it. */
export function checkPresent<T>(rule: string, came: T | undefined, expected: string): T {
  check(rule, came !== undefined, expected, came);
  return came;
}

/** Fails unless exactly one of several has succeeded, and returns it. */
export function checkOne<T>(rule: string, winners: readonly T[]): T {
  check(rule, winners.length === 1, "one", winners);
  return winners[0] as T;
}

/** Fails unless an operation fails with an `AgentAuthError` that has these properties. */
export async function checkRejected(
  rule: string,
  work: Promise<unknown>,
  wanted: { code: string; class: string; retryable: boolean },
): Promise<void> {
  const outcome = await work.then(
    (value) => `no error, but ${showValue(value)}`,
    (error: unknown) => {
      if (!isAgentAuthError(error)) return String(error);
      return { code: error.code, class: error.class, retryable: error.retryable };
    },
  );
  checkEqual(rule, outcome, wanted);
}

/** Fails if work is not done in `ms` milliseconds: a contract that waits for ever names no rule. */
export async function within<T>(ms: number, rule: string, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new ContractViolation(rule, `an outcome within ${ms} ms`, "none")), ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** Repeats an attempt until it is true, and fails if it is not in `ms` milliseconds. */
export async function eventually(ms: number, rule: string, attempt: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + ms;
  while (!(await within(ms, rule, attempt()))) {
    check(rule, performance.now() < end, `an outcome within ${ms} ms`, "none");
    await sleep(20);
  }
}

/** Fails unless the attempts of the claims under one key rise. */
export function checkRising(attempts: readonly number[]): void {
  const rising = attempts.filter((each, index) => Number.isSafeInteger(each) && each > (attempts[index - 1] ?? 0));
  checkEqual("each claim has a higher number than all before it under its key", attempts, rising);
}

/** Fails if one of the versions of one key was used twice. */
export function checkUnique(versions: readonly Version[]): void {
  checkEqual("a version is never used twice for one key", versions, [...new Set(versions)]);
}

/** Resolves after some milliseconds. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function showValue(value: unknown): string {
  return value === undefined ? "undefined" : quote(value, 400);
}

function sortKeys(value: unknown): string | undefined {
  return JSON.stringify(value, (_name, part: unknown) => {
    if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
