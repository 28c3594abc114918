import { usageError } from "../../errors.js";
import { checkOptionNames, type OptionNames } from "../../http/public-class.js";
import { quote } from "../../redact.js";

/** The name of the table of records, unless another one is chosen. */
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
  return Array.from(new TextEncoder().encode(name), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The name that {@link toHex} wrote. */
export function fromHex(hex: string): string {
  return DECODER.decode(Uint8Array.from(hex.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16)));
}

/** A text that PostgreSQL can store: its `text` and its `jsonb` cannot hold U+0000. Sealed records have no `%`. */
export function toText(value: string): string {
  return value.replaceAll("%", "%25").replaceAll("\0", "%00");
}

/** The text that {@link toText} wrote. */
export function fromText(text: string): string {
  return text.replaceAll("%00", "\0").replaceAll("%25", "%");
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
 * they exist already. RunStatement it once, with the migrations of the application, as the role that shall own the tables.
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
