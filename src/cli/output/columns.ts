/** The columns of each list, and what `--columns` makes of them. */

import { SHAPES, type Shape } from "../../api/shapes.js";
import type { Device, Domain, Pool } from "../../api/types.js";
import { type AgentAuthError, usageError } from "../../errors.js";
import { suggest } from "../../http/suggest.js";
import { quote } from "../../redact.js";
import type { Column } from "./value.js";

/** What a list of one kind of item can show. */
export interface ColumnSet {
  /** What `table` and `plain` show, the most important first. */
  columns: readonly Column[];
  /** What `wide` and `csv` show. */
  wideColumns: readonly Column[];
  /**
   * What `table` shows on a terminal, the most important first: the last ones are left out where there is no room. Default:
   * `columns`, all of them.
   */
  screenColumns?: readonly Column[] | undefined;
  /** The parts of one object on a terminal: a heading, and the paths or the fields whose parts it has. */
  groups?: readonly FieldGroup[];
  /** The item's own fields, which `--columns` accepts. */
  fields: readonly string[];
  /** Documented fields inside those, as paths: suggestions for a mistyped path. */
  nested?: readonly string[];
}

/** A part of one object. */
export interface FieldGroup {
  /** Absent for what comes first. */
  heading?: string;
  /** The paths of its fields; `last_seen.*` stands for all below `last_seen`. */
  paths: readonly string[];
}

/** A path to a field that the contract has: `id`, `last_seen.at`. */
type PathOf<Item> = {
  [Key in keyof Item & string]-?: Key | InnerPath<Key, NonNullable<Item[Key]>>;
}[keyof Item & string];
type InnerPath<Key extends string, Value> = Value extends readonly unknown[]
  ? never
  : Value extends object
    ? `${Key}.${keyof Value & string}`
    : never;
type ColumnOf<Item> = Column & { path: PathOf<Item> };

/** The columns of rows that a command makes itself, of which no flag selects fields. */
export function rowColumns(columns: readonly Column[], more: readonly Column[] = []): ColumnSet {
  return { columns, wideColumns: [...columns, ...more], fields: [] };
}

/** The columns of one kind of item, and the fields that the contract has beside them. */
function columnSet<Item>(
  shape: Shape,
  columns: readonly ColumnOf<Item>[],
  more: readonly ColumnOf<Item>[] = [],
): ColumnSet {
  const own = Object.keys(shape.properties ?? {});
  const first = columns.map(({ path }): string => path).filter((path) => own.includes(path));
  return {
    columns,
    wideColumns: [...columns, ...more],
    fields: [...new Set([...first, ...own])],
    nested: nestedPaths(shape),
  };
}

/** With fewer columns similar titles look the same. */
const LEAST_TITLE = 24;

const NAMES = [
  { path: "id", header: "ID" },
  { path: "title", header: "TITLE" },
  { path: "status", header: "STATUS" },
] as const;

const SCREEN_NAMES = [
  { path: "title", header: "TITLE", least: LEAST_TITLE },
  { path: "id", header: "ID" },
  { path: "status", header: "STATUS" },
] as const;

/** Pools: see `Pool_Summary`. */
export const POOL: ColumnSet = {
  ...columnSet<Pool>(
    SHAPES.pool,
    [...NAMES, { path: "domain_id", header: "DOMAIN" }],
    [
      { path: "account_id", header: "ACCOUNT" },
      { path: "authentication_ruleset_nid", header: "RULESET" },
    ],
  ),
  screenColumns: [...SCREEN_NAMES, { path: "domain_id", header: "DOMAIN" }],
};

/** Domains: see `Domain_Summary`. */
export const DOMAIN: ColumnSet = {
  ...columnSet<Domain>(SHAPES.domain, [...NAMES, { path: "account_id", header: "ACCOUNT" }]),
  screenColumns: [...SCREEN_NAMES, { path: "account_id", header: "ACCOUNT" }],
};

