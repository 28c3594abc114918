import { describe, expect, it } from "vitest";
import { type AgentAuthError, abortedError } from "../../src/errors.js";
import { shownUrl } from "../../src/http/address.js";
import { type HttpEvent, readRequestId } from "../../src/http/buffered-response.js";
import { OneAtATime, SingleFlight } from "../../src/http/single-flight.js";
import { createTransport, type Logger, type TransportOptions } from "../../src/http/transport.js";
import type { ListOptions } from "../../src/index.js";
import { FakeClock, VirtualClock } from "../helpers/clock.js";
import { sendJson, startServer } from "../helpers/server.js";
import { rejection, SampleService } from "../helpers/service.js";

const address = "https://agentauth.example/api/v1/pool";

describe("a transport", () => {
  it.each(["timeoutMs", "deadlineMs", "maxBodyBytes"] as const)("wants a positive %s", (name) => {
    for (const value of [0, -1, Number.NaN]) {
      expect(() => createTransport({ [name]: value })).toThrow(TypeError);
      expect(() => createTransport({ [name]: value })).toThrow(`${name} must be a positive number, not ${value}`);
    }
    expect(() => createTransport({ [name]: Number.POSITIVE_INFINITY })).not.toThrow();
  });

  it.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY])("refuses %d retries", (maxRetries) => {
    const message = `maxRetries must be a whole number of at least 0, not ${maxRetries}`;
    expect(() => createTransport({ maxRetries })).toThrow(new TypeError(message));
  });

  it("sends a request without limits when configured so", async () => {
    const server = await startServer((response) => sendJson(response, { ok: true }));
    const none = Number.POSITIVE_INFINITY;
    const transport = createTransport({ timeoutMs: none, deadlineMs: none, maxBodyBytes: none });
    expect((await transport(new Request(server.origin))).json).toEqual({ ok: true });
  });

  it("finds the global fetch when it is needed, not when it is built", async () => {
    const transport = createTransport({});
    const original = globalThis.fetch;
    globalThis.fetch = async () => Response.json({ replaced: true });
    try {
      expect((await transport(new Request(address))).json).toEqual({ replaced: true });
    } finally {
      globalThis.fetch = original;
    }
  });

  it("follows redirects within the origin, and returns them where it is told to", async () => {
    const server = await startServer((response, { url }) =>
      url === "/new" ? sendJson(response, { at: url }) : response.writeHead(307, { location: "/new" }).end(),
    );
    const to = (redirects?: "manual") =>
      createTransport({ ...(redirects && { redirects }) })(new Request(server.origin));
    expect([await to(), await to("manual")]).toMatchObject([{ status: 200, json: { at: "/new" } }, { status: 307 }]);
  });

  it("reports the query of a request decoded, and as it is where it cannot be", async () => {
    const queries: unknown[] = [];
    const onEvent = (event: HttpEvent) => void (event.type === "request" && queries.push(event.query));
    const transport = createTransport({ fetch: async () => Response.json({}), onEvent });
    for (const query of ["", "?a=%20b", "?a=%zz"]) await transport(new Request(`${address}${query}`));
    expect(queries).toEqual(["", "?a= b", "?a=%zz"]);
  });

  it("makes an error of what a fetch throws without a promise", async () => {
    const fetch: typeof globalThis.fetch = () => {
      throw new TypeError("not even begun");
    };
    const transport = createTransport({ fetch, maxRetries: 0 });
    expect(await rejection(transport(new Request(address)))).toMatchObject({ code: "network_failed" });
  });

  it("does not let the service set cookies or be asked with any", async () => {
    const server = await startServer((response) => sendJson(response, {}, 200, { "set-cookie": "session=1" }));
    const transport = createTransport({});
    await transport(new Request(server.origin));
    await transport(new Request(server.origin));
    expect(server.requests[1]?.headers.cookie).toBeUndefined();
  });
});

describe("the events of a transport", () => {
  async function setUp(options: TransportOptions) {
    const server = await startServer((response, _request, nth) =>
      nth === 1 ? response.destroy() : sendJson(response, {}, 200, { "x-request-id": "req_1" }),
    );
    const transport = createTransport({ clock: new FakeClock(), random: () => 0, ...options });
    const request = new Request(`${server.origin}/a?pagination%5Boffset%5D=5`, { headers: { "x-key": "canary-key" } });
    return { server, send: () => transport(request) };
  }

  it("report every request, answer and failure, in order, and never of a header or a body", async () => {
    const events: HttpEvent[] = [];
    const levels: string[] = [];
    const [debug, info, warn, error] = ["debug", "info", "warn", "error"].map((level) => () => void levels.push(level));
    const logger = { debug, info, warn, error } as Logger;
    const { server, send } = await setUp({ onEvent: (event) => events.push(event), logger });
    await send();
    expect(levels).toEqual(["debug", "warn", "warn", "debug", "debug"]);
    const details = { method: "GET", url: `${server.origin}/a` };
    expect(events).toMatchObject([
      { type: "request", ...details, query: "?pagination[offset]=5" },
      { type: "failure", ...details, code: "connection_reset", ms: 0 },
      { type: "retry", url: details.url, attempt: 2 },
      { type: "request", ...details },
      { type: "response", ...details, status: 200, ms: 0, requestId: "req_1" },
    ]);
    expect(JSON.stringify(events)).not.toContain("canary");
  });

  it("that the listener throws at end the call with what it threw, and are not taken for a failure of the network", async () => {
    for (const type of ["request", "failure", "response", "retry"]) {
      const bug = new RangeError("bug of the listener");
      let seen = 0;
      const { send } = await setUp({
        onEvent(event) {
          if (event.type !== type) return;
          seen++;
          throw bug;
        },
      });
      expect(await rejection(send())).toBe(bug);
      expect(seen).toBe(1);
    }
  });
});

