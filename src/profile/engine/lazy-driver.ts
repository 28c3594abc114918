import { isAgentAuthError } from "../../errors.js";
import { eachOperation } from "../../store/driver/bounded-driver.js";
import type { StoreDriver } from "../../store/driver/driver.js";

export interface ConnectedDriver {
  driver: StoreDriver;
  close(): Promise<void>;
}

/** What a driver is before it is connected. */
export interface LazyEngine {
  system: string;
  location: string;
  /** Connects and fails at once if the engine cannot be reached. */
  connect(): Promise<ConnectedDriver>;
}

/** A driver that can be closed; the next operation connects again. */
export interface ClosableDriver extends StoreDriver {
  close(): Promise<void>;
  health: NonNullable<StoreDriver["health"]>;
}

/** An open connection would keep the process of a program alive that is done. */
const IDLE_MS = 1000;

/** A connection that operations use. */
interface Used {
  opened: Promise<ConnectedDriver>;
  running: number;
  timer: ReturnType<typeof setTimeout> | undefined;
}

/**
 * A driver that connects at its first operation, closes the connection when it was idle for a second, and connects again
 * after the engine did not answer.
 */
export function lazyDriver({ system, location, connect }: LazyEngine, idleMs: number = IDLE_MS): ClosableDriver {
  let current: Used | undefined;
  const end = async (used: Used) => {
    if (current === used) current = undefined;
    clearTimeout(used.timer);
    const opened = await used.opened.catch(() => undefined);
    await opened?.close().catch(() => {});
  };
  const use = async <T>(work: (driver: StoreDriver) => Promise<T>): Promise<T> => {
    current ??= { opened: connect(), running: 0, timer: undefined };
    const used = current;
    used.running++;
    clearTimeout(used.timer);
    try {
      return await work((await used.opened).driver);
    } catch (error) {
      // Others may still wait on this connection, but no new operation begins there.
      if (current === used && (!isAgentAuthError(error) || error.code === "store_unavailable")) current = undefined;
      throw error;
    } finally {
      used.running--;
      if (used.running === 0) {
        if (current === used) used.timer = setTimeout(() => void end(used), idleMs);
        else void end(used);
      }
    }
  };
  return {
    system,
    location,
    ...eachOperation((signal, operation) => use((driver) => operation(driver, { signal }))),
    health: (...given) =>
      use(async (driver) => (await driver.health?.(...given)) ?? { clockAheadMs: 0, risks: [], errors: [], facts: {} }),
    close: async () => {
      if (current) await end(current);
    },
  };
}
