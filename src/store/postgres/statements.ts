import type { TableNames } from "./store-sql.js";

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
  const settings = settingsFor(lockTimeoutMs);
  const statements = {
    ...recordStatements(names, settings),
    ...leaseStatements(names, settings),
    /** Without values: removes a part of what has expired. */
    sweep: sweepStatement(names),
    /** `$1` message: notifies those that watch. */
    notify: `SELECT pg_notify('${names.channel}', $1::text) AS notified`,
  };
  if (!notify) return statements;
  const { insert, update, remove, release } = statements;
  const announced = (statement: string) => withNotification(statement, names.channel);
  return {
    ...statements,
    insert: announced(insert),
    update: announced(update),
    remove: announced(remove),
    release: announced(`${release} RETURNING NULL AS version`),
  };
}

/** A statement that also notifies the name of the record, if it has changed one. */
function withNotification(statement: string, channel: string): string {
  return `WITH changed AS (${statement})
SELECT version, pg_notify('${channel}', concat_ws(' ', $1::text, $2::text, $3::text)) AS notified FROM changed`;
}

/**
 * Settings of the transaction that a statement is: a query that sets them, and that it reads before it locks a row. With
 * those of `durable` what was acknowledged survives a crash of the server, whatever the default is.
 */
type TransactionSettings = ReturnType<typeof settingsFor>;

function settingsFor(lockTimeoutMs: number) {
  const set = (name: string, value: string) => `set_config('${name}', ${value}, true)`;
  const select = (commit: string) =>
    `SELECT ${set("lock_timeout", `'${lockTimeoutMs}'`)} AS lock, ${set("synchronous_commit", commit)} AS commit`;
  // Other values than "off" are as safe or safer.
  const setting = "current_setting('synchronous_commit')";
  return { durable: select(`CASE ${setting} WHEN 'off' THEN 'on' ELSE ${setting} END`), fleeting: select("'off'") };
}

function recordStatements({ record, sequence }: TableNames, { durable, fleeting }: TransactionSettings) {
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
    insert: `WITH settings AS MATERIALIZED (${durable})
INSERT INTO ${record} AS stored (kind, partition, id, version, value, tags, expires_at, due_at)
SELECT ${KEY_VALUES}, ${version}, $4::text, $5::text::jsonb, ${expiry}, ${due} FROM settings
ON CONFLICT (kind, partition, id) DO UPDATE
SET version = excluded.version, value = excluded.value, tags = excluded.tags, expires_at = excluded.expires_at,
  due_at = excluded.due_at
WHERE stored.expires_at <= clock_timestamp()
RETURNING version::text AS version`,
    /** `$1` kind, `$2` partition, `$3` id. Writes the record as it is. Returns version, value. */
    // The record as it is: rights, constraints, triggers and locks refuse this as they would refuse an update.
    touch: `WITH settings AS MATERIALIZED (${fleeting})
UPDATE ${record}
SET version = version + 0 * ${version}, value = value, tags = tags, expires_at = expires_at, due_at = due_at FROM settings
WHERE ${KEY} AND ${LIVES}
RETURNING version::text AS version, value`,
    /** As `insert`, and `$8` the expected version. Returns version. */
    update: `WITH settings AS MATERIALIZED (${durable})
UPDATE ${record}
SET version = ${version}, value = $4::text, tags = $5::text::jsonb, expires_at = ${expiry},
  due_at = CASE WHEN $7::text IS NULL THEN due_at ELSE ${due} END FROM settings
WHERE ${KEY} AND version = $8::text::bigint AND ${LIVES}
RETURNING version::text AS version`,
    /** The key, `$4` the expected version or null. Returns a row if it removed the record. */
    remove: `WITH settings AS MATERIALIZED (${durable})
DELETE FROM ${record} USING settings
WHERE ${KEY} AND ${LIVES} AND ($4::text IS NULL OR version = $4::text::bigint)
RETURNING version::text AS version`,
    /**
     * `$1` kind, `$2` partition, `$3` due time, `$4` limit, `$5` length of a value, `$6` how far to count. Returns
     * partition, id, version, value, due time, and how many are due.
     */
    due: `SELECT encode(partition, 'hex') AS partition, encode(id, 'hex') AS id, version::text AS version,
  left(value, $5::text::int) AS value, due_at::text AS due,
  (SELECT count(*) FROM (SELECT FROM ${record} WHERE ${isDue} LIMIT $6::text::int) AS counted)::text AS total
FROM ${record} AS stored WHERE ${isDue} AND ${LIVES} ORDER BY stored.due_at LIMIT $4::text::int`,
    /**
     * `$1` kind, `$2` partition or null, `$3` tags or null, `$4` and `$5` the key before or null, `$6` limit, `$7` length of
     * a value. Returns partition, id, version, value.
     */
    // In ORDER BY a name without its table would be that of the result, which has no index.
    // Of one partition by its ids alone: the planner takes a comparison of pairs for one that selects hardly a row, and reads
    // the whole partition in place of the index of tags.
    scan: `SELECT encode(partition, 'hex') AS partition, encode(id, 'hex') AS id, version::text AS version,
  left(value, $7::text::int) AS value
FROM ${record} AS stored WHERE kind = $1::text AND ${LIVES}
AND ($2::text IS NULL OR partition = decode($2::text, 'hex'))
AND ($3::text IS NULL OR tags @> $3::text::jsonb)
AND ($4::text IS NULL OR ($2::text IS NOT NULL AND id > decode($5::text, 'hex'))
  OR ($2::text IS NULL AND (partition, id) > (decode($4::text, 'hex'), decode($5::text, 'hex'))))
ORDER BY stored.partition, stored.id LIMIT $6::text::int`,
  };
}

function leaseStatements({ lease, sequence }: TableNames, { durable }: TransactionSettings) {
  const trace = `old.attempt::text AS attempt, old.owner, ${epochOf("old.claimed_at")} AS claimed, ${epochOf("old.read_at")} AS read,
${epochOf("old.released_at")} AS released, old.note`;
  return {
    /** The key, `$4` owner, `$5` milliseconds, `$6` note. Returns what `claimAnswer` reads; no row: try again. */
    // "old" is the lease as this statement sees it. If it is held, nothing is written, so that waiting costs no write.
    // If it is free, the claim succeeds only if the row is still the one in "old", on which the trace of the result is
    // based: the owner before may have extended it, with another note, and others may have claimed it. Then no row is
    // returned, and the caller runs the statement once more, which sees the change.
    // The attempt is drawn after "old" was read, so it is higher than that in "old". That of a new row is higher than all
    // before it because a row is removed only days after its lease was free: none can have come and gone in between.
    claim: `WITH clock AS MATERIALIZED (${durable}, clock_timestamp() AS read_at), old AS MATERIALIZED (
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
SELECT '0', NULL, ${epochOf("old.held_until - old.read_at")}, ${trace} FROM old WHERE is_held`,
    /** As `claim`. Returns a row if the lease is extended. */
    extend: `WITH settings AS MATERIALIZED (${durable})
UPDATE ${lease} SET held_until = ${timeAfter("clock_timestamp()", "$5")}, note = $6::text FROM settings
WHERE ${KEY} AND owner = $4::text AND ${HELD} RETURNING 'extended' AS result`,
    /** The key, `$4` owner, `$5` note or null. */
    // The row of a lease that was released without a trace remains for its attempt.
    release: `WITH settings AS MATERIALIZED (${durable})
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
function epochOf(time: string): string {
  return `floor(extract(epoch from ${time}) * 1000)::bigint::text`;
}
