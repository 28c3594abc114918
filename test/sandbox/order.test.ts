import { describe, expect, it } from "vitest";
import { OrderCache, orderByRank } from "../../src/sandbox/order.js";

describe("orderByRank", () => {
  it("keeps equal ranks in the order they came in, up to the largest rank", () => {
    const base = Int32Array.of(4, 2, 0, 3, 1);
    const ranks = [5, 2 ** 33 - 1, 5, 0, 2 ** 33 - 2];
    expect([...orderByRank(base, (index) => ranks[index] ?? 0)]).toEqual([3, 2, 0, 4, 1]);
  });
});

describe("OrderCache", () => {
  const made: string[] = [];
  const get = (cache: OrderCache, name: string, length: number) =>
    cache.get(name, () => {
      made.push(name);
      return new Int32Array(length);
    });

  it("holds no more than its budget and forgets what was used longest ago", () => {
    const cache = new OrderCache(10);
    for (const name of ["a", "b", "a", "c", "a", "b"]) get(cache, name, 4);
    expect(made).toEqual(["a", "b", "c", "b"]);
    made.length = 0;
    expect(get(cache, "large", 50)).toHaveLength(50);
    get(cache, "a", 4);
    get(cache, "large", 50);
    expect(made).toEqual(["large", "a", "large"]);
  });

  it("forgets what it is told to", () => {
    const cache = new OrderCache(10);
    get(cache, "x", 8);
    cache.forget("x");
    made.length = 0;
    for (const name of ["x", "y", "x"]) get(cache, name, 5);
    expect(made).toEqual(["x", "y"]);
  });
});
