import { AgentAuthError, abortedError, isAgentAuthError } from "../../errors.js";
import { followSignal, untilAborted } from "../../http/deadline.js";
import type { DriverCallOptions, StoreDriver } from "./driver.js";

type Operations = Pick<StoreDriver, "get" | "put" | "delete" | "scan" | "claim" | "extend" | "release">;

/** Carries out an operation with a driver and a signal that it chooses. */
type Around = <T>(
  signal: AbortSignal | undefined,
  operation: (driver: StoreDriver, options: DriverCallOptions) => Promise<T>,
) => Promise<T>;

/** The operations of a driver, each of which is carried out by `around`. */
export function eachOperation(around: Around): Operations {
  return {
    get: (key, given) => around(given?.signal, (driver, options) => driver.get(key, options)),
    put: (key, value, expected, given) =>
      around(given?.signal, (driver, options) => driver.put(key, value, expected, { ...given, ...options })),
    delete: (key, expected, given) => around(given?.signal, (driver, options) => driver.delete(key, expected, options)),
    scan: (filter, page, given) => around(given?.signal, (driver, options) => driver.scan(filter, page, options)),
    claim: (key, claim, given) => around(given?.signal, (driver, options) => driver.claim(key, claim, options)),
    extend: (key, claim, given) => around(given?.signal, (driver, options) => driver.extend(key, claim, options)),
    release: (key, claim, given) => around(given?.signal, (driver, options) => driver.release(key, claim, options)),
  };
}

/** A driver whose operations end after a time, also where those of the given one would not. */
export function boundedDriver(driver: StoreDriver, timeoutMs: number): StoreDriver {
  const { system, location, watch, health, touch } = driver;
  const late = () => unansweredError(`${system} at ${location}`, timeoutMs);
  const around: Around = (signal, operation) =>
    inTime({ signal, timeoutMs, late }, (limit) => operation(driver, { signal: limit }));
  return {
    system,
    location,
    ...eachOperation(around),
    ...(touch && { touch: (key, given) => around(given?.signal, (_, options) => touch.call(driver, key, options)) }),
    ...(watch && { watch: watch.bind(driver) }),
    ...(health && { health: health.bind(driver) }),
  };
}

export interface CallLimit {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs: number;
  /** The error after that time. */
  late(): AgentAuthError;
}

/** A constant, because an error would be made for each call. */
const ENDED = "the call has ended";

/**
 * Ends the wait for work by a signal or after a time. What the work sends may happen after that; its own signal fires at
 * the end in any case, so that nothing is sent later.
 */
export async function inTime<T>(
  { signal, timeoutMs, late }: CallLimit,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = followSignal(signal, timeoutMs, late);
  try {
    if (signal?.aborted) throw abortedError(signal);
    return await untilAborted(work(limit.signal), limit.signal);
  } catch (error) {
    const failure = limit.signal.aborted ? abortedError(limit.signal) : error;
    limit.abort(ENDED);
    throw failure;
  } finally {
    limit.release();
  }
}

/** The error for an engine that cannot be used now: the same call may succeed later. */
export function unavailableError(message: string, cause?: unknown): AgentAuthError {
  return new AgentAuthError("store_unavailable", message, { class: "unavailable", remedy: { action: "retry" }, cause });
}

/** The error for an engine that did not respond in time. */
export function unansweredError(engine: string, ms: number): AgentAuthError {
  return unavailableError(`${engine} did not answer in ${ms / 1000} s`);
}

/** Whether the response of an engine is missing: what was requested may have happened. */
export function isUnanswered(error: unknown): boolean {
  return isAgentAuthError(error) && error.class === "unavailable";
}
