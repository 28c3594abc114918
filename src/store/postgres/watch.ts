import type { RecordKey, StoreDriver } from "../driver/driver.js";
import { engineError } from "./call.js";
import { type Listen, pause } from "./client.js";
import { fromHex } from "./store-sql.js";

/** What a driver with NOTIFY has for its reports of changes. */
export interface Watcher {
  readonly watch: NonNullable<StoreDriver["watch"]>;
  /** Why reports do not arrive although the server accepted LISTEN; undefined until that is known. */
  problem(): string | undefined;
}

/** A notification that is about no record. */
const PROBE = "probe";
const UNDELIVERED =
  "notifications do not arrive on this connection, as behind PgBouncer in transaction mode: a near cache returns a login " +
  "that was changed elsewhere until its ttlMs";

/**
 * `watch` of a driver: the changes that the statements notify.
 *
 * A pooler in transaction mode accepts LISTEN and delivers nothing. So each listener sends a notification over another
 * connection, which must arrive.
 *
 * @param notify sends a notification to the channel over the connection of the statements
 * @param timeoutMs for how long that notification may be on its way
 */
export function watchBy(
  listen: Listen,
  channel: string,
  { location, timeoutMs, notify }: { location: string; timeoutMs: number; notify(message: string): Promise<unknown> },
): Watcher {
  let isUndelivered = false;
  return {
    problem: () => (isUndelivered ? UNDELIVERED : undefined),
    async watch(onChange, onGap, signal) {
      if (signal.aborted) return;
      let hasArrived = false;
      const probe = async () => {
        hasArrived = false;
        await notify(PROBE);
        await pause(timeoutMs);
        if (!signal.aborted) isUndelivered = !hasArrived;
      };
      const onMessage = (message: string) => {
        if (signal.aborted) return;
        hasArrived = true;
        isUndelivered = false;
        if (message !== PROBE) onChange(keyOf(message));
      };
      const onListen = () => {
        onGap();
        // A server that does not answer says nothing about the connection.
        probe().catch(() => {});
      };
      await listen(channel, onMessage, onListen, signal).catch((thrown: unknown) => {
        throw engineError(thrown, location);
      });
    },
  };
}

/** The key in a notification: kind, partition and id as the statements get them. */
function keyOf(message: string): RecordKey {
  const [kind = "", partition = "", id = ""] = message.split(" ");
  return { kind: kind as RecordKey["kind"], partition: fromHex(partition), id: fromHex(id) };
}
