import { describe, expect, it } from "vitest";
import type { Page } from "../../src/api/page.js";
import { type Pace, Prefetcher, type Upcoming } from "../../src/api/prefetcher.js";
import type { AbortSource } from "../../src/http/deadline.js";

interface Options {
  concurrency?: number;
  offset?: number;
  signal?: AbortSignal;
  /** Milliseconds that each page takes. */
  ms?: number;
  items?: number;
  inFlight?: number;
}

const pageAt = (offset: number, count: number, items: number) =>
  ({ offset, items: Array.from({ length: items }, () => ({})), pagination: { item_count: count } }) as Page<object>;

/** What follows the page at an offset in a list of 100,000. */
const following = (offset: number, next: number): Upcoming => ({ next, step: next - offset, end: 100_000 });

/** A prefetcher over a list of 100 items, and the offsets that it has requested. */
function setUp({ ms = 0, items = 10, inFlight = 0, ...options }: Options = {}, count = 100) {
  const requested: (number | undefined)[] = [];
  const signals: AbortSource[] = [];
  let now = 0;
  const pace: Pace = { now: () => now, inFlight };
  const fetchPage = async (offset: number | undefined, signal: AbortSource) => {
    requested.push(offset);
    signals.push(signal);
    now += ms;
    await Promise.resolve();
    if (offset === 66) throw new Error("no page here");
    return pageAt(offset ?? 0, count, items);
  };
  const prefetcher = new Prefetcher<object>(fetchPage, options, pace);
  return { prefetcher, requested, signals, pace };
}

describe("pages that are requested ahead", () => {
  it.each<[string, Options, number, number, number[]]>([
    ["one at a time", { concurrency: 1 }, 10, 100, []],
    ["by default", {}, 10, 100, []],
    ["as many as were asked for", { concurrency: 4 }, 10, 100, [10, 20, 30, 40]],
    ["from one item earlier", { concurrency: 4 }, 9, 99, [9, 18, 27, 36]],
    ["up to the end", { concurrency: 4 }, 10, 30, [10, 20]],
    ["the next one also behind the end", { concurrency: 4 }, 10, 5, [10]],
  ])("are those: %s", (_what, options, next, end, expected) => {
    const { prefetcher, requested } = setUp(options);
    prefetcher.schedule({ next, step: next, end });
    expect(requested).toEqual(expected);
  });

  it("are each requested once, and follow each other", async () => {
    const { prefetcher, requested } = setUp({ concurrency: 2 });
    prefetcher.schedule(following(0, 10));
    expect((await prefetcher.next(10)).offset).toBe(10);
    prefetcher.schedule(following(10, 20));
    expect((await prefetcher.next(20)).offset).toBe(20);
    expect(requested).toEqual([10, 20, 30]);
  });

  it("are dropped at a wrong guess, and no more are requested", async () => {
    const { prefetcher, requested, signals } = setUp({ concurrency: 3 });
    prefetcher.schedule(following(0, 10));
    await prefetcher.next(10);
    prefetcher.schedule(following(10, 15));
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true]);
    await prefetcher.next(15);
    prefetcher.schedule(following(15, 25));
    expect(requested).toEqual([10, 20, 30, 15]);
    expect(signals[3]?.aborted).toBe(false);
    prefetcher.stop();
    expect(signals[3]?.aborted).toBe(true);
  });

  it("may fail: that counts where the page is the next one", async () => {
    const { prefetcher } = setUp({ concurrency: 2 });
    prefetcher.schedule(following(60, 66));
    await new Promise(setImmediate);
    await expect(prefetcher.next(66)).rejects.toThrow("no page here");
  });

  it("are aborted by the signal of the listing", async () => {
    const controller = new AbortController();
    const { prefetcher, signals } = setUp({ concurrency: 2, signal: controller.signal });
    prefetcher.schedule(following(0, 10));
    controller.abort();
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    await prefetcher.next(10);
  });

  it.each<[string, Options, number[], number]>([
    ["after two slow pages, the first not counted", { ms: 20 }, [0, 10, 20], 4],
    ["not after one slow page", { ms: 20 }, [0, 10], 0],
    ["not where they are fast", { ms: 19 }, [0, 10, 20, 30], 0],
    ["not where large ones take longer", { ms: 39, items: 1000 }, [0, 1000, 2000], 0],
    ["where large ones are slow", { ms: 40, items: 1000 }, [0, 1000, 2000], 4],
    ["as many as other listings leave", { ms: 20, inFlight: 3 }, [0, 10, 20], 1],
    ["none where other listings have four", { ms: 20, inFlight: 4 }, [0, 10, 20], 0],
  ])("are several %s", async (_what, options, offsets, ahead) => {
    const { prefetcher, requested } = setUp(options, 100_000);
    for (const offset of offsets) await prefetcher.next(offset);
    const last = offsets.at(-1) ?? 0;
    prefetcher.schedule(following(last, last + (options.items ?? 10)));
    expect(requested.length - offsets.length).toBe(ahead);
  });

  it("leave the count of those in flight as it was", async () => {
    const { prefetcher, pace } = setUp({ concurrency: 3 });
    prefetcher.schedule(following(0, 10));
    expect(pace.inFlight).toBe(3);
    for (const offset of [10, 20, 30]) await prefetcher.next(offset);
    expect(pace.inFlight).toBe(0);
  });

  it("begin where the service does, unless an offset is asked for", async () => {
    const [first, named] = [setUp(), setUp({ offset: 0 })];
    await Promise.all([first.prefetcher.next(0), named.prefetcher.next(0)]);
    expect([first.requested, named.requested]).toEqual([[undefined], [0]]);
  });
});
