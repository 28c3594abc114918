import { expect, it, vi } from "vitest";
import { withBriefReads } from "../../../src/cli/clients/brief-reads.js";
import { memoryStore } from "../../../src/store/memory.js";
import { madeGrant } from "../../helpers/grant.js";

/** A store with a grant, another program's view of it, and a clock. */
async function scene() {
  const files = memoryStore();
  const grant = madeGrant();
  const clock = { time: 0, now: () => clock.time };
  const read = vi.spyOn(files, "read");
  return { files, grant, clock, reads: () => read.mock.calls.length, store: withBriefReads(files, 100, clock) };
}

it("reads a grant once in a while, and a missing one each time", async () => {
  const { files, grant, clock, reads, store } = await scene();
  expect([await store.read(grant), await store.read(grant), reads()]).toEqual([undefined, undefined, 2]);
  await files.save(grant, undefined);
  for (clock.time of [0, 50, 99]) expect(await store.read(grant)).toEqual(grant);
  expect(reads()).toBe(3);
  clock.time = 100;
  await store.read(grant);
  expect(reads()).toBe(4);
  await store.read({ ...grant, account: "other" });
  expect(reads()).toBe(5);
});

it("reads anew under a lease, after it, and after a save", async () => {
  const { files, grant, reads, store } = await scene();
  await store.save(grant, undefined);
  await store.read(grant);
  const next = { ...grant, generation: grant.generation + 1 };
  await store.lease(
    "name",
    async () => {
      await files.save(next, grant.generation);
      expect((await store.read(grant))?.generation).toBe(next.generation);
      expect((await store.read(grant))?.generation).toBe(next.generation);
    },
    { signal: new AbortController().signal } as never,
  );
  expect((await store.read(grant))?.generation).toBe(next.generation);
  expect(reads()).toBe(4);
  await store.remove(grant);
  expect(await store.read(grant)).toBeUndefined();
});
