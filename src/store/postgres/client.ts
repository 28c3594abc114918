import { usageError } from "../../errors.js";
import { escapeText } from "../../redact.js";
import { pause, type Row, type Subscribe, untilFired } from "../driver/engine.js";

/** A value of a statement. Everything is text, whose conversion the statement names, so that no client has to guess a type. */
export type Parameter = string | null;

/** Runs one statement with its values `$1`, `$2`, …; resolves to the rows, or to an object that has them. */
export type PostgresQuery = (text: string, values: Parameter[]) => PromiseLike<unknown>;

/** A client with a `query` method: `Pool` and `Client` of `pg`, PGlite. */
export interface QueryClient {
  /** Runs one statement. */
  query(text: string, values: Parameter[]): PromiseLike<QueryResult>;
}

/** What a {@link QueryClient} resolves to. */
export interface QueryResult {
  /** Objects with one property a column, in the order of the statement. */
  readonly rows: readonly unknown[];
}

/** A client with an `unsafe` method: `sql` of `postgres`. */
export interface UnsafeClient {
  /** Runs one statement; resolves to the rows. */
  unsafe(text: string, values: Parameter[]): PromiseLike<readonly unknown[]>;
}

/** The client of the application, or a function that runs a statement: one of the two. */
export interface PostgresAccess {
  /** A client. */
  readonly client?: QueryClient | UnsafeClient | undefined;
  /** A function. */
  readonly query?: PostgresQuery | undefined;
}

const EXPECTED =
  "pass client: a Pool or Client of pg, sql of postgres, or a PGlite; or query: (text, values) => Promise<{ rows }>";

/** `Pool` of `pg`, as far as it is used here: only that has time limits, and connections that it can replace. */
interface Pool {
  query(statement: { text: string; values?: Parameter[]; query_timeout: number }): Promise<QueryResult>;
  readonly idleCount: number;
  readonly waitingCount: number;
  readonly Client: new (options: unknown) => Connection;
  readonly options: unknown;
}

interface Connection {
  connect(): Promise<unknown>;
  query(text: string): Promise<unknown>;
  on(event: "notification", listener: (message: { channel: string; payload?: string }) => void): unknown;
  on(event: "error" | "end", listener: () => void): unknown;
  unref?(): void;
  end(): Promise<void>;
}

/** `sql` of `postgres`, as far as it is used here. */
interface Sql extends UnsafeClient {
  listen(
    channel: string,
    onMessage: (message: string) => void,
    onListen: () => void,
  ): Promise<{ unlisten(): Promise<void> }>;
}

/** What the driver uses of what the application passed. */
export interface Adapter {
  readonly query: PostgresQuery;
  /** Where the engine is, as the end of a sentence; empty if the client does not show it. */
  readonly address: string;
  /** Undefined for a client that cannot listen. */
  readonly listen?: Subscribe;
  /** Whether statements wait for a connection of a pool. */
  readonly isQueuing?: () => boolean;
}

const PROBE_MS = 500;
const RETRY_MS = 1000;

/**
 * The client by its shape.
 *
 * @param timeoutMs milliseconds after which a pool takes the connection of a statement for lost
 * @throws AgentAuthError `usage` if it is none of the known shapes
 */
export function chooseAdapter({ client, query }: PostgresAccess, timeoutMs: number): Adapter {
  if (typeof query === "function" && client === undefined) return { query, address: "" };
  const members = (query === undefined ? (client ?? {}) : {}) as Partial<Record<string, unknown>>;
  const has = (type: string, ...names: string[]) => names.every((name) => typeof members[name] === type);
  const address = describeAddress(members);
  if (has("function", "query") && has("number", "idleCount", "waitingCount")) {
    const pool = client as unknown as Pool;
    const listen = has("function", "Client") && has("object", "options") ? { listen: listenBeside(pool) } : {};
    const query: PostgresQuery = (text, values) => queryPool(pool, { text, values, query_timeout: timeoutMs });
    return { query, address, ...listen, isQueuing: () => pool.waitingCount > 0 };
  }
  if (has("function", "query")) {
    const queryable = client as QueryClient;
    return { query: (text, values) => queryable.query(text, values), address };
  }
  if (has("function", "unsafe")) {
    const sql = client as Sql;
    const listen = has("function", "listen") ? { listen: listenWith(sql) } : {};
    return { query: (text, values) => sql.unsafe(text, values), address, ...listen };
  }
  throw usageError("the client of PostgreSQL is of no known shape", EXPECTED);
}

/**
 * A network may forget connections without an end of them. A pool removes one when a statement has had no answer in time;
 * the idle ones beside it are looked at then, so that no later statement meets them.
 */
async function queryPool(pool: Pool, statement: Parameters<Pool["query"]>[0]): Promise<QueryResult> {
  try {
    return await pool.query(statement);
  } catch (error) {
    if ((error as Error | undefined)?.message === "Query read timeout") {
      const probe = () => pool.query({ text: "SELECT 1", query_timeout: PROBE_MS }).catch(() => {});
      for (let left = pool.idleCount; left > 0; left--) void probe();
    }
    throw error;
  }
}

/** It connects and listens again by itself. */
function listenWith(sql: Sql): Subscribe {
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
function listenBeside(pool: Pool): Subscribe {
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

/** The rows in what a client resolved to, each by the order of its columns, which a client may be set to rename. */
export function readRows(result: unknown): readonly Row[] {
  const rows = Array.isArray(result) ? result : (result as { rows?: unknown } | null | undefined)?.rows;
  if (!Array.isArray(rows)) throw usageError("the client of PostgreSQL returned no rows", EXPECTED);
  return rows.map((row) => Object.values(row as object));
}

/**
 * Where the engine is, as far as the client shows it in separate properties. A connection string is left alone: it may
 * hold a password.
 */
function describeAddress(client: Partial<Record<string, unknown>>): string {
  const { options } = client;
  const settings = typeof options === "object" && options !== null ? options : client;
  const { host, port, database } = settings as Record<string, unknown>;
  // `postgres` has a list of hosts and of ports.
  const [firstHost, firstPort] = [[host].flat()[0], [port].flat()[0]];
  if (typeof firstHost !== "string" || firstHost === "") return "";
  const at = typeof firstPort === "number" ? `${firstHost}:${firstPort}` : firstHost;
  return escapeText(typeof database === "string" ? ` at ${at}, database ${database}` : ` at ${at}`);
}
