import { describe, expect, it } from "vitest";
import type { Device } from "../../../src/api/types.js";
import type { FilterFlags } from "../../../src/cli/flags/list.js";
import { buildFilter, parseTime } from "../../../src/cli/listing/filters.js";
import { fc } from "../../helpers/properties.js";

const NOW = Date.UTC(2026, 0, 31, 12);
const device = (parts: Record<string, unknown>) => parts as unknown as Device;
const matches = (flags: FilterFlags, parts: Record<string, unknown>) => buildFilter(flags, NOW)?.matches(device(parts));

describe("a filter", () => {
  it("is none without flags", () => {
    expect(buildFilter({}, NOW)).toBeUndefined();
  });

  it("names the flags it stands for, and all of them must hold", () => {
    const filter = buildFilter({ status: "active", sessionType: "mcp", title: "*" }, NOW);
    expect(filter?.flags).toEqual(["--status", "--session-type", "--title"]);
    expect(filter?.text).toBe("--status active, --session-type mcp, --title *");
    const times = buildFilter({ seenAfter: "7d", seenBefore: "1h" }, NOW);
    expect([times?.flags, times?.text]).toEqual([
      ["--seen-after", "--seen-before"],
      "--seen-after 7d, --seen-before 1h",
    ]);
    expect(filter?.matches(device({ status: "active", session_type: "mcp", title: "" }))).toBe(true);
    expect(filter?.matches(device({ status: "active", session_type: "api", title: "" }))).toBe(false);
    expect(filter?.matches(device({ status: "revoked", session_type: "mcp", title: "" }))).toBe(false);
  });

  it("takes undocumented values", () => {
    expect(matches({ status: "paused" }, { status: "paused" })).toBe(true);
    expect(matches({ status: "Active" }, { status: "active" })).toBe(false);
  });

  it.each([
    ["Build*", "build agent", true],
    ["Build*", "my build", false],
    ["*bot", "Chat BOT", true],
    ["a?c", "abc", true],
    ["a?c", "a🤖c", true],
    ["a?c", "ac", false],
    ["*", "", true],
    ["*", "two\nlines", true],
    ["a.c", "abc", false],
    ["[x]*", "[x] y", true],
    ["(a|b)+$", "(a|b)+$", true],
    ["", "x", false],
    ["été*", "Été 2026", true],
  ])("--title %s on %j: %s", (glob, title, expected) => {
    expect(matches({ title: glob }, { title })).toBe(expected);
  });

  it("reports a range of times that is empty", () => {
    const warnings = (seenAfter: string, seenBefore: string) => buildFilter({ seenAfter, seenBefore }, NOW)?.remarks(0);
    expect(warnings("7d", "1h")).toEqual([]);
    for (const [after, before] of [
      ["1h", "7d"],
      ["2026-01-02", "2026-01-02"],
    ] as const)
      expect(warnings(after, before)).toEqual([
        `nothing was last seen after ${after} and before ${before}: the range is empty`,
      ]);
  });

  it.each([
    ["DE", "DE", true],
    ["de,at", "AT", true],
    ["DE,AT", "CH", false],
    ["DE", "de", false],
  ])("--country %s on %s: %s", (country, country_code, expected) => {
    expect(matches({ country }, { last_seen: { country_code } })).toBe(expected);
  });

  it.each(["Germany", "", "DE,", "D", "DE, AT", "ß", "D1"])("--country %j is none", (country) => {
    expect(() => buildFilter({ country }, NOW)).toThrow(
      expect.objectContaining({
        code: "usage",
        message: expect.stringMatching(/^--country ".*" is not a country code$/),
      }),
    );
  });

  it("counts the items that may match, and does not take what is missing for an answer", () => {
    const filter = buildFilter({ country: "DE", seenAfter: "7d", status: "revoked" }, NOW);
    const german = { at: NOW / 1000, country_code: "DE" };
    for (const [parts, expected] of [
      [{ status: "revoked", last_seen: german }, true],
      [{ status: "revoked", last_seen: { at: NOW / 1000, country_code: null } }, false],
      [{ status: "revoked", last_seen: { country_code: "DE" } }, false],
      [{ status: "active", last_seen: {} }, false],
      [{ last_seen: { ...german, country_code: "AT" } }, false],
    ] as const)
      expect(filter?.matches(device(parts))).toBe(expected);
    expect(filter?.remarks(1)).toEqual(["left out 2 items that may match: no last_seen.country_code or last_seen.at"]);
  });

  it("finds no title where there is none", () => {
    for (const title of [undefined, null, 7]) expect(matches({ title: "*" }, { title })).toBe(false);
  });

  it("matches every text with itself, whatever is in it", () => {
    const plain = fc.string({ unit: "grapheme" }).filter((text) => !/[*?]/.test(text));
    fc.assert(fc.property(plain, (text) => matches({ title: text }, { title: text }) === true));
    fc.assert(
      fc.property(
        plain,
        fc.string(),
        fc.string(),
        (text, before, after) => matches({ title: `*${text}*` }, { title: before + text + after }) === true,
      ),
    );
  });

  it("takes no time for ever with many stars", () => {
    expect(matches({ title: `${"*".repeat(5000)}b` }, { title: "a".repeat(50_000) })).toBe(false);
  });
});

