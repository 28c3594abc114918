import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import type { Drift, Page } from "../../../src/api/page.js";
import type { Device } from "../../../src/api/types.js";
import type { ListFlags } from "../../../src/cli/flags/list.js";
import { buildFilter, type Filter } from "../../../src/cli/listing/filters.js";
import type { ListItem } from "../../../src/cli/listing/scope.js";
import {
  type ListEnding,
  reportEnding,
  resumeCommand,
  type Selection,
  selectMatching,
} from "../../../src/cli/listing/summary.js";
import type { CommandContext } from "../../../src/cli/runtime/context.js";
import { AgentAuthError, withHint } from "../../../src/errors.js";
import { escapeText, shellWord } from "../../../src/redact.js";
import { createMemoryIo } from "../../helpers/memory-io.js";
import { fc } from "../../helpers/properties.js";

const active = buildFilter({ status: "active" }, 0);

/** A page of active and revoked items: `a` and `r`. */
function page(letters: string, parts: Partial<Page<Device>> & { next?: number | null } = {}): Page<Device> {
  const { next = 40, ...rest } = parts;
  const items = [...letters].map((letter, index) => ({
    id: `${index}`,
    status: letter === "a" ? "active" : "revoked",
  }));
  return {
    items,
    offset: 20,
    duplicates: 0,
    unusable: [],
    url: "https://agentauth.example/api/v1/device",
    pagination: { next_page_offset: next },
    ...rest,
  } as unknown as Page<Device>;
}

/** What is taken from one page of a list. */
async function selectFrom(one: Page<Device>, filter: Filter | undefined, limit: number): Promise<Selection> {
  const pages = (async function* () {
    yield one;
  })();
  const { value } = await selectMatching(pages, "devices", filter, limit).next();
  return value as Selection;
}

describe("what is taken from a page", () => {
  it("is all of it without a filter", async () => {
    const whole = page("ar");
    expect(await selectFrom(whole, undefined, 1)).toEqual({ page: whole, items: whole.items, next: undefined });
  });

  it.each([
    ["arar", 1, ["0"], { offset: 21, overlap: 0 }],
    ["rrar", 1, ["2"], { offset: 23, overlap: 0 }],
    ["rrra", 1, ["3"], { offset: 24, overlap: 0 }],
    ["arar", 2, ["0", "2"], { offset: 23, overlap: 0 }],
    ["arar", 3, ["0", "2"], undefined],
  ])(
    "of %s with room for %i is what matches, and the place behind the last of it",
    async (letters, room, ids, next) => {
      const chosen = await selectFrom(page(letters), active, room);
      expect([chosen.items.map(({ id }) => id), chosen.next]).toEqual([ids, next]);
    },
  );

  it("has no place to continue where the list ends with it", async () => {
    expect((await selectFrom(page("ra", { next: null }), active, 1)).next).toBeUndefined();
    expect((await selectFrom(page("rar", { next: null }), active, 1)).next).toEqual({ offset: 22, overlap: 0 });
  });

  it("may come again where the page repeated items that were dropped", async () => {
    expect((await selectFrom(page("aa", { duplicates: 3 }), active, 1)).next).toEqual({ offset: 21, overlap: 3 });
  });

  it("is all that has an id, and then an error, also where the limit is reached before the end", async () => {
    const pages = (async function* () {
      yield page("a", { unusable: [20] });
      yield page("aaa", { offset: 40 });
    })();
    const ids: unknown[] = [];
    const read = async () => {
      for await (const { items } of selectMatching(pages, "devices", active, 2)) ids.push(...items.map(({ id }) => id));
    };
    await expect(read()).rejects.toMatchObject({ code: "unusable_items", resume: 41 });
    expect(ids).toEqual(["0", "0"]);
  });
});

