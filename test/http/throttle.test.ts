import { describe, expect, it } from "vitest";
import type { HttpEvent, ListOptions } from "../../src/index.js";
import { VirtualClock } from "../helpers/clock.js";
import { rejection, SampleService } from "../helpers/service.js";

const pool_id = "<pool_id>";
const never = new AbortController().signal;

/** A service that allows a number of requests in each second, and refuses the others. */
function limited(perSecond: number, refuse: () => Response, pageMs = 10) {
  const service = new SampleService(160);
  const clock = new VirtualClock();
  const accepted: number[] = [];
  const refused: number[] = [];
  let inFlight = 0;
  let most = 0;
  const isDue = new Set<number>();
  service.before = async (_, nth) => {
    most = Math.max(most, ++inFlight);
    const now = clock.now();
    const isFull = accepted.filter((at) => at > now - 1000).length >= perSecond;
    (isFull ? refused : accepted).push(now);
    if (isFull) isDue.add(nth);
    await clock.sleep(pageMs, never);
    inFlight--;
  };
  service.alter = (page, _, nth) => (isDue.has(nth) ? refuse() : page);
  const events: HttpEvent[] = [];
  const client = service.client({ clock, maxRetries: 2, random: () => 0.5, onEvent: (event) => events.push(event) });
  const read = async (options: ListOptions = {}) => {
    most = 0;
    const items = await client.devices.list({ pool_id }, options).toArray();
    return items.map(({ id }) => id);
  };
  return { service, clock, client, read, accepted, refused, events, mostInFlight: () => most };
}

const tooMany = (retryAfter?: string, status = 429) =>
  new Response("slow down", { status, ...(retryAfter !== undefined && { headers: { "retry-after": retryAfter } }) });

describe("a list of a service that allows fewer pages a second than are requested", () => {
  const cases = [1, 2, 3, 5].flatMap((perSecond) =>
    [1, 4, 8, undefined].map((concurrency) => ({ perSecond, concurrency })),
  );

  it.each(cases)(
    "is complete in 1.3 × the time that $perSecond a second demand, with concurrency $concurrency",
    async ({ perSecond, concurrency }) => {
      for (const status of [429, 503]) {
        const { service, clock, read, accepted } = limited(perSecond, () => tooMany("1", status));
        expect(await read({ concurrency })).toEqual(service.ids());
        expect(accepted.length).toBe(18);
        expect(clock.now()).toBeLessThanOrEqual((1.3 * 1000 * accepted.length) / perSecond);
      }
    },
  );

  it.each(cases)(
    "is complete where the service names no time: $perSecond a second, with concurrency $concurrency",
    async ({ perSecond, concurrency }) => {
      const { service, read } = limited(perSecond, () => tooMany());
      expect(await read({ concurrency })).toEqual(service.ids());
    },
  );

  it("has one page in flight after a refusal, and one more with each success", async () => {
    const { service, read, accepted, refused, clock } = limited(1000, () => tooMany());
    const starts: number[] = [];
    const count = service.before;
    service.before = async (offset, nth) => {
      starts.push(clock.now());
      await count(offset, nth);
    };
    service.alter = (page, _, nth) => (nth === 4 ? tooMany("2") : page);
    await read({ concurrency: 4 });
    expect(refused).toEqual([]);
    // The first page, then four at once; the fourth request is refused, so that the others wait for two seconds.
    expect(starts.slice(0, 5)).toEqual([0, 10, 10, 10, 10]);
    const later = starts.slice(5).filter((at) => at >= 2000);
    const perStart = [...new Set(later)].map((at) => later.filter((one) => one === at).length);
    expect(perStart.slice(0, 2)).toEqual([1, 2]);
    expect(accepted.length).toBe(starts.length);
  });

  it("uses up no attempt where the service says how long to wait, and an attempt where it does not", async () => {
    const patient = limited(1, () => tooMany("1"));
    let left = 10;
    patient.service.alter = (page) => (left-- > 0 ? tooMany("1") : page);
    expect(await patient.read({ limit: 5 })).toHaveLength(5);
    const { service, read, clock } = limited(1000, () => tooMany());
    service.alter = () => tooMany();
    expect(await rejection(read())).toMatchObject({ code: "rate_limited", class: "unavailable" });
    expect(service.offsets).toHaveLength(3);
    // One second, then two, each with half of the spread of 250 ms.
    expect(clock.now()).toBe(1125 + 2125 + 30);
  });

  it("fails at once where the service asks for more time than there is, and other requests do not wait for it", async () => {
    const { service, client, clock, read } = limited(1000, () => tooMany());
    service.alter = (page, _, nth) => (nth === 1 ? tooMany("3600") : page);
    expect(await rejection(read())).toMatchObject({ code: "rate_limited", message: expect.stringContaining("3600 s") });
    expect(await client.devices.list({ pool_id }).toArray()).toHaveLength(160);
    expect(clock.now()).toBeLessThan(1000);
  });

  it("makes all other requests of the client wait too", async () => {
    const { client, service, clock } = limited(1000, () => tooMany());
    const starts: number[] = [];
    service.before = () => void starts.push(clock.now());
    service.alter = (page, _, nth) => (nth === 1 ? tooMany("7") : page);
    const lists = Array.from({ length: 3 }, () => client.devices.list({ pool_id }, { limit: 1 }).toArray());
    await Promise.all(lists);
    expect(starts.slice(0, 3)).toEqual([0, 0, 0]);
    await client.get("/api/v1/pool");
    expect(starts.slice(3)).toEqual([7125, 7125]);
  });

  it("is not retried without retries, and waits no longer than its signal", async () => {
    const { client, service } = limited(1000, () => tooMany());
    service.alter = () => tooMany("1");
    expect(await rejection(client.devices.list({ pool_id }, { maxRetries: 0 }).toArray())).toMatchObject({
      status: 429,
    });
    expect(service.offsets).toHaveLength(1);
    const controller = new AbortController();
    service.before = (_, nth) => (nth === 4 ? controller.abort() : undefined);
    const { signal } = controller;
    const listing = client.devices.list({ pool_id }, { signal, maxRetries: 5 }).toArray();
    expect(await rejection(listing)).toMatchObject({ code: "aborted" });
    service.alter = (page) => page;
    expect(await client.devices.list({ pool_id }).first()).toBeDefined();
  });
});