const DEVICE_COLUMNS = columnSet<Device>(
  SHAPES.device,
  [
    ...NAMES,
    { path: "session_type", header: "SESSION" },
    { path: "last_seen.at", header: "LAST SEEN", kind: "time" },
    { path: "last_seen.country_code", header: "COUNTRY" },
    { path: "last_seen.city", header: "CITY" },
  ],
  [
    { path: "first_seen.at", header: "FIRST SEEN", kind: "time" },
    { path: "pool_id", header: "POOL" },
    { path: "domain_id", header: "DOMAIN" },
    { path: "account_id", header: "ACCOUNT" },
    { path: "last_seen.asn", header: "ASN", kind: "number" },
    { path: "last_seen.remote_ip", header: "REMOTE IP" },
    { path: "dynamic_client_details.title", header: "CLIENT" },
    { path: "dynamic_client_details.auth_profile", header: "PROFILE" },
    { path: "dynamic_client_details.pkce_required", header: "PKCE", kind: "bool" },
    { path: "dynamic_client_details.redirect_uris", header: "REDIRECT URIS", kind: "list" },
    { path: "last_seen.user_agent", header: "USER AGENT" },
  ],
);

/** Devices: see `Device_Summary`. */
export const DEVICE: ColumnSet = {
  ...DEVICE_COLUMNS,
  screenColumns: [
    ...SCREEN_NAMES,
    { path: "last_seen.at", header: "LAST SEEN", kind: "time" },
    { path: "last_seen.city", and: "last_seen.country_code", header: "PLACE", least: 12 },
    { path: "session_type", header: "SESSION" },
  ],
  groups: [
    { paths: ["title", "status", "session_type", "last_seen.at"] },
    { heading: "Client", paths: ["dynamic_client_details.*"] },
    { heading: "First seen", paths: ["first_seen.*"] },
    { heading: "Last seen", paths: ["last_seen.*"] },
    { heading: "Ids", paths: ["id", "pool_id", "domain_id", "account_id"] },
  ],
};

function nestedPaths({ properties = {} }: Shape, prefix = ""): string[] {
  return Object.entries(properties).flatMap(([name, shape]) => {
    const path = prefix + name;
    return [...(prefix === "" ? [] : [path]), ...nestedPaths(shape, `${path}.`)];
  });
}

/**
 * The columns that `--columns a,b.c` names, in its order. A path that the set knows keeps its heading and kind.
 *
 * A path inside a field is only refused where it is nearly a documented one: a newer service may have more of them.
 *
 * @throws {@link AgentAuthError} `usage` for an empty list and for a field that the items do not have
 */
export function selectColumns(flag: string, set: ColumnSet): readonly Column[] {
  const known = new Map([...set.columns, ...set.wideColumns].map((column) => [column.path, column]));
  const paths = [...new Set(flag.split(",").map((path) => path.trim()))].filter((path) => path !== "");
  if (paths.length === 0) throw columnError("--columns names no column", set);
  return paths.map((path) => {
    const keys = path.split(".");
    if (!set.fields.includes(keys[0] ?? ""))
      throw columnError(`--columns: there is no field ${quote(path)}`, set, path);
    if (keys.includes("")) throw columnError(`--columns: ${quote(path)} has an empty part`, set);
    if (isMistyped(path, set)) throw columnError(`--columns: there is no field ${quote(path)}`, set, path);
    return known.get(path) ?? { path, header: path, ...(keys.at(-1) === "at" && { kind: "time" as const }) };
  });
}

/** Whether a path leads to nothing that is documented, and nearly to something that is. */
function isMistyped(path: string, { nested = [] }: ColumnSet): boolean {
  const holder = path.slice(0, path.lastIndexOf(".") + 1);
  if (holder === "" || nested.includes(path)) return false;
  const siblings = nested.filter((known) => known.startsWith(holder)).map((known) => known.slice(holder.length));
  return suggest(path.slice(holder.length), siblings) !== undefined;
}

/** The field that a mistyped path stands for: one of nearly this name, or one that lies deeper. */
function suggestionFor(path: string, { fields, nested = [] }: ColumnSet): string | undefined {
  const deeper = nested.filter((known) => known.endsWith(`.${path}`));
  if (deeper.length > 0) return deeper.sort().reverse().join(" or ");
  return suggest(path, path.includes(".") ? nested : fields);
}

function columnError(message: string, set: ColumnSet, path?: string): AgentAuthError {
  const nested = set.wideColumns.find((column) => column.path.includes("."));
  const deeper = nested ? `; a dot goes deeper, as in ${nested.path}` : "";
  const guess = path === undefined ? undefined : suggestionFor(path, set);
  const hint = `${guess === undefined ? "" : `did you mean ${guess}? `}fields: ${set.fields.join(", ")}${deeper}`;
  return usageError(message, hint);
}