describe("what is printed in the end", () => {
  /** All that is printed, of a filtered list and with --verbose unless something else is given. */
  const reported = async (
    end: Partial<ListEnding>,
    options: ListFlags = {},
    { filter = active as Filter | null | undefined, isBrief = false, verbose = true } = {},
  ) => {
    const io = createMemoryIo({ verbose });
    const context = {
      io,
      argv: ["devices", "list", "--status", "active", "--limit", "2"],
    } as unknown as CommandContext;
    reportEnding(
      { yielded: 4, matched: 2, drift: [], summary: undefined, stoppedAt: undefined, ...end },
      options,
      filter ?? undefined,
      context,
      isBrief ? { columns: "id", isJson: true } : undefined,
    );
    await io.stderr.write("");
    return io.err();
  };
  const whole = { drift: [], missing: 0, complete: true, unseenShifts: undefined, next: undefined };
  const ended = { ...whole, yielded: 4, expected: 4, duplicates: 0 };
  const drift: Drift[] = [1, 2].map((page) => ({ field: "item_count", from: page, to: page + 1 }) as Drift);
  const changed = "warning: the list changed while it was read (item_count was 1, then 3)";
  const again = (offset: number, limit = "") =>
    `agentauth devices list --status active --offset ${offset}${limit && ` --limit ${limit}`}`;

  it("has the command that continues with what matches", async () => {
    expect(await reported({ stoppedAt: { offset: 23, overlap: 0 } }, { limit: 2 })).toBe(
      `the first 2 match (--status: filtered here, after reading); continue with: ${again(23, "2")}\n`,
    );
  });

  it("says what may come again where the place cannot be known exactly", async () => {
    expect(await reported({ stoppedAt: { offset: 23, overlap: 1 } }, { limit: 2 })).toBe(
      "the first 2 match (--status: filtered here, after reading); the service listed 1 items twice there, which may " +
        `come again; continue with: ${again(23, "2")}\n`,
    );
  });

  it.each<[string, Partial<ListEnding>, ListFlags, string]>([
    ["the whole list", { summary: ended }, {}, "shown 4 of 4\n"],
    ["the rest of a list", { summary: ended }, { offset: 3 }, "shown 4 to 7 of 7\n"],
    ["nothing behind the end", { summary: { ...ended, expected: 0 }, yielded: 0 }, { offset: 3 }, "shown 0 of 3\n"],
    ["a list of unknown length", { summary: { ...ended, expected: undefined } }, {}, "shown 4\n"],
    ["a list of which nothing is known", {}, {}, "shown 4\n"],
    [
      "the beginning of a list",
      { summary: { ...ended, expected: 9, next: 4 } },
      { limit: 4 },
      `shown 4 of 9; continue with: ${again(4, "4")}\n`,
    ],
    [
      "the beginning of a list of unknown length",
      { summary: { ...ended, expected: undefined, next: 4 } },
      {},
      `shown 4 of more; continue with: ${again(4)}\n`,
    ],
    [
      "a list with items twice",
      { summary: { ...ended, duplicates: 3 } },
      {},
      "shown 4 of 4\nwarning: the service listed 3 items twice; each is shown once\n",
    ],
    ["a list that changed", { summary: ended, drift }, {}, `shown 4 of 4\n${changed}\n`],
    [
      "a list in which items moved",
      { summary: ended, drift: [{ field: "position", from: 3, to: -1, offset: 4 }] },
      {},
      "shown 4 of 4\nwarning: the list changed while it was read (items moved)\n",
    ],
    [
      "a list whose service aligns offsets",
      { summary: { ...ended, unseenShifts: "aligned" } },
      {},
      "shown 4 of 4\nitems that moved between two pages cannot be seen: the service begins pages at offsets of its own\n",
    ],
    [
      "the beginning of a list that changed",
      { summary: { ...ended, complete: false, next: 4 }, drift },
      {},
      `shown 4 of 4; continue with: ${again(4)}\n${changed}\n`,
    ],
  ])("of %s is how much of it was printed, and what changed", async (_what, end, options, said) => {
    expect(await reported(end, options, { filter: null })).toBe(said);
  });

  it.each([1, 2])("is an error where %i may be missing", async (missing) => {
    const summary = { ...ended, complete: false, missing };
    for (const isBrief of [true, false]) {
      const message = missing === 1 ? "1 item may be missing" : "2 items may be missing";
      const error = { code: "list_changed", class: "partial", message };
      await expect(reported({ summary }, {}, { filter: null, isBrief })).rejects.toMatchObject(error);
    }
  });

  it.each([
    [undefined, "list again; with --sort id no item moves while the list is read"],
    ["name", "list again; with --sort id no item moves while the list is read"],
    ["id", "list again"],
    ["id:desc", "list again"],
  ])("with missing items, sorted by %s, has the hint %j", async (sort, hint) => {
    const summary = { ...ended, complete: false, missing: 1 };
    for (const isBrief of [true, false]) {
      await expect(
        reported({ summary }, sort === undefined ? {} : { sort }, { filter: null, isBrief }),
      ).rejects.toMatchObject({ hint });
    }
  });

  it("of the whole list is only for --verbose", async () => {
    expect(await reported({ summary: ended }, {}, { filter: null, verbose: false })).toBe("");
    expect(await reported({ summary: ended }, {}, { verbose: false })).toBe(
      "2 of 4 match (--status: filtered here, after reading)\n",
    );
  });

  it.each<[string, Partial<ListEnding>, Filter | null | undefined, object]>([
    ["the whole list", { summary: ended }, null, { total: 4, next: null }],
    [
      "its beginning",
      { summary: { ...ended, expected: 9, next: 4 } },
      null,
      { total: 9, next: { offset: 4, command: again(4, "2") } },
    ],
    ["what matches in all of it", { summary: ended }, active, { next: null }],
    [
      "what matches first",
      { stoppedAt: { offset: 3, overlap: 0 } },
      active,
      { next: { offset: 3, command: again(3, "2") } },
    ],
  ])("of the short form of %s is a line of JSON", async (_what, end, filter, said) => {
    const message = "the short form, as with --brief; -o json prints everything, --limit or --columns what it names";
    const line = await reported({ ...end, drift }, { limit: 2 }, { filter, isBrief: true });
    expect(JSON.parse(line.split("\n")[0] ?? "")).toEqual({ shown: 2, columns: "id", message, ...said });
    expect(line).toMatch(/^.*\nwarning: the list changed while it was read .*\n$/);
  });

  it.each([true, false])("names a value of a filter that nothing has (short form: %s)", async (isBrief) => {
    const filter = buildFilter({ status: "actve" }, 0, { status: ["active"] });
    filter?.matches(page("a").items[0] as ListItem);
    const said = await reported({ matched: 0, summary: ended }, {}, { filter, isBrief });
    expect(said).toMatch(/^.*\nwarning: .*"actve".*\n$/);
    expect(await reported({ matched: 1, summary: ended }, {}, { filter, isBrief })).not.toContain("warning");
  });
});

