import type { DriverHealth } from "../driver/driver.js";
import type { Run } from "./call.js";
import { SCHEMA_VERSION } from "./store-sql.js";
import type { TableNames } from "./table-names.js";

const OLDEST = 130_000;

// "replica" is `u` for a table that is emptied when the server was killed.
const LOOK = `SELECT current_setting('server_version') AS version, current_setting('server_version_num') AS number,
current_setting('server_encoding') AS encoding, current_setting('fsync') AS fsync,
current_setting('full_page_writes') AS pages, current_setting('synchronous_commit') AS commits,
current_setting('synchronous_standby_names') AS standbys, pg_is_in_recovery()::text AS standby,
(SELECT relpersistence::text FROM pg_class WHERE oid = to_regclass($1::text)) AS persistence,
obj_description(to_regclass($1::text), 'pg_class') AS comment,
floor(extract(epoch from clock_timestamp()) * 1000)::bigint::text AS now`;

/**
 * Looks at the server. What it reads needs no privilege.
 *
 * @param watchProblem why reports of changes do not arrive
 */
export async function engineHealth(
  run: Run,
  { record, plain }: TableNames,
  watchProblem: string | undefined,
): Promise<DriverHealth> {
  const before = Date.now();
  const [row = []] = await run(LOOK, [record]);
  // The clock of the engine was read at about the middle of the round trip.
  const clockAheadMs = Math.round((before + Date.now()) / 2 - Number(row[10]));
  const [version, number, encoding, fsync, pages, commits, standbys, standby, persistence, comment] = row;
  const schema = /, version (\d+):/.exec(comment ?? "")?.[1];
  const facts = { version, synchronous_commit: commits, fsync, full_page_writes: pages };
  const replicas = standbys ? { synchronous_standby_names: standbys } : {};
  const risks = [
    fsync !== "on" && "fsync is off: a crash of the machine may lose records, or all of them",
    pages !== "on" && "full_page_writes is off: a crash of the machine may damage the tables",
    commits === "off" && "synchronous_commit is off: a crash of the server may lose the last records",
    persistence === "u" && `the table ${plain} is unlogged: a crash of the server empties it`,
    watchProblem !== undefined && watchProblem,
  ];
  const errors = [
    Number(number) < OLDEST && "PostgreSQL 13 or later is needed",
    encoding !== "UTF8" && "the encoding of the database is not UTF8, so that some texts cannot be stored",
    isYes(standby) && "the server is a standby: it cannot be written to, and reads may be out of date",
    persistence == null && `the table ${plain} is missing: the SQL of the store was not run on this database`,
    schema !== undefined && Number(schema) > SCHEMA_VERSION && `the tables are of version ${schema}: update agentauth`,
  ];
  return {
    clockAheadMs,
    risks: risks.filter((risk) => risk !== false),
    errors: errors.filter((error) => error !== false),
    facts: textsOf({ ...facts, ...replicas, schema_version: schema, standby: isYes(standby) ? "yes" : "no" }),
  };
}

function isYes(text: string | null | undefined): boolean {
  return text === "true";
}

function textsOf(facts: Readonly<Record<string, string | null | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(facts).flatMap(([name, text]) => (text == null ? [] : [[name, text]])));
}
