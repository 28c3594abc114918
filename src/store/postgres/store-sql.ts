import { usageError } from "../../errors.js";
import { encodeHex } from "../../http/base64url.js";
import { checkOptionNames, type OptionNames } from "../../http/public-class.js";
import { quote } from "../../redact.js";

const DEFAULT_TABLE = "agentauth_record";

// The names of the sequence and of the indexes are longer by up to 8 characters, and PostgreSQL cuts a name at 63 bytes.
const MAX_NAME = 55;
const PART = /^[A-Za-z_][\w$-]*$/;

export type TableNames = ReturnType<typeof tableNames>;

/**
 * The names that follow from the name of the table; each is quoted and can be part of a statement.
 *
 * @param table a name or `schema.name`, of letters, digits, `_`, `$` and `-`, and at most 55 characters; upper and lower case differ
 * @throws AgentAuthError `usage` for another name
 */
export function tableNames(table: string = DEFAULT_TABLE) {
  const parts = typeof table === "string" ? table.split(".") : [];
  if (parts.length < 1 || parts.length > 2 || table.length > MAX_NAME || !parts.every((part) => PART.test(part))) {
    const hint = `set table to a name or schema.name of letters, digits, _, $ and -, of at most ${MAX_NAME} characters`;
    throw usageError(`the table ${quote(table)} is no name that the store can use`, hint);
  }
  // None of the characters that a name may have ends an identifier or a literal.
  const inSchema = (suffix: string) => `"${parts.join('"."')}${suffix}"`;
  return {
    record: inSchema(""),
    lease: inSchema("_lease"),
    /** The source of versions and of attempts. */
    sequence: inSchema("_version"),
    tagIndex: inSchema("_tags"),
    expiryIndex: inSchema("_expiry"),
    dueIndex: inSchema("_due"),
    leaseIndex: inSchema("_claimed"),
    /** Of changes; not quoted. Tables of the same name in other schemas may share it. */
    channel: `${table}_changed`,
    /** The name for messages, not quoted. */
    plain: table,
  };
}

const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

/** The UTF-8 bytes of a name in hexadecimal: a name may hold U+0000, and every client passes text on unchanged. */
export function toHex(name: string): string {
  return encodeHex(new TextEncoder().encode(name));
}

/** The name that {@link toHex} wrote. */
export function fromHex(hex: string): string {
  return DECODER.decode(Uint8Array.from(hex.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16)));
}

/** The version of the tables; a comment on the table of records has it. */
export const SCHEMA_VERSION = 1;

/** Options of {@link storeSql}. */
export interface StoreSqlOptions {
  /** The table of records, optionally with its schema, which must exist. Default: `agentauth_record`. */
  readonly table?: string | undefined;
}

/**
 * The SQL that creates what {@link postgresDriver} needs: two tables, a sequence, four indexes. It changes nothing where
 * they exist already. Run it once, with the migrations of the application, as the role that shall own the tables.
 *
 * Leases are in a second table: their heartbeat, once a second, then writes a short row instead of the record, waits for no
 * writer of the record, and a lease needs no record.
 *
 * @throws AgentAuthError `usage` for a name that cannot be used
 */
