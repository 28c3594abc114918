import { expect, it } from "vitest";
import { hashValues } from "../../../src/oauth/model/hash.js";

it("the hash of values depends on where each of them ends", async () => {
  const hashes = [await hashValues("ab", "c"), await hashValues("a", "bc"), await hashValues("ab", undefined, "c")];
  expect(new Set(hashes).size).toBe(3);
});
