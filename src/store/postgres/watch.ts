import type { RecordKey, StoreDriver } from "../driver/driver.js";
import { engineError } from "./engine-error.js";
import { pause } from "./pause.js";
import { fromHex } from "./stored-text.js";

/** Reports the notifications of a channel until the signal fires; `onGap`: it listens, and may have missed some before. */
type Listen = (
  channel: string,
  onMessage: (message: string) => void,
  onGap: () => void,
  signal: AbortSignal,
) => Promise<void>;

/** `Pool` of `pg`, as far as it is used here. */
interface Pool {
  /** The class of its connections. */
  readonly Client: new (
    options: unknown,
  ) => Client;
  readonly options: unknown;
}

interface Client {
  connect(): Promise<unknown>;
  query(text: string): Promise<unknown>;
  on(event: "notification", listener: (message: { channel: string; payload?: string }) => void): unknown;
  on(event: "error" | "end", listener: () => void): unknown;
  unref?(): void;
  end(): Promise<void>;
}

/** `sql` of `postgres`, as far as it is used here. */
interface Sql {
  listen(
    channel: string,
    onMessage: (message: string) => void,
    onListen: () => void,
  ): Promise<{ unlisten(): Promise<void> }>;
}

/** What a driver with NOTIFY has for its reports of changes. */
export interface Watcher {
  readonly watch: NonNullable<StoreDriver["watch"]>;
  /** Why reports do not arrive although the server accepted LISTEN; undefined until that is known. */
  problem(): string | undefined;
}

const RETRY_MS = 1000;
/** A notification that is about no record. */
const PROBE = "probe";
const UNDELIVERED =
  "notifications do not arrive on this connection, as behind PgBouncer in transaction mode: a near cache returns a login " +
  "that was changed elsewhere until its ttlMs";

/**
 * `watch` of a driver: the changes that the statements notify. Undefined for a client that cannot listen.
 *
 * A pooler in transaction mode accepts LISTEN and delivers nothing. So each listener sends a notification over another
 * connection, which must arrive.
 *
 * @param notify sends a notification to the channel over the connection of the statements
 * @param timeoutMs for how long that notification may be on its way
 */
export function watchBy(
  client: unknown,
  channel: string,
  { location, timeoutMs, notify }: { location: string; timeoutMs: number; notify(message: string): Promise<unknown> },
): Watcher | undefined {
  const listen = listenOf(client);
  if (listen === undefined) return undefined;
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

function listenOf(client: unknown): Listen | undefined {
  const { unsafe, listen, Client, options } = (client ?? {}) as Record<string, unknown>;
  if (typeof unsafe === "function" && typeof listen === "function") return listenWith(client as Sql);
  if (typeof Client === "function" && typeof options === "object") return listenBeside(client as Pool);
  return undefined;
}

/** It connects and listens again by itself. */
function listenWith(sql: Sql): Listen {
  return async (channel, onMessage, onGap, signal) => {
    const aborted = untilFired(signal);
    const begun = sql.listen(channel, onMessage, onGap);
    // A server that is away may let this wait for longer than the watch.
    const listening = await Promise.race([begun, aborted]);
    await (listening && aborted);
    begun.then(({ unlisten }) => unlisten()).catch(() => {});
  };
}

/** Listens on a connection that does not count among those of the pool, and does not keep the process alive. */
function listenBeside(pool: Pool): Listen {
  return async (channel, onMessage, onGap, signal) => {
    const aborted = untilFired(signal);
    while (!signal.aborted) {
      const client = new pool.Client(pool.options);
      const lost = new Promise<void>((resolve) => {
        client.on("error", resolve);
        client.on("end", resolve);
      });
      client.on("notification", ({ channel: of, payload = "" }) => {
        if (of === channel) onMessage(payload);
      });
      const listening = client.connect().then(() => {
        client.unref?.();
        return client.query(`LISTEN "${channel}"`).then(onGap);
      });
      await Promise.race([listening.then(() => lost).catch(() => {}), lost, aborted]);
      // A server that is away may let it wait.
      client.end().catch(() => {});
      if (!signal.aborted) await Promise.race([pause(RETRY_MS), aborted]);
    }
  };
}

function untilFired(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/** The key in a notification: kind, partition and id as the statements get them. */
function keyOf(message: string): RecordKey {
  const [kind = "", partition = "", id = ""] = message.split(" ");
  return { kind: kind as RecordKey["kind"], partition: fromHex(partition), id: fromHex(id) };
}