describe("a request id", () => {
  it("is on the result and on the error", async () => {
    const server = await startServer((response, _request, nth) =>
      nth === 1
        ? sendJson(response, {}, 200, { "x-request-id": "req_ok" })
        : response.writeHead(200, { "content-type": "application/json", "x-request-id": "req_bad" }).end("{"),
    );
    const transport = createTransport({ maxRetries: 0 });
    expect((await transport(new Request(server.origin))).requestId).toBe("req_ok");
    const error = (await rejection(transport(new Request(server.origin)))) as AgentAuthError;
    expect(error.requestId).toBe("req_bad");
    expect(error.toJSON()).toMatchObject({ request_id: "req_bad", status: 200 });
  });

  it.each(["x-request-id", "request-id", "x-amzn-requestid", "x-correlation-id", "cf-ray"])(
    "may come in %s",
    (name) => {
      expect(readRequestId(new Headers({ [name]: "r1" }))).toBe("r1");
    },
  );

  it("is cut when it is endless, and undefined when there is none", () => {
    expect(readRequestId(new Headers({ "x-request-id": "r".repeat(5000) }))).toHaveLength(200);
    expect(readRequestId(new Headers({ "x-request-id": "" }))).toBeUndefined();
  });
});

it("an address that is shown has no user, password, query or fragment", () => {
  expect(shownUrl("https://user:pw@a.example:8443/p/q?token=t#f")).toBe("https://a.example:8443/p/q");
  expect(shownUrl("nonsense")).toBe("");
});

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

/** Work that ends when a test says so, or when its signal fires. */
function work() {
  let begun = 0;
  let land: (value: string) => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const run = (signal: AbortSignal) => {
    begun++;
    return new Promise<string>((resolve, reject) => {
      land = resolve;
      fail = reject;
      signal.addEventListener("abort", () => reject(abortedError(signal)));
    });
  };
  return { run, land: (value: string) => land(value), fail: (error: Error) => fail(error), begun: () => begun };
}

describe("Flights", () => {
  it("does the work once for all who ask at the same time, and again for who asks later", async () => {
    const flights = new SingleFlight<string>();
    const job = work();
    const first = [flights.run("a", job.run, undefined), flights.run("a", job.run, undefined)];
    job.land("one");
    expect(await Promise.all(first)).toEqual(["one", "one"]);
    const second = flights.run("a", job.run, undefined);
    job.land("two");
    expect(await second).toBe("two");
    expect(job.begun()).toBe(2);
  });

  it("keeps names apart", async () => {
    const flights = new SingleFlight<string>();
    const [a, b] = [work(), work()];
    const both = Promise.all([flights.run("a", a.run, undefined), flights.run("b", b.run, undefined)]);
    a.land("a");
    b.land("b");
    expect(await both).toEqual(["a", "b"]);
  });

  it("gives a failure to all, and starts again after it", async () => {
    const flights = new SingleFlight<string>();
    const job = work();
    const both = Promise.allSettled([flights.run("a", job.run, undefined), flights.run("a", job.run, undefined)]);
    job.fail(new Error("no"));
    expect((await both).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    const again = flights.run("a", job.run, undefined);
    job.land("yes");
    expect(await again).toBe("yes");
  });

  it("ends the work with the last who waits, not with the first", async () => {
    const flights = new SingleFlight<string>();
    const job = work();
    const [one, two] = [new AbortController(), new AbortController()];
    const first = flights.run("a", job.run, one.signal);
    const second = flights.run("a", job.run, two.signal);
    one.abort();
    await expect(first).rejects.toMatchObject({ code: "aborted" });
    const third = flights.run("a", job.run, undefined);
    two.abort();
    await expect(second).rejects.toMatchObject({ code: "aborted" });
    job.land("done");
    expect(await third).toBe("done");
    expect(job.begun()).toBe(1);
  });

  it("waits, when the last one leaves, until the work has put its things in order", async () => {
    const flights = new SingleFlight<string>();
    const controller = new AbortController();
    let inOrder = false;
    const left = flights.run(
      "a",
      (signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            setImmediate(() => {
              inOrder = true;
              reject(new Error("ended"));
            });
          });
        }),
      controller.signal,
    );
    controller.abort();
    await expect(left).rejects.toMatchObject({ code: "aborted" });
    expect(inOrder).toBe(true);
  });
});

it("work that comes one at a time learns whether it had to wait", async () => {
  const queue = new OneAtATime();
  const run = () => queue.run("a", async (waited) => waited);
  expect(await Promise.all([run(), run()])).toEqual([false, true]);
  expect(await run()).toBe(false);
});
