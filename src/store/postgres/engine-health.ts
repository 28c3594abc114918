import type { DriverHealth } from "../driver/driver.js";
import { healthReport, type Row } from "../driver/engine.js";
import type { RunStatement } from "./engine.js";
import { SCHEMA_VERSION, type TableNames } from "./store-sql.js";

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
