import { usageError } from "../../errors.js";
import { suggest } from "../../http/suggest.js";
import { quote } from "../../redact.js";
import type { FilterFlags } from "../flags/list.js";
import type { ListItem } from "./scope.js";

/** A filter and the flags that set it. */
export interface Filter {
  matches(item: ListItem): boolean;
  flags: readonly string[];
  /** The flags with their values, as they were given. */
  text: string;
  /** A sentence for each filter value that no item had and that is not documented, and for a range of times without one. */
  mistyped(): string[];
}

/** The values that the service documents for what is filtered by; others may come all the same. */
export type DocumentedValues = Readonly<Partial<Record<"status" | "session_type", readonly string[]>>>;

/**
 * Builds the filter that the flags ask for; all of them must hold.
 *
 * @param now milliseconds since the epoch, for times such as `7d`
 * @returns undefined when no flag was given
 * @throws `AgentAuthError` `usage` for a time that cannot be read
 */
export function buildFilter(flags: FilterFlags, now: number, documented: DocumentedValues = {}): Filter | undefined {
  const tests: [flag: string, test: (item: ListItem) => boolean, value: string][] = [];
  const { status, title, sessionType, seenAfter, seenBefore } = flags;
  const exact = [
    ...(status === undefined ? [] : [matchExactly("status", "--status", status, documented)]),
    ...(sessionType === undefined ? [] : [matchExactly("session_type", "--session-type", sessionType, documented)]),
  ];
  for (const one of exact) tests.push([one.flag, one.matches, one.wanted]);
  if (title !== undefined) {
    const glob = globPattern(title);
    tests.push(["--title", (item) => typeof item.title === "string" && glob.test(item.title), title]);
  }
  const after = seenAfter === undefined ? Number.NEGATIVE_INFINITY : parseTime(seenAfter, "--seen-after", now);
  const before = seenBefore === undefined ? Number.POSITIVE_INFINITY : parseTime(seenBefore, "--seen-before", now);
  if (seenAfter !== undefined) {
    tests.push(["--seen-after", (item) => seenAt(item) >= after, seenAfter]);
  }
  if (seenBefore !== undefined) {
    tests.push(["--seen-before", (item) => seenAt(item) < before, seenBefore]);
  }
  if (tests.length === 0) return undefined;
  return {
    flags: tests.map(([flag]) => flag),
    text: tests.map(([flag, , value]) => `${flag} ${value}`).join(", "),
    matches(item) {
      // Each of them sees every item, also one that another one rejects.
      for (const { look } of exact) look(item);
      return tests.every(([, test]) => test(item));
    },
    mistyped: () => [
      ...exact.flatMap(({ mistyped }) => mistyped() ?? []),
      ...(after < before
        ? []
        : [`nothing was last seen after ${seenAfter} and before ${seenBefore}: the range is empty`]),
    ],
  };
}

/** Values that are remembered to be named. */
const MOST_SEEN = 20;

function matchExactly(field: "status" | "session_type", flag: string, wanted: string, documented: DocumentedValues) {
  const seen = new Set<string>();
  const known = documented[field] ?? [];
  const name = field.replace("_", " ");
  return {
    flag,
    wanted,
    look(item: ListItem) {
      const value = item[field];
      if (typeof value === "string" && (seen.size < MOST_SEEN || value === wanted)) seen.add(value);
    },
    matches: (item: ListItem) => item[field] === wanted,
    mistyped(): string | undefined {
      if (seen.size === 0 || seen.has(wanted) || known.includes(wanted)) return undefined;
      const values = [...new Set([...known, ...seen])].sort();
      const suggestion = suggest(wanted, values);
      const help =
        suggestion === undefined ? `there are ${values.map((value) => quote(value, 40)).join(", ")}` : undefined;
      return `${flag} ${quote(wanted)}: nothing has this ${name}; ${help ?? `did you mean ${quote(suggestion, 40)}?`}`;
    },
  };
}

/** NaN, which compares with nothing, where the service did not say. */
function seenAt(item: ListItem): number {
  const at = item.last_seen?.at;
  return typeof at === "number" ? at : Number.NaN;
}

/** `*` matches anything, `?` one character; letters match in either case. */
function globPattern(glob: string): RegExp {
  const pattern = glob.replace(/[.*+?^${}()|[\]\\]/g, (mark) =>
    mark === "*" ? "[^]*" : mark === "?" ? "[^]" : `\\${mark}`,
  );
  return new RegExp(`^${pattern.replace(/(?:\[\^\]\*){2,}/g, "[^]*")}$`, "iu");
}

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };
const DATE = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?)?$/;

/** Unix seconds of a time: `7d`, `12h` before now, or a date such as 2026-01-31 or 2026-01-31T08:00:00Z. */
export function parseTime(text: string, flag: string, now: number): number {
  const ago = /^(\d+(?:\.\d+)?)([smhdw])$/.exec(text);
  if (ago) return now / 1000 - Number(ago[1]) * (UNITS[ago[2] ?? ""] ?? 0);
  const at = DATE.test(text) ? Date.parse(text) / 1000 : Number.NaN;
  // A day that the month does not have would be one of the next month.
  const day = text.slice(0, 10);
  if (!Number.isNaN(at) && new Date(day).toISOString().startsWith(day)) return at;
  throw usageError(
    `${flag} ${quote(text)} is not a time`,
    "give a time ago such as 30m, 12h, 7d or 2w, or a date such as 2026-01-31 or 2026-01-31T08:00:00Z",
  );
}
