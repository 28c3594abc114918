import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Grant } from "../../../src/oauth/model/grant.js";
import { type Child, compile, startChild } from "../../helpers/child.js";
import { madeGrant } from "../../helpers/grant.js";
import { grantFile } from "../../helpers/grant-files.js";
import { ON_WINDOWS } from "../../helpers/systems.js";
import type { SaveJob } from "./save-driver.js";
import { filesOf, KEY, storeWithGrant } from "./support.js";

const DRIVER = new URL("save-driver.ts", import.meta.url);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const onUnix = describe.skipIf(ON_WINDOWS);

interface Saver extends Child {
  go(): void;
}

async function saver(job: SaveJob): Promise<Saver> {
  const child = startChild(await compile(DRIVER), job);
  await child.hears("started");
  return { ...child, go: () => child.send({}) };
}

/** Whether a grant of the driver is of one piece. */
function expectWhole(grant: Grant | undefined): number {
  if (!grant) throw new Error("no grant");
  expect(grant.tokens.accessToken.reveal()).toBe(`${grant.generation} `.repeat(2000).trim());
  return grant.generation;
}

it("processes that save over one generation are refused, all but one", async () => {
  const { home, store } = await storeWithGrant();
  const tags = Array.from({ length: 20 }, (_, nth) => `tag-${nth}`);
  const savers = await Promise.all(tags.map((tag) => saver({ folder: home, kind: "race", tag })));
  for (const one of savers) one.go();
  const ends = await Promise.all(savers.map((one) => one.hears("ended")));
  const winners = ends.flatMap(({ saved }, nth) => (saved ? [tags[nth]] : []));
  expect(winners).toHaveLength(1);
  expect(await store.read(KEY)).toMatchObject({ generation: 2, requestedScope: winners[0] });
  expect(filesOf(home)).toHaveLength(1);
});

onUnix("a process that is killed while it saves", () => {
  it("leaves the old or the new, whole, a hundred times", { timeout: 120_000 }, async () => {
    const lane = async (nth: number) => {
      const { home, store } = await storeWithGrant();
      await store.remove(KEY);
      let newest = 0;
      for (let kills = 0; kills < 25; kills++) {
        const child = await saver({ folder: home, kind: "chain", tag: `lane ${nth}` });
        child.go();
        await child.hears("saved");
        await pause(Math.random() * 20);
        await child.kill("SIGKILL");
        const said = child.said.flatMap(({ generation }) => (typeof generation === "number" ? [generation] : []));
        const generation = expectWhole(await store.read(KEY));
        // What was said to be saved is there, or what came after it.
        expect(generation).toBeGreaterThanOrEqual(Math.max(newest, ...said));
        newest = generation;
      }
      return { home, store, newest };
    };
    const lanes = await Promise.all([0, 1, 2, 3].map(lane));
    for (const { home, store, newest } of lanes) {
      expect(await store.save(madeGrant({ generation: newest + 1 }), newest)).toBe(true);
      expect(filesOf(home).filter((name) => name.endsWith(".json"))).toHaveLength(1);
    }
  });
});

it.each([0, 600])(
  "a reader never finds an error or nothing while another process saves 500 times, beside %i others",
  async (others) => {
    const { home, store } = await storeWithGrant();
    const own = dirname(grantFile(home));
    for (let nth = 0; nth < others; nth++) {
      writeFileSync(join(own, `${nth.toString(16).padStart(40, "0")}.1.json`), "{}", { mode: 0o600 });
    }
    const child = await saver({ folder: home, kind: "chain", count: 500, tag: "quick" });
    child.go();
    await child.hears("saved");
    const seen = new Set<number>();
    while (!child.said.some(({ event }) => event === "refused")) {
      for (let nth = 0; nth < 10; nth++) seen.add(expectWhole(await store.read(KEY)));
      await pause(0);
    }
    expect(expectWhole(await store.read(KEY))).toBe(501);
    expect([...seen]).toEqual([...seen].sort((a, b) => a - b));
    expect(seen.size).toBeGreaterThan(10);
  },
);

it("removing ends what another process is saving: nothing comes back", async () => {
  const { home, store } = await storeWithGrant();
  await store.remove(KEY);
  const child = await saver({ folder: home, kind: "chain", tag: "busy" });
  for (let round = 0; round < 100; round++) {
    child.go();
    await child.hears("begun");
    await pause(Math.random() * 5);
    await store.remove(KEY);
    await child.hears("refused");
    expect(await store.read(KEY)).toBeUndefined();
    expect(filesOf(home)).toEqual([]);
  }
});
