import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { follow, untilAborted } from "../../http/deadline.js";
import type { StoreDriver } from "./driver.js";

/** A driver whose operations end after a time, also where those of the given one would not. */
export function boundedDriver(driver: StoreDriver, timeoutMs: number): StoreDriver {
  const bounded = async <T>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const call = follow(signal, timeoutMs, () => unanswered(driver, timeoutMs));
    try {
      return await untilAborted(work(call.signal), call.signal);
    } finally {
      call.release();
    }
  };
  const { watch, health, touch } = driver;
  return {
    system: driver.system,
    location: driver.location,
    get: (key, options) => bounded(options?.signal, (signal) => driver.get(key, { signal })),
    ...(touch && {
      touch: (key, options) => bounded(options?.signal, (signal) => touch.call(driver, key, { signal })),
    }),
    put: (key, value, expected, options) =>
      bounded(options?.signal, (signal) => driver.put(key, value, expected, { ...options, signal })),
    delete: (key, expected, options) => bounded(options?.signal, (signal) => driver.delete(key, expected, { signal })),
    scan: (filter, page, options) => bounded(options?.signal, (signal) => driver.scan(filter, page, { signal })),
    claim: (key, claim, options) => bounded(options?.signal, (signal) => driver.claim(key, claim, { signal })),
    extend: (key, claim, options) => bounded(options?.signal, (signal) => driver.extend(key, claim, { signal })),
    release: (key, claim, options) => bounded(options?.signal, (signal) => driver.release(key, claim, { signal })),
    ...(watch && { watch: watch.bind(driver) }),
    ...(health && { health: health.bind(driver) }),
  };
}

/** The error for an engine that did not answer in time. */
export function unanswered({ system, location }: StoreDriver, ms: number): AgentAuthError {
  const message = `${system} at ${location} did not answer in ${Math.round(ms / 100) / 10} s`;
  return new AgentAuthError("store_unavailable", message, { class: "unavailable" });
}

/** Whether the answer of an engine is missing: what was asked for may have happened. */
export function isUnanswered(error: unknown): boolean {
  return isAgentAuthError(error) && error.class === "unavailable";
}