/** The words that a shell makes of a command line. */
function shellSplit(line: string): string[] {
  const text = execFileSync("sh", ["-c", `set -f; for word in ${line}; do printf '%s\\0' "$word"; done`], {
    encoding: "utf8",
  });
  return text.split("\0").slice(0, -1);
}

describe("a word for the shell", () => {
  it.each([
    ["plain", "plain"],
    ["pool_1", "pool_1"],
    ["--page-size=5", "--page-size=5"],
    ["", "''"],
    ["two words", "'two words'"],
    ["it's", "'it'\\''s'"],
    ["$(rm -rf /)", "'$(rm -rf /)'"],
    ["*", "'*'"],
    ["=ls", "'=ls'"],
    ["~", "'~'"],
    ["été", "'été'"],
    ["a\u200cb", "\"$(printf 'a\\342\\200\\214b')\""],
  ])("%j is %s", (word, expected) => {
    expect(shellWord(word)).toBe(expected);
  });

  it("is read back by a real shell as it was", { timeout: 60_000 }, () => {
    const unit = fc.oneof(
      fc.constantFrom(
        ...["'", '"', "\\", "$", "`", "%", "!", "*", "~", "-", " ", "\n", "\t", "\u001b", "\u200c", "\u202e"],
        ...["\u00a0", "\u0301", "#", ";", "&", "é", "日", "🤖", "0"],
      ),
      fc.string({ minLength: 1, maxLength: 3, unit: "grapheme" }),
    );
    // A shell takes no NUL, and the line breaks at the end of what a command prints are not kept.
    const word = fc
      .array(unit, { maxLength: 12 })
      .map((parts) => parts.join("").replaceAll("\0", "").replace(/\n+$/, ""));
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 20 }), (words) => {
        expect(shellSplit(words.map(shellWord).join(" "))).toEqual(words);
      }),
      { numRuns: 60 },
    );
  });

  it("survives being shown", () => {
    const word = fc.string({ unit: "binary" });
    fc.assert(fc.property(word, (text) => /\p{Cs}/u.test(text) || escapeText(shellWord(text)) === shellWord(text)));
  });
});

describe("the command that continues", () => {
  it.each([
    [["devices", "list"], undefined, "agentauth devices list --offset 40"],
    [["devices", "list", "--limit", "50"], 10, "agentauth devices list --offset 40 --limit 10"],
    [["devices", "list", "--limit=50", "-o", "id"], 10, "agentauth devices list -o id --offset 40 --limit 10"],
    [
      ["--offset", "7", "devices", "list", "--pool", "p q"],
      undefined,
      "agentauth devices list --pool 'p q' --offset 40",
    ],
    [["devices", "--offset=7", "list"], undefined, "agentauth devices list --offset 40"],
  ])("of %j", (argv, limit, expected) => {
    expect(resumeCommand(argv, 40, limit)).toBe(expected);
  });
});

it("another hint leaves everything else of an error as it was", () => {
  const response = new Response("x");
  const cause = new Error("why");
  const details = {
    class: "partial",
    status: 503,
    requestId: "r",
    url: "https://x",
    resume: 7,
    retryAfter: 30,
    retryable: true,
    response,
    cause,
    hint: "old",
  } as const;
  const error = new AgentAuthError("unexpected", "message", details);
  const copy = withHint(error, "new");
  expect(copy.toJSON()).toEqual({ ...error.toJSON(), hint: "new" });
  expect([copy.response, copy.cause, copy.stack]).toEqual([response, cause, error.stack]);
});
