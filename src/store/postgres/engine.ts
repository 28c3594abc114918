import { AgentAuthError, abortedError, isAgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import type { DriverHealth, RecordKey } from "../driver/driver.js";
import type { EngineCall, Row, Subscribe } from "../driver/engine.js";
import { engineCalls, healthReport, pause, thrownTexts, unavailableError } from "../driver/engine.js";
import { type Parameter, type PostgresQuery, readRows } from "./client.js";
import { fromHex, SCHEMA_VERSION, type TableNames } from "./store-sql.js";

/** Appendix A of PostgreSQL's manual: five digits or upper-case letters. System errors such as `EPIPE` look the same. */
const SQLSTATE = /^(?!E[A-Z]{4})[\dA-Z]{5}$/;

/**
 * Conditions that pass: the connection (08), resources such as connections and disk (53), a server that stops or starts
 * (57P0x), a time limit of the server (57014, 55P03), a standby that a failover has not reached yet (25006), and a conflict
 * with another transaction (40).
 */
const PASSING = /^(08...|53...|57P0.|57014|55P03|25006|40...)$/;

/** Another transaction was in the way, and the statement has changed nothing: the same one may succeed at once. */
const CONFLICT = /^(40001|40P01)$/;

const MISSING = /^(42P01|3F000)$/;

/** A message of a client that cannot be an address or a value: words alone. */
const WORDS = /^[A-Za-z][A-Za-z ,']{2,79}$/;

/**
 * An error of the client or of the server as one of the store. Only a message of the server is quoted: that of a client may
 * have the connection string, and its properties may have the values of the statement.
 */
export function engineError(error: unknown, location: string): AgentAuthError {
  if (isAgentAuthError(error)) return error;
  const code = readCode(error);
  const { name, message: text } = thrownTexts(error);
  const isOfServer = SQLSTATE.test(code);
  // What the language throws: the client is not set up right, for example with an invalid URL.
  const isMistake = error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;
  const shown = code || (WORDS.test(text) ? text : error instanceof Error ? name : typeof error);
  const what = isOfServer
    ? `the server refused the statement (${code}): ${quote(text)}`
    : `${isMistake ? "the client failed" : "the server cannot be reached"} (${shown})`;
  const message = `${location}: ${what}`;
  const cause = Object.assign(new Error(what), code && { code });
  if (isOfServer ? PASSING.test(code) : !isMistake) return unavailableError(message, cause);
  const remedy = MISSING.test(code) ? ({ action: "inspect", subject: "tables" } as const) : undefined;
  return new AgentAuthError("store_failed", message, { class: "store", hint: hintFor(code), remedy, cause });
}

function hintFor(code: string): string | undefined {
  if (MISSING.test(code)) return "run the SQL that storeSql() returns on this database, with the same table";
  if (code.startsWith("28")) return "the server does not accept the user name or the password of the client";
  if (code === "3D000") return "name a database that exists, in the settings of the client";
  if (code === "42501") return "let this role SELECT, INSERT, UPDATE and DELETE both tables, and USE the sequence";
  return undefined;
}

function readCode(error: unknown): string {
  return /^\w{1,40}$/.exec(thrownTexts(error).code)?.[0] ?? "";
}

export type RunStatement = (text: string, values: readonly Parameter[]) => Promise<readonly Row[]>;

/** How often a statement is tried again that another transaction was in the way of, and the longest pause before that. */
const RETRIES = 3;
const RETRY_MS = 30;

/** How to carry out operations with a client. Every error of the client becomes one of the store. */
export function statementCalls(query: PostgresQuery, location: string, timeoutMs: number): EngineCall<RunStatement> {
  const session =
    (signal: AbortSignal): RunStatement =>
    async (text, values) => {
      for (let tries = 0; ; tries++) {
        if (signal.aborted) throw abortedError(signal);
        try {
          return readRows(await query(text, [...values]));
        } catch (error) {
          if (!CONFLICT.test(readCode(error)) || tries === RETRIES) throw error;
          await pause(RETRY_MS * 2 ** tries * Math.random());
        }
      }
    };
  return engineCalls({ name: location, timeoutMs, session, failure: (thrown) => engineError(thrown, location) });
}

/** A notification that is about no record. */
const PROBE = "probe";
const UNDELIVERED =
  "notifications do not arrive on this connection, as behind PgBouncer in transaction mode: a near cache returns a login " +
  "that was changed elsewhere until its ttlMs";

/**
 * Listens, and looks whether anything arrives: a pooler in transaction mode accepts LISTEN and delivers nothing. So each
 * listener sends a notification over another connection, which must arrive.
 *
 * @param notify sends a notification to the channel over the connection of the statements
 * @param timeoutMs for how long that notification may be on its way
 * @returns `problem`: why reports do not arrive although the server accepted LISTEN; undefined until that is known
 */
export function checkedListen(listen: Subscribe, notify: (message: string) => Promise<unknown>, timeoutMs: number) {
  let isUndelivered = false;
  const subscribe: Subscribe = (channel, onMessage, onGap, signal) => {
    let hasArrived = false;
    const probe = async () => {
      hasArrived = false;
      await notify(PROBE);
      await pause(timeoutMs);
      if (!signal.aborted) isUndelivered = !hasArrived;
    };
    const onArrival = (message: string) => {
      if (signal.aborted) return;
      hasArrived = true;
      isUndelivered = false;
      if (message !== PROBE) onMessage(message);
    };
    const onListen = () => {
      onGap();
      // A server that does not answer says nothing about the connection.
      probe().catch(() => {});
    };
    return listen(channel, onArrival, onListen, signal);
  };
  return { subscribe, problem: () => (isUndelivered ? UNDELIVERED : undefined) };
}

/** The key in a notification: kind, partition and id as the statements get them. */
export function notifiedKey(message: string): RecordKey {
  const [kind = "", partition = "", id = ""] = message.split(" ");
  return { kind: kind as RecordKey["kind"], partition: fromHex(partition), id: fromHex(id) };
}

const OLDEST = 130_000;

/** The columns of each table, as {@link storeSql} creates them. */
const COLUMNS = {
  record: ["kind", "partition", "id", "version", "value", "tags", "expires_at"],
  lease: ["kind", "partition", "id", "attempt", "owner", "note", "claimed_at", "held_until", "released_at"],
};
const NOT_RUN = "the SQL of the store was not run on this database";
const RIGHTS = ["SELECT", "INSERT", "UPDATE", "DELETE"];

/** What the catalog says of a table: persistence (`u`: it is emptied when the server was killed), columns, missing rights. */
function lookAt(table: string, name: string): string {
  const missing = RIGHTS.map((right) => `CASE WHEN has_table_privilege(oid, '${right}') THEN NULL ELSE '${right}' END`);
  const columns = `SELECT string_agg(attname::text, ' ') FROM pg_attribute
    WHERE attrelid = oid AND attnum > 0 AND NOT attisdropped`;
  const of = (what: string) => `(SELECT ${what} FROM pg_class WHERE oid = to_regclass(${table}::text))`;
  return `${of("relpersistence::text")} AS ${name}_persistence, ${of(`(${columns})`)} AS ${name}_columns,
${of(`concat_ws(', ', ${missing.join(", ")})`)} AS ${name}_rights, ${of("row_security_active(oid)::text")} AS ${name}_policies`;
}

// Of a standby that this role may not look at, the state is null: it is asynchronous if no standby is synchronous.
const LOOK = `SELECT current_setting('server_version') AS version, current_setting('server_version_num') AS number,
current_setting('server_encoding') AS encoding, current_setting('fsync') AS fsync,
current_setting('full_page_writes') AS pages, current_setting('synchronous_commit') AS commits,
current_setting('synchronous_standby_names') AS standbys, pg_is_in_recovery()::text AS standby,
obj_description(to_regclass($1::text), 'pg_class') AS comment,
floor(extract(epoch from clock_timestamp()) * 1000)::bigint::text AS now,
(SELECT count(*)::text FROM pg_stat_replication WHERE
  coalesce(sync_state, CASE WHEN current_setting('synchronous_standby_names') = '' THEN 'async' END)
    IN ('async', 'potential')) AS behind,
CASE WHEN to_regclass($3::text) IS NULL THEN 'missing'
  WHEN has_sequence_privilege(to_regclass($3::text), 'USAGE') THEN 'usable' ELSE 'forbidden' END AS sequence,
${lookAt("$1", "record")}, ${lookAt("$2", "lease")}`;

/**
 * Looks at the server. What it reads needs no privilege.
 *
 * @param problems what the driver has noticed: undefined where it has not
 */
export async function engineHealth(
  run: RunStatement,
  { record, lease, sequence, plain }: TableNames,
  problems: readonly (string | undefined)[],
): Promise<DriverHealth> {
  const before = Date.now();
  const [row = []] = await run(LOOK, [record, lease, sequence]);
  const [version, number, encoding, fsync, pages, commits, standbys, standby, comment, now, behind, counter] = row;
  // The clock of the engine was read at about the middle of the round trip.
  const clockAheadMs = Math.round((before + Date.now()) / 2 - Number(now));
  const schema = /, version (\d+):/.exec(comment ?? "")?.[1];
  const tables = [
    { name: plain, columns: COLUMNS.record, look: row.slice(12, 16) },
    { name: `${plain}_lease`, columns: COLUMNS.lease, look: row.slice(16, 20) },
  ];
  const isMissing = row[12] == null;
  const unlogged = tables.filter(({ look }) => look[0] === "u");
  const risks = [
    fsync !== "on" && "fsync is off: a crash of the machine may lose records, or all of them",
    pages !== "on" && "full_page_writes is off: a crash of the machine may damage the tables",
    Number(behind) > 0 &&
      `asynchronous standbys: ${behind}: a failover to one of them may lose the newest logins, and then refresh tokens may be used twice`,
    ...unlogged.map(({ name }) => `the table ${name} is unlogged: a crash of the server empties it`),
    ...problems,
  ];
  const errors = [
    Number(number) < OLDEST && "PostgreSQL 13 or later is needed",
    encoding !== "UTF8" && "the encoding of the database is not UTF8, so that some texts cannot be stored",
    isYes(standby) && "the server is a standby: it cannot be written to, and reads may be out of date",
    ...(isMissing ? [] : tables.flatMap(tableErrors)),
    isMissing && `the table ${plain} is missing: ${NOT_RUN}`,
    !isMissing && counter === "missing" && `the sequence ${plain}_version is missing: ${NOT_RUN}`,
    counter === "forbidden" && `this role may not use the sequence ${plain}_version`,
    schema !== undefined && Number(schema) > SCHEMA_VERSION && `the tables are of version ${schema}: update agentauth`,
  ];
  return healthReport(clockAheadMs, risks, errors, {
    version,
    synchronous_commit: commits,
    fsync,
    full_page_writes: pages,
    async_standbys: behind,
    synchronous_standby_names: standbys || undefined,
    schema_version: schema,
    standby: isYes(standby) ? "yes" : "no",
  });
}

function tableErrors({ name, columns, look }: { name: string; columns: readonly string[]; look: Row }) {
  const [persistence, found, rights, policies] = look;
  if (persistence == null) return [`the table ${name} is missing: ${NOT_RUN}`];
  const missing = columns.filter((column) => !(found ?? "").split(" ").includes(column));
  return [
    missing.length > 0 && `the table ${name} has no ${missing.join(", ")}: it is not that of the SQL of the store`,
    isYes(policies) && `row-level security hides records of the table ${name} from this role`,
    rights ? `this role may not ${rights} the table ${name}` : undefined,
  ];
}

function isYes(text: string | null | undefined): boolean {
  return text === "true";
}
