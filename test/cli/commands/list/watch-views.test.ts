import { describe, expect, it } from "vitest";
import {
  createTracker,
  eventsView,
  type Poll,
  shownCountText,
  type TrackedPoll,
  tableView,
} from "../../../../src/cli/commands/list/watch-views.js";
import { COLUMNS } from "../../../../src/cli/listing/source.js";
import type { OutputOptions } from "../../../../src/cli/output/writer.js";
import { createMemoryIo } from "../../../helpers/memory-io.js";
import { fc } from "../../../helpers/properties.js";

/** Items written as `id` or `id:state`. */
function reported(words: string) {
  return words
    .split(" ")
    .filter((word) => word !== "")
    .map((word) => {
      const [id = "", state = ""] = word.split(":");
      return { id, json: JSON.stringify({ id, state }) };
    });
}

function reading(words: string, parts: Partial<TrackedPoll> = {}): TrackedPoll {
  return { items: reported(words), others: [], isWhole: true, isOnePage: true, ...parts };
}

function readAll(...readings: TrackedPoll[]): string[][] {
  const compare = createTracker();
  return readings.map((one) =>
    compare(one).map(({ type, json }) => {
      const { id, state } = JSON.parse(json) as { id: string; state: string };
      return `${type} ${id}${state === "" ? "" : `:${state}`}`;
    }),
  );
}

describe("between two readings", () => {
  it("the first one adds everything, and the same again changes nothing", () => {
    expect(readAll(reading("a b"), reading("a b"), reading("b a"))).toEqual([["added a", "added b"], [], []]);
  });

  it("items come, change and go", () => {
    expect(readAll(reading("a b c"), reading("a:new c d"))[1]).toEqual(["modified a:new", "added d", "removed b"]);
  });

  it("the order of properties is no change", () => {
    const [, second] = [{ json: '{"id":"a","x":[1,2]}' }, { json: '{"x":[1,2],"id":"a"}' }].map(({ json }) =>
      reading("", { items: [{ id: "a", json }] }),
    );
    const compare = createTracker();
    compare(reading("", { items: [{ id: "a", json: '{"id":"a","x":[1,2]}' }] }));
    expect(second && compare(second)).toEqual([]);
  });

  it("a reading that is not whole removes nothing", () => {
    expect(readAll(reading("a b"), reading("a c", { isWhole: false }), reading("a c"))).toEqual([
      ["added a", "added b"],
      ["added c"],
      ["removed b"],
    ]);
  });

  it("in a list of several answers, a second whole reading has to miss it too", () => {
    const pages = { isOnePage: false };
    const parted = { isOnePage: false, isWhole: false };
    expect(readAll(reading("a b", pages), reading("a", pages), reading("a", pages))[2]).toEqual(["removed b"]);
    expect(readAll(reading("a b", pages), reading("a", pages), reading("a b", pages), reading("a", pages))).toEqual([
      ["added a", "added b"],
      [],
      [],
      [],
    ]);
    expect(readAll(reading("a b", pages), reading("a", pages), reading("a", parted), reading("a", pages))[3]).toEqual([
      "removed b",
    ]);
    expect(readAll(reading("a b", pages), reading("a", pages), reading("a b", parted), reading("a", pages))[3]).toEqual(
      [],
    );
  });

  it("what no longer belongs is removed at once, as it is now", () => {
    const [, second] = readAll(reading("a b"), reading("a", { others: reported("b:gone"), isWhole: false }));
    expect(second).toEqual(["removed b:gone"]);
  });

  it("an item that is listed twice counts once", () => {
    expect(readAll(reading("a a:other"), reading("a"))).toEqual([["added a"], []]);
  });

  it("whatever comes, the events lead from one whole list to the next", () => {
    const list = fc.uniqueArray(fc.record({ id: fc.constantFrom(..."abcdef"), state: fc.constantFrom("1", "2") }), {
      selector: ({ id }) => id,
    });
    fc.assert(
      fc.property(fc.array(list, { minLength: 1, maxLength: 6 }), (lists) => {
        const compare = createTracker();
        const here = new Map<string, string>();
        for (const items of lists) {
          for (const { type, json } of compare(reading(items.map(({ id, state }) => `${id}:${state}`).join(" ")))) {
            const { id, state } = JSON.parse(json) as { id: string; state: string };
            expect(here.has(id)).toBe(type !== "added");
            if (type === "removed") here.delete(id);
            else here.set(id, state);
          }
          expect([...here].sort()).toEqual(items.map(({ id, state }) => [id, state]).sort());
        }
      }),
    );
  });
});

