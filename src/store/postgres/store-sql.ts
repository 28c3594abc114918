import { tableNames } from "./table-names.js";

/** The version of the tables; a comment on the table of records has it. */
export const SCHEMA_VERSION = 1;

/** Options of {@link storeSql}. */
export interface StoreSqlOptions {
  /** The table of records, optionally with its schema, which must exist. Default: `agentauth_record`. */
  readonly table?: string | undefined;
}

/**
 * The SQL that creates what {@link postgresDriver} needs: two tables, a sequence, three indexes. It changes nothing where
 * they exist already. Run it once, with the migrations of the application, as the role that shall own the tables.
 *
 * Leases are in a second table: their heartbeat, once a second, then writes a short row instead of the record, waits for no
 * writer of the record, and a lease needs no record.
 *
 * @throws AgentAuthError `usage` for a name that cannot be used
 */
export function storeSql({ table }: StoreSqlOptions = {}): string {
  const { record, lease, sequence, tagIndex, expiryIndex, leaseIndex } = tableNames(table);
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
  PRIMARY KEY (kind, partition, id)
);
COMMENT ON TABLE ${record} IS
  'agentauth, version ${SCHEMA_VERSION}: sealed records; names are bytes, since text cannot hold U+0000';

CREATE INDEX IF NOT EXISTS ${bare(tagIndex)} ON ${record} USING gin (tags jsonb_path_ops);
COMMENT ON INDEX ${tagIndex} IS
  'agentauth: finds records by their tags';

CREATE INDEX IF NOT EXISTS ${bare(expiryIndex)} ON ${record} (expires_at) WHERE expires_at IS NOT NULL;
COMMENT ON INDEX ${expiryIndex} IS
  'agentauth: finds records that have expired, to remove them';

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

CREATE INDEX IF NOT EXISTS ${bare(leaseIndex)} ON ${lease} (claimed_at);
COMMENT ON INDEX ${leaseIndex} IS
  'agentauth: finds old claims, to forget them; an extension does not change it';
`;
}

/** A name without its schema: an index is created in that of its table. */
function bare(name: string): string {
  return name.slice(name.lastIndexOf(".") + 1);
}
