import { AgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";

/** The name of the table of records, unless another one is chosen. */
const DEFAULT_TABLE = "agentauth_record";

// The names of the sequence and of the indexes are longer by up to 8 characters, and PostgreSQL cuts a name at 63 bytes.
const MAX_NAME = 55;
const PART = /^[A-Za-z_][\w$-]*$/;

/** What the store has in the database; each name is quoted and can be part of a statement. */
export interface TableNames {
  /** The table of records. */
  readonly record: string;
  /** The table of leases. */
  readonly lease: string;
  /** The sequence of versions and of attempts. */
  readonly sequence: string;
  /** Finds records by their tags. */
  readonly tagIndex: string;
  /** Finds records that have expired. */
  readonly expiryIndex: string;
  /** Finds old leases. */
  readonly leaseIndex: string;
  /** The channel of changes, not quoted; tables of the same name in other schemas may share it. */
  readonly channel: string;
  /** The name for messages, not quoted. */
  readonly plain: string;
}

/**
 * The names that follow from the name of the table.
 *
 * @param table a name or `schema.name`, of letters, digits, `_`, `$` and `-`, and at most 55 characters; upper and lower case differ
 * @throws AgentAuthError `usage` for another name
 */
export function tableNames(table: string = DEFAULT_TABLE): TableNames {
  const parts = typeof table === "string" ? table.split(".") : [];
  if (parts.length < 1 || parts.length > 2 || table.length > MAX_NAME || !parts.every((part) => PART.test(part))) {
    throw new AgentAuthError("usage", `the table ${quote(table)} is no name that the store can use`, {
      class: "usage",
      hint: `set table to a name or schema.name of letters, digits, _, $ and -, of at most ${MAX_NAME} characters`,
    });
  }
  // None of the characters that a name may have ends an identifier or a literal.
  const inSchema = (suffix: string) => `"${parts.join('"."')}${suffix}"`;
  return {
    record: inSchema(""),
    lease: inSchema("_lease"),
    sequence: inSchema("_version"),
    tagIndex: inSchema("_tags"),
    expiryIndex: inSchema("_expiry"),
    leaseIndex: inSchema("_claimed"),
    channel: `${table}_changed`,
    plain: table,
  };
}
