import { usageError } from "../../errors.js";
import { suggest } from "../../http/suggest.js";
import { quote } from "../../redact.js";
import type { FilterFlags } from "../flags/list.js";
import { countText, readPath } from "../output/value.js";
import type { ListItem } from "./scope.js";

/** A filter and the flags that set it. */
export interface Filter {
  matches(item: ListItem): boolean;
  flags: readonly string[];
  /** The flags with their values, as they were given. */
  text: string;
  /**
   * Sentences about the items that were looked at: how many lack a field that decides, and, if none of them matched, each
   * value that no item had and that is not documented, and a range of times that is empty.
   */
  remarks(matched: number): string[];
}

/** The values that the service documents for what is filtered by; others may come all the same. */
export type DocumentedValues = Readonly<Partial<Record<"status" | "session_type", readonly string[]>>>;

/** The test of one flag, by the value of a field. */
interface FieldTest {
  flag: string;
  /** The value of the flag, as it was given. */
  text: string;
  path: string;
  /** Whether the field matches; undefined if the service does not say. */
  matches(value: unknown): boolean | undefined;
  mistyped?(): string[];
}

/**
 * Builds the filter that the flags name; all of them must hold.
 *
 * @param now milliseconds since the epoch, for times such as `7d`
 * @returns undefined when no flag was given
 * @throws `AgentAuthError` `usage` for a time or a country that cannot be read
 */
export function buildFilter(flags: FilterFlags, now: number, documented: DocumentedValues = {}): Filter | undefined {
  const { status, title, sessionType, country, seenAfter = "", seenBefore = "" } = flags;
  const tests: FieldTest[] = [];
  if (status !== undefined) tests.push(matchExactly("--status", status, "status", [status], documented.status));
  if (sessionType !== undefined)
    tests.push(matchExactly("--session-type", sessionType, "session_type", [sessionType], documented.session_type));
  if (country !== undefined)
    tests.push(matchExactly("--country", country, "last_seen.country_code", parseCountries(country)));
  if (title !== undefined) {
    const glob = globPattern(title);
    const matches = (value: unknown) => (typeof value === "string" ? glob.test(value) : undefined);
    tests.push({ flag: "--title", text: title, path: "title", matches });
  }
  const seen = (flag: string, text: string, holds: (at: number) => boolean) => {
    const matches = (at: unknown) => (typeof at === "number" ? holds(at) : undefined);
    tests.push({ flag, text, path: "last_seen.at", matches });
  };
  const after = flags.seenAfter === undefined ? Number.NEGATIVE_INFINITY : parseTime(seenAfter, "--seen-after", now);
  const before =
    flags.seenBefore === undefined ? Number.POSITIVE_INFINITY : parseTime(seenBefore, "--seen-before", now);
  if (flags.seenAfter !== undefined) seen("--seen-after", seenAfter, (at) => at >= after);
  if (flags.seenBefore !== undefined) seen("--seen-before", seenBefore, (at) => at < before);
  if (tests.length === 0) return undefined;
  const missing = new Set<string>();
  let undecided = 0;
  return {
    flags: tests.map(({ flag }) => flag),
    text: tests.map(({ flag, text }) => `${flag} ${text}`).join(", "),
    matches(item) {
      // Each of them sees every item, also one that another one rejects.
      const results = tests.map(({ path, matches }) => matches(readPath(item, path)));
      if (results.includes(false)) return false;
      const unknown = tests.filter((_, index) => results[index] === undefined);
      if (unknown.length === 0) return true;
      undecided++;
      for (const { path } of unknown) missing.add(path);
      return false;
    },
    remarks(matched) {
      const gaps = `left out ${countText(undecided, "item")} that may match: no ${[...missing].join(" or ")}`;
      const remarks = undecided > 0 ? [gaps] : [];
      if (matched > 0) return remarks;
      const range = `nothing was last seen after ${seenAfter} and before ${seenBefore}: the range is empty`;
      return [...remarks, ...tests.flatMap((test) => test.mistyped?.() ?? []), ...(after < before ? [] : [range])];
    },
  };
}

/** Values that are remembered to be named. */
const MOST_SEEN = 20;

function matchExactly(
  flag: string,
  text: string,
  path: string,
  wanted: readonly string[],
  known: readonly string[] = [],
): FieldTest {
  const seen = new Set<string>();
  const name = path.replace(/^.*\.|_code$/g, "").replace("_", " ");
  return {
    flag,
    text,
    path,
    matches(value) {
      if (typeof value !== "string") return undefined;
      if (seen.size < MOST_SEEN || wanted.includes(value)) seen.add(value);
      return wanted.includes(value);
    },
    mistyped: () => {
      if (seen.size === 0) return [];
      const values = [...new Set([...known, ...seen])].sort();
      return wanted.flatMap((one) => {
        if (seen.has(one) || known.includes(one)) return [];
        // Each word of two letters is near to many others.
        const suggestion = one.length > 2 ? suggest(one, values) : undefined;
        const all = `there are ${values.map((value) => quote(value, 40)).join(", ")}`;
        const help = suggestion === undefined ? all : `did you mean ${quote(suggestion, 40)}?`;
        return [`${flag} ${quote(one)}: nothing has this ${name}; ${help}`];
      });
    },
  };
}

/** The codes of `--country`, in capital letters. @throws `AgentAuthError` `usage` */
function parseCountries(text: string): string[] {
  const codes = text.split(",");
  const wrong = codes.find((code) => !/^[a-z]{2}$/i.test(code));
  if (wrong === undefined) return codes.map((code) => code.toUpperCase());
  const hint = "give codes of two letters (ISO 3166-1), such as DE or DE,AT,CH";
  throw usageError(`--country ${quote(wrong)} is not a country code`, hint);
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
