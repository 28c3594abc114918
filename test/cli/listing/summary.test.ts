import { describe, expect, it } from "vitest";
import type { Page } from "../../../src/api/page.js";
import type { Device } from "../../../src/api/types.js";
import type { ListFlags } from "../../../src/cli/flags/list.js";
import { buildFilter, type Filter } from "../../../src/cli/listing/filters.js";
import { type ListEnding, reportEnding, type Selection, selectMatching } from "../../../src/cli/listing/summary.js";
import type { CommandContext } from "../../../src/cli/runtime/context.js";
import { createMemoryIo } from "../../helpers/memory-io.js";

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
    ["arar", 1, ["0"], { offset: 21, again: 0 }],
    ["rrar", 1, ["2"], { offset: 23, again: 0 }],
    ["rrra", 1, ["3"], { offset: 24, again: 0 }],
    ["arar", 2, ["0", "2"], { offset: 23, again: 0 }],
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
    expect((await selectFrom(page("rar", { next: null }), active, 1)).next).toEqual({ offset: 22, again: 0 });
  });

  it("may come again where the page repeated items that were dropped", async () => {
    expect((await selectFrom(page("aa", { duplicates: 3 }), active, 1)).next).toEqual({ offset: 21, again: 3 });
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
  const reported = async (end: Partial<ListEnding>, options: ListFlags = {}) => {
    const io = createMemoryIo();
    const context = {
      io,
      argv: ["devices", "list", "--status", "active", "--limit", "2"],
    } as unknown as CommandContext;
    reportEnding(
      { yielded: 4, matched: 2, drift: [], verdict: undefined, left: undefined, ...end },
      options,
      active,
      context,
    );
    await io.stderr.write("");
    return io.err();
  };

  it("has the command that continues with what matches", async () => {
    expect(await reported({ left: { offset: 23, again: 0 } }, { limit: 2 })).toBe(
      "the first 2 match (--status: filtered here, after reading); continue with: " +
        "agentauth devices list --status active --offset 23 --limit 2\n",
    );
  });

  it("says what may come again where the place cannot be known exactly", async () => {
    expect(await reported({ left: { offset: 23, again: 1 } }, { limit: 2 })).toContain(
      "; the service listed 1 items twice there, which may come again; continue with: ",
    );
  });
});
