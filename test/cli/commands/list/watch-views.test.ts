import { describe, expect, it } from "vitest";
import { createTracker, type TrackedPoll } from "../../../../src/cli/commands/list/watch-views.js";
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
