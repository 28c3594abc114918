import { expect, it } from "vitest";
import { Lru } from "../../src/http/lru.js";

it("holds a bounded number of entries, and those that are used", () => {
  const lru = new Lru<number>(10);
  for (let nth = 0; nth < 1000; nth++) {
    lru.set(`${nth}`, nth);
    expect(lru.get("0")).toBe(0);
    expect(lru.get(`${nth}`)).toBe(nth);
  }
  const held = Array.from({ length: 1000 }, (_, nth) => `${nth}`).filter((name) => lru.get(name) !== undefined);
  expect(held.length).toBeLessThanOrEqual(12);
  expect(held.length).toBeGreaterThan(2);
  lru.delete("0");
  expect(lru.get("0")).toBeUndefined();
  lru.set("0", 1);
  lru.clear();
  expect(lru.get("0")).toBeUndefined();
});

it("returns what was set last", () => {
  const lru = new Lru<number>(2);
  lru.set("a", 1);
  lru.set("b", 2);
  lru.set("a", 3);
  expect(lru.get("a")).toBe(3);
  lru.delete("a");
  expect(lru.get("a")).toBeUndefined();
});
