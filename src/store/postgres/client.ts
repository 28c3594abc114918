import { AgentAuthError } from "../../errors.js";
import { escapeText } from "../../redact.js";

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

/** A row: its columns in the order of the statement. A client may be set to rename columns. */
export type Row = readonly Parameter[];

const EXPECTED =
  "pass client: a Pool or Client of pg, sql of postgres, or a PGlite; or query: (text, values) => Promise<{ rows }>";

/** `Pool` of `pg`, as far as it is used here. */
interface Pool {
  query(statement: { text: string; values?: Parameter[]; query_timeout: number }): Promise<QueryResult>;
  readonly idleCount: number;
  readonly waitingCount: number;
}

const PROBE_MS = 500;

/**
 * How to run a statement with what the application passed.
 *
 * @param timeoutMs milliseconds after which a pool is told that the connection of a statement is lost
 * @throws AgentAuthError `usage` if it is none of the known shapes
 */
export function queryOf({ client, query }: PostgresAccess, timeoutMs: number): PostgresQuery {
  if (typeof query === "function" && client === undefined) return query;
  if (query === undefined && client !== null && (typeof client === "object" || typeof client === "function")) {
    if (isPool(client)) return (text, values) => queryPool(client, { text, values, query_timeout: timeoutMs });
    if ("query" in client && typeof client.query === "function") return (text, values) => client.query(text, values);
    if ("unsafe" in client && typeof client.unsafe === "function") return (text, values) => client.unsafe(text, values);
  }
  throw usage("the client of PostgreSQL is of no known shape");
}

/** Whether a client is a `Pool` of `pg`: only that has time limits, and connections that it can replace. */
export function isPool(client: unknown): client is Pool {
  const { query, idleCount, waitingCount } = (client ?? {}) as Partial<Pool>;
  return typeof query === "function" && typeof idleCount === "number" && typeof waitingCount === "number";
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

/** The rows in what a client resolved to. */
export function rowsOf(result: unknown): readonly Row[] {
  const rows = Array.isArray(result) ? result : (result as { rows?: unknown } | null | undefined)?.rows;
  if (!Array.isArray(rows)) throw usage("the client of PostgreSQL returned no rows");
  return rows.map((row) => Object.values(row as object));
}

/**
 * Where the engine is, as far as the client shows it in separate properties. A connection string is left alone: it may
 * hold a password.
 */
export function addressOf(client: unknown): string {
  const holder = (client ?? {}) as { options?: unknown };
  const settings = (typeof holder.options === "object" && holder.options !== null ? holder.options : holder) as object;
  const { host, port, database } = settings as Record<string, unknown>;
  // `postgres` has a list of hosts and of ports.
  const [firstHost, firstPort] = [[host].flat()[0], [port].flat()[0]];
  if (typeof firstHost !== "string" || firstHost === "") return "";
  const at = typeof firstPort === "number" ? `${firstHost}:${firstPort}` : firstHost;
  return escapeText(typeof database === "string" ? ` at ${at}, database ${database}` : ` at ${at}`);
}

function usage(message: string): AgentAuthError {
  return new AgentAuthError("usage", message, { class: "usage", hint: EXPECTED });
}