export function storeSql(options: StoreSqlOptions = {}): string {
  checkOptionNames(options, { table: true } satisfies OptionNames<StoreSqlOptions>, "storeSql");
  const { record, lease, sequence, tagIndex, expiryIndex, dueIndex, leaseIndex } = tableNames(options.table);
  return `-- The store of agentauth for PostgreSQL 13 or later, version ${SCHEMA_VERSION}. It can be run again.
-- A role that is not the owner needs: SELECT, INSERT, UPDATE, DELETE on both tables; USAGE on the sequence.

CREATE SEQUENCE IF NOT EXISTS ${sequence} AS bigint;
COMMENT ON SEQUENCE ${sequence} IS
  'agentauth: versions of records and numbers of lease claims; never set it back';

CREATE TABLE IF NOT EXISTS ${record} (
  kind text COLLATE "C" NOT NULL,
  partition bytea NOT NULL,
  id bytea NOT NULL,
  version bigint NOT NULL,
  value text NOT NULL,
  tags jsonb NOT NULL,
  expires_at timestamptz,
  due_at bigint,
  PRIMARY KEY (kind, partition, id)
);
COMMENT ON TABLE ${record} IS
  'agentauth, version ${SCHEMA_VERSION}: sealed records; names are bytes, since text cannot hold U+0000';

CREATE INDEX IF NOT EXISTS ${nameWithoutSchema(tagIndex)} ON ${record} USING gin (tags jsonb_path_ops);
COMMENT ON INDEX ${tagIndex} IS
  'agentauth: finds records by their tags';

CREATE INDEX IF NOT EXISTS ${nameWithoutSchema(expiryIndex)} ON ${record} (expires_at) WHERE expires_at IS NOT NULL;
COMMENT ON INDEX ${expiryIndex} IS
  'agentauth: finds records that have expired, to remove them';

CREATE INDEX IF NOT EXISTS ${nameWithoutSchema(dueIndex)} ON ${record} (kind, partition, due_at) WHERE due_at IS NOT NULL;
COMMENT ON INDEX ${dueIndex} IS
  'agentauth: finds the logins that are to be refreshed';

CREATE TABLE IF NOT EXISTS ${lease} (
  kind text COLLATE "C" NOT NULL,
  partition bytea NOT NULL,
  id bytea NOT NULL,
  attempt bigint NOT NULL,
  owner text,
  note text NOT NULL,
  claimed_at timestamptz NOT NULL,
  held_until timestamptz NOT NULL,
  released_at timestamptz,
  PRIMARY KEY (kind, partition, id)
) WITH (fillfactor = 70);
COMMENT ON TABLE ${lease} IS
  'agentauth: the newest claim of each lease; without an owner it was released without a trace';

CREATE INDEX IF NOT EXISTS ${nameWithoutSchema(leaseIndex)} ON ${lease} (claimed_at);
COMMENT ON INDEX ${leaseIndex} IS
  'agentauth: finds old claims, to forget them; an extension does not change it';
`;
}

/** A name without its schema: an index is created in that of its table. */
function nameWithoutSchema(name: string): string {
  return name.slice(name.lastIndexOf(".") + 1);
}

const KEY = "kind = $1::text AND partition = decode($2::text, 'hex') AND id = decode($3::text, 'hex')";
const KEY_VALUES = "$1::text, decode($2::text, 'hex'), decode($3::text, 'hex')";
// Not now(): that is the time at which the transaction began.
const LIVES = "(expires_at IS NULL OR expires_at > clock_timestamp())";
const HELD = "owner IS NOT NULL AND released_at IS NULL AND held_until > clock_timestamp()";
const FORGOTTEN = "clock_timestamp() - interval '30 days'";
const SWEEP_LIMIT = 500;

/**
 * The statements for these tables. Each operation is one, a transaction by itself: it needs no session, and a pooler may
 * send each elsewhere.
 *
 * What they rely on under READ COMMITTED, the default of PostgreSQL: a statement that finds a row locked by another
 * transaction waits for it, and then evaluates its condition again on the row as that transaction left it. So of several
 * `UPDATE … WHERE version = n` one changes the row, and the others find another version and change nothing. Under a stricter
 * default they fail with 40001 instead, which is tried again.
 *
 * @param lockTimeoutMs milliseconds that a statement waits for a row that others have locked
 */
export function statementsFor(
  names: TableNames,
  { notify, lockTimeoutMs }: { notify: boolean; lockTimeoutMs: number },
) {
  const settings = transactionSettings(lockTimeoutMs);
  const statements = {
    ...recordStatements(names, settings),
    ...leaseStatements(names, settings),
    /** Without values: removes a part of what has expired. */
    sweep: sweepStatement(names),
    /** `$1` message: notifies those that watch. */
    notify: `SELECT pg_notify('${names.channel}', $1::text) AS notified`,
  };
  if (!notify) return statements;
  const { insert, update, remove } = statements;
  const announced = (statement: string) => `WITH changed AS (${statement})
SELECT version, pg_notify('${names.channel}', concat_ws(' ', $1::text, $2::text, $3::text)) AS notified FROM changed`;
  return {
    ...statements,
    insert: announced(insert),
    update: announced(update),
    remove: announced(remove),
  };
}

/**
 * Settings of the transaction that a statement is: a query that sets them, and that it reads before it locks a row. With
 * them what was acknowledged survives a crash of the server, whatever the default is.
 */
function transactionSettings(lockTimeoutMs: number): string {
  // Other values than "off" are as safe or safer.
  const setting = "current_setting('synchronous_commit')";
  const commit = `CASE ${setting} WHEN 'off' THEN 'on' ELSE ${setting} END`;
  return `SELECT set_config('lock_timeout', '${lockTimeoutMs}', true) AS lock,
  set_config('synchronous_commit', ${commit}, true) AS commit`;
}