const ESC = "\u001b";
const ITEMS = [1, 2, 3].map((n) => ({ id: `dev_${n}`, title: `Title ${n}`, status: "active" }));

function polled(items: object[] = ITEMS, parts: Partial<Poll> = {}): Poll {
  const poll = { items, others: [], total: undefined, isWhole: true, isOnePage: true, failure: undefined, ...parts };
  return poll as Poll;
}

describe("how many items there are", () => {
  it.each<[string, Partial<Poll>, boolean]>([
    ["3 devices", {}, false],
    ["3 of 4 devices", { total: 4 }, false],
    ["3 of 5 devices", { others: ITEMS.slice(1) as Poll["others"] }, false],
    ["3 devices (more than fit on the screen)", { total: 3 }, true],
  ])("%s", (text, parts, isCut) => {
    expect(shownCountText(polled(ITEMS, parts), "devices", isCut)).toBe(text);
  });
});

describe("a table that is drawn again", () => {
  const OUTPUT = { ...COLUMNS.devices, header: true } as OutputOptions;

  async function drawn(
    rows: number,
    env: Record<string, string> = {},
    settings: { verbose?: boolean } = {},
    format: "table" | "wide" = "table",
  ) {
    const io = createMemoryIo({ tty: true, columns: 60, color: true, env, ...settings });
    Object.defineProperty(io.stdout, "rows", { value: rows });
    const view = tableView((poll, isCut) => shownCountText(poll, "devices", isCut), { format, output: OUTPUT }, io);
    return { io, view, out: () => io.out().replaceAll(ESC, "\\e") };
  }

  it("has the lines of the last one replaced, unless a message came between", async () => {
    const { io, view, out } = await drawn(24);
    await view.show(polled());
    await view.show(polled(ITEMS.slice(0, 1)));
    view.warn("a warning");
    await view.show(polled([]));
    view.say("a message");
    await view.show(polled(ITEMS.slice(0, 2)));
    expect(out()).toMatchSnapshot();
    expect(io.err().replaceAll(ESC, "\\e")).toMatchSnapshot();
  });

  it.each([3, 4, 5, 6, 1])("has as many lines as fit on a screen of %i", async (rows) => {
    const { view, out } = await drawn(rows, { NO_COLOR: "1", TERM: "dumb" });
    await view.show(polled());
    expect(out()).toMatchSnapshot();
  });

  it("is printed below the last one on a terminal without escape sequences, and beside a log", async () => {
    for (const [env, settings] of [
      [{ TERM: "dumb" }, {}],
      [{ TERM: "xterm" }, { verbose: true }],
    ] as const) {
      const { view, out } = await drawn(24, env, settings, "wide");
      await view.show(polled());
      await view.show(polled([]));
      expect(out()).toMatchSnapshot(env.TERM);
    }
  });
});

describe("events", () => {
  const show = async (flags: object, paths: string[] | undefined, ...polls: Poll[]) => {
    const io = createMemoryIo();
    let now = Date.UTC(2026, 0, 31, 12);
    const view = eventsView(flags, paths, io, () => now++);
    for (const poll of polls) await view.show(poll);
    view.warn("a warning");
    view.say("a message");
    return [io.out(), io.err()];
  };
  const secret = { id: "dev_4", dynamic_client_details: { client_secret: "planted-secret" } };
  const changed = [{ ...ITEMS[0], title: "new" }, ITEMS[1] ?? {}];

  it.each<[string, object, string[] | undefined]>([
    ["whole", {}, undefined],
    ["of some fields", {}, ["status", "id"]],
    ["through jq", { jq: "[.type, .object.id]" }, undefined],
    ["with their secrets", { showSecrets: true }, ["dynamic_client_details.client_secret"]],
  ])("are as they were approved: %s", async (_what, flags, paths) => {
    expect(
      await show(flags, paths, polled([...ITEMS, secret]), polled(), polled(changed), polled(changed)),
    ).toMatchSnapshot();
  });
});