describe("times", () => {
  it.each([
    ["30s", NOW / 1000 - 30],
    ["1.5m", NOW / 1000 - 90],
    ["12h", NOW / 1000 - 43_200],
    ["7d", NOW / 1000 - 604_800],
    ["2w", NOW / 1000 - 1_209_600],
    ["2026-01-31", Date.UTC(2026, 0, 31) / 1000],
    ["2026-01-31T08:00:00Z", Date.UTC(2026, 0, 31, 8) / 1000],
    ["2026-01-31T08:00:00.500Z", Date.UTC(2026, 0, 31, 8) / 1000 + 0.5],
    ["2026-01-31T08:00+02:00", Date.UTC(2026, 0, 31, 6) / 1000],
  ])("%s", (text, expected) => {
    expect(parseTime(text, "--seen-after", NOW)).toBe(expected);
  });

  it.each([
    ...["", "7", "d", "7 d", "-7d", "7D", "yesterday", "2026-13-01", "2026-02-30T99:00Z", "01/31/2026", "1e3d"],
    ...["Infinity", "2026", "x2026-01-31", "2026-01-31x", "2026-02-30", "2026-02-29T08:00:00Z"],
    ...["2026-04-31T08:00:00+02:00", "x7d", "7dx"],
  ])("%j is none", (text) => {
    for (const [flag, name] of [
      ["seenAfter", "--seen-after"],
      ["seenBefore", "--seen-before"],
    ] as const) {
      expect(() => buildFilter({ [flag]: text }, NOW)).toThrow(
        expect.objectContaining({
          class: "usage",
          message: `${name} ${JSON.stringify(text)} is not a time`,
          hint: "give a time ago such as 30m, 12h, 7d or 2w, or a date such as 2026-01-31 or 2026-01-31T08:00:00Z",
        }),
      );
    }
  });

  it("--seen-after includes the moment itself, --seen-before does not", () => {
    const at = NOW / 1000 - 86_400;
    expect(matches({ seenAfter: "1d" }, { last_seen: { at } })).toBe(true);
    expect(matches({ seenBefore: "1d" }, { last_seen: { at } })).toBe(false);
    expect(matches({ seenBefore: "1d" }, { last_seen: { at: at - 0.5 } })).toBe(true);
    expect(matches({ seenAfter: "1d", seenBefore: "1h" }, { last_seen: { at: NOW / 1000 - 7200 } })).toBe(true);
  });

  it("a device that was never seen matches neither", () => {
    for (const last_seen of [undefined, null, {}, { at: null }, { at: "1" }]) {
      expect([matches({ seenAfter: "7d" }, { last_seen }), matches({ seenBefore: "1s" }, { last_seen })]).toEqual([
        false,
        false,
      ]);
    }
  });
});

describe("a value that nothing has", () => {
  const remarks = (flags: FilterFlags, items: readonly Record<string, unknown>[]) => {
    const filter = buildFilter(flags, NOW, { status: ["active", "revoked"], session_type: ["browser", "api", "mcp"] });
    for (const item of items) filter?.matches(device(item));
    return filter?.remarks(0);
  };

  it.each<[string, FilterFlags, Record<string, unknown>[], string[]]>([
    [
      "a slip",
      { status: "actve" },
      [{ status: "active" }],
      ['--status "actve": nothing has this status; did you mean "active"?'],
    ],
    [
      "a documented value, mistyped",
      { status: "revokd" },
      [{ status: "active" }],
      ['--status "revokd": nothing has this status; did you mean "revoked"?'],
    ],
    [
      "a word that is nothing like them",
      { status: "green" },
      [{ status: "odd" }],
      ['--status "green": nothing has this status; there are "active", "odd", "revoked"'],
    ],
    [
      "the other field",
      { sessionType: "mpc" },
      [{ session_type: "api" }],
      ['--session-type "mpc": nothing has this session type; did you mean "mcp"?'],
    ],
    [
      "a country",
      { country: "UK,DE" },
      [{ last_seen: { country_code: "GB" } }, { last_seen: { country_code: "DE" } }],
      ['--country "UK": nothing has this country; there are "DE", "GB"'],
    ],
    [
      "two of them",
      { status: "x", sessionType: "y" },
      [{ status: "active", session_type: "api" }],
      [expect.stringContaining("--status"), expect.stringContaining("--session-type")] as string[],
    ],
  ])("is reported: %s", (_what, flags, items, expected) => {
    expect(remarks(flags, items)).toEqual(expected);
  });

  it.each<[string, FilterFlags, Record<string, unknown>[]]>([
    ["a documented value that happens to be rare", { status: "revoked" }, [{ status: "active" }]],
    ["a value that something has", { status: "paused" }, [{ status: "paused" }, { status: "active" }]],
    ["an empty list", { status: "actve" }, []],
    [
      "an item that another filter leaves out",
      { status: "paused", sessionType: "mcp" },
      [{ status: "paused", session_type: "api" }],
    ],
  ])("is no slip: %s", (_what, flags, items) => {
    expect(remarks(flags, items)).toEqual([]);
  });

  it("names the first twenty values that the list has, and knows the one that was asked for", () => {
    const many = Array.from({ length: 25 }, (_, nth) => ({ status: `s-${String(nth).padStart(2, "0")}` }));
    const [text = ""] = remarks({ status: "green" }, many) ?? [];
    expect(text.match(/"s-\d\d"/g)).toEqual(many.slice(0, 20).map(({ status }) => `"${status}"`));
    expect(remarks({ status: "s-24" }, many)).toEqual([]);
    const filter = buildFilter({ status: "gren" }, NOW);
    filter?.matches(device({ status: "green" }));
    expect(filter?.remarks(0)).toEqual(['--status "gren": nothing has this status; did you mean "green"?']);
  });

  it("is not known where no item has the field", () => {
    expect(remarks({ status: "actve" }, [{}])).toEqual(["left out 1 item that may match: no status"]);
  });

  it("is reported escaped, whatever the service sends", () => {
    expect(remarks({ status: "x" }, [{ status: "\u001b[31m\nerror: " }])?.join("")).not.toMatch(/[\p{Cc}]/u);
  });
});