function recordStatements({ record, sequence }: TableNames, settings: string) {
  const version = `nextval('${sequence}'::regclass)`;
  const expiry = timeAfter("clock_timestamp()", "$6");
  const due = "nullif($7::text, 'none')::bigint";
  const isDue = "kind = $1::text AND partition = decode($2::text, 'hex') AND due_at <= $3::text::bigint";
  return {
    /** `$1` kind, `$2` partition, `$3` id. Returns version, value. */
    get: `SELECT version::text AS version, value FROM ${record} WHERE ${KEY} AND ${LIVES}`,
    /**
     * The key, `$4` value, `$5` tags, `$6` milliseconds until it expires or null, `$7` due time, `none`, or null to leave it.
     * Returns version.
     */
    // ON CONFLICT finds the row of another transaction too, which this statement cannot see yet: it waits for its end, and
    // the condition is evaluated on what is there then. A record that has expired counts as none.
    insert: `WITH settings AS MATERIALIZED (${settings})
INSERT INTO ${record} AS stored (kind, partition, id, version, value, tags, expires_at, due_at)
SELECT ${KEY_VALUES}, ${version}, $4::text, $5::text::jsonb, ${expiry}, ${due} FROM settings
ON CONFLICT (kind, partition, id) DO UPDATE
SET version = excluded.version, value = excluded.value, tags = excluded.tags, expires_at = excluded.expires_at,
  due_at = excluded.due_at
WHERE stored.expires_at <= clock_timestamp()
RETURNING version::text AS version`,
    /** `$1` kind, `$2` partition, `$3` id. Writes the record as it is. Returns version, value. */
    // The record as it is: rights, constraints, triggers and locks refuse this as they would refuse an update.
    touch: `WITH settings AS MATERIALIZED (${settings})
UPDATE ${record}
SET version = version + 0 * ${version}, value = value, tags = tags, expires_at = expires_at, due_at = due_at FROM settings
WHERE ${KEY} AND ${LIVES}
RETURNING version::text AS version, value`,
    /** As `insert`, and `$8` the expected version. Returns version. */
    update: `WITH settings AS MATERIALIZED (${settings})
UPDATE ${record}
SET version = ${version}, value = $4::text, tags = $5::text::jsonb, expires_at = ${expiry},
  due_at = CASE WHEN $7::text IS NULL THEN due_at ELSE ${due} END FROM settings
WHERE ${KEY} AND version = $8::text::bigint AND ${LIVES}
RETURNING version::text AS version`,
    /** The key, `$4` the expected version or null. Returns a row if it removed the record. */
    remove: `WITH settings AS MATERIALIZED (${settings})
DELETE FROM ${record} USING settings
WHERE ${KEY} AND ${LIVES} AND ($4::text IS NULL OR version = $4::text::bigint)
RETURNING version::text AS version`,
    /**
     * `$1` kind, `$2` partition, `$3` due time, `$4` limit, `$5` how far to count. Returns partition, id, version, value,
     * due time, and how many are due.
     */
    due: `SELECT encode(partition, 'hex') AS partition, encode(id, 'hex') AS id, version::text AS version, value,
  due_at::text AS due,
  (SELECT count(*) FROM (SELECT FROM ${record} WHERE ${isDue} LIMIT $5::text::int) AS counted)::text AS total
FROM ${record} AS stored WHERE ${isDue} AND ${LIVES} ORDER BY stored.due_at LIMIT $4::text::int`,
    /**
     * `$1` kind, `$2` partition or null, `$3` tags or null, `$4` and `$5` the key before or null, `$6` limit. Returns
     * partition, id, version, value.
     */
    // In ORDER BY a name without its table would be that of the result, which has no index.
    // Of one partition by its ids alone: the planner takes a comparison of pairs for one that selects hardly a row, and reads
    // the whole partition in place of the index of tags.
    scan: `SELECT encode(partition, 'hex') AS partition, encode(id, 'hex') AS id, version::text AS version, value
FROM ${record} AS stored WHERE kind = $1::text AND ${LIVES}
AND ($2::text IS NULL OR partition = decode($2::text, 'hex'))
AND ($3::text IS NULL OR tags @> $3::text::jsonb)
AND ($4::text IS NULL OR ($2::text IS NOT NULL AND id > decode($5::text, 'hex'))
  OR ($2::text IS NULL AND (partition, id) > (decode($4::text, 'hex'), decode($5::text, 'hex'))))
ORDER BY stored.partition, stored.id LIMIT $6::text::int`,
  };
}

function leaseStatements({ lease, sequence }: TableNames, settings: string) {
  const trace = `old.attempt::text AS attempt, old.owner, ${toEpoch("old.claimed_at")} AS claimed, ${toEpoch("old.read_at")} AS read,
${toEpoch("old.released_at")} AS released, old.note`;
  return {
    /** The key, `$4` owner, `$5` milliseconds, `$6` note. Returns what `readClaimResponse` reads; no row: try again. */
    // "old" is the lease as this statement sees it. If it is held, nothing is written, so that waiting costs no write.
    // If it is free, the claim succeeds only if the row is still the one in "old", on which the trace of the result is
    // based: the owner before may have extended it, with another note, and others may have claimed it. Then no row is
    // returned, and the caller runs the statement once more, which sees the change.
    // The attempt is drawn after "old" was read, so it is higher than that in "old". That of a new row is higher than all
    // before it because a row is removed only days after its lease was free: none can have come and gone in between.
    claim: `WITH clock AS MATERIALIZED (${settings}, clock_timestamp() AS read_at), old AS MATERIALIZED (
  SELECT *, owner IS NOT NULL AND released_at IS NULL AND held_until > read_at AS is_held FROM ${lease}, clock WHERE ${KEY}
), taken AS (
  INSERT INTO ${lease} AS current (kind, partition, id, attempt, owner, note, claimed_at, held_until)
  SELECT ${KEY_VALUES}, nextval('${sequence}'::regclass), $4::text, $6::text, read_at, ${timeAfter("read_at", "$5")}
  FROM clock WHERE NOT EXISTS (SELECT FROM old WHERE is_held)
  ON CONFLICT (kind, partition, id) DO UPDATE
  SET attempt = excluded.attempt, owner = excluded.owner, note = excluded.note, claimed_at = excluded.claimed_at,
    held_until = excluded.held_until, released_at = NULL
  WHERE EXISTS (SELECT FROM old WHERE (old.attempt, old.owner, old.note, old.held_until, old.released_at)
    IS NOT DISTINCT FROM (current.attempt, current.owner, current.note, current.held_until, current.released_at))
  RETURNING attempt
)
SELECT '1' AS held, taken.attempt::text AS number, '0' AS left_ms, ${trace} FROM taken LEFT JOIN old ON old.owner IS NOT NULL
UNION ALL
SELECT '0', NULL, ${toEpoch("old.held_until - old.read_at")}, ${trace} FROM old WHERE is_held`,
    /** As `claim`. Returns a row if the lease is extended. */
    extend: `WITH settings AS MATERIALIZED (${settings})
UPDATE ${lease} SET held_until = ${timeAfter("clock_timestamp()", "$5")}, note = $6::text FROM settings
WHERE ${KEY} AND owner = $4::text AND ${HELD} RETURNING 'extended' AS result`,
    /** The key, `$4` owner, `$5` note or null. */
    // The row of a lease that was released without a trace remains for its attempt.
    release: `WITH settings AS MATERIALIZED (${settings})
UPDATE ${lease} SET released_at = clock_timestamp(), note = coalesce($5::text, ''),
  owner = CASE WHEN $5::text IS NULL THEN NULL ELSE owner END FROM settings
WHERE ${KEY} AND owner = $4::text AND ${HELD}`,
  };
}

/**
 * Never waits for a row: one that is locked is in use, or another process removes it. A lease ends after it was claimed, so
 * the time of the claim changes nothing; but it has an index, which the heartbeat of a lease does not write.
 */
function sweepStatement({ record, lease }: TableNames): string {
  const some = (table: string, condition: string) => `DELETE FROM ${table} WHERE (kind, partition, id) IN (
  SELECT kind, partition, id FROM ${table} WHERE ${condition} LIMIT ${SWEEP_LIMIT} FOR UPDATE SKIP LOCKED)`;
  return `WITH records AS (${some(record, "expires_at <= clock_timestamp()")})
${some(lease, `claimed_at < ${FORGOTTEN} AND held_until < ${FORGOTTEN}`)}`;
}

function timeAfter(time: string, milliseconds: string): string {
  return `${time} + ${milliseconds}::text::float8 * interval '1 millisecond'`;
}

/** A time as Unix milliseconds, or an interval as milliseconds. */
function toEpoch(time: string): string {
  return `floor(extract(epoch from ${time}) * 1000)::bigint::text`;
}
