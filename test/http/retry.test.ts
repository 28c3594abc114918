import { describe, expect, it } from "vitest";
import { mayRetry } from "../../src/api/envelope.js";
import type { AgentAuthError } from "../../src/errors.js";
import type { HttpEvent } from "../../src/http/buffered-response.js";
import { createTransport, type TransportOptions } from "../../src/http/transport.js";
import { FakeClock } from "../helpers/clock.js";
import { fc } from "../helpers/properties.js";
import { type Answer, sendJson, startServer } from "../helpers/server.js";
import { rejection } from "../helpers/service.js";

async function setUp(answer: Answer, options: TransportOptions = {}, retryable = mayRetry) {
  const server = await startServer(answer);
  const clock = new FakeClock();
  const transport = createTransport({ clock, random: () => 0, ...options }, undefined, retryable);
  const send = (init?: RequestInit) => transport(new Request(`${server.origin}/api/v1/pool`, init));
  return { server, clock, send };
}

/** Fails a given number of times, then succeeds. */
function failing(times: number, status = 503, body: unknown = {}): Answer {
  return (response, _request, nth) => (nth <= times ? sendJson(response, body, status) : sendJson(response, { nth }));
}

describe("a request that fails", () => {
  it.each([408, 429, 500, 502, 503, 504])("with HTTP %i is repeated", async (status) => {
    const { server, send } = await setUp(failing(2, status));
    expect((await send()).json).toEqual({ nth: 3 });
    expect(server.requests).toHaveLength(3);
  });

  it.each([400, 401, 403, 404, 409, 410, 422, 501, 505])("with HTTP %i is not repeated", async (status) => {
    const { server, send } = await setUp(failing(1, status));
    expect((await send()).status).toBe(status);
    expect(server.requests).toHaveLength(1);
  });

  it("is sent three times and no more, and the last answer is given", async () => {
    const { server, send, clock } = await setUp((response, _request, nth) =>
      sendJson(response, { nth }, nth === 3 ? 503 : 500),
    );
    expect(await send()).toMatchObject({ status: 503, json: { nth: 3 } });
    expect(server.requests).toHaveLength(3);
    expect(clock.waits).toHaveLength(2);
  });

  it.each([0, 1, 4])("is repeated `maxRetries` times: %i", async (maxRetries) => {
    const { server, send } = await setUp(failing(99), { maxRetries });
    await send();
    expect(server.requests).toHaveLength(maxRetries + 1);
  });

  it("is not repeated when the body carries a verdict of the service, whatever the status", async () => {
    for (const code of ["bad_request", "not_permitted", "not_found", "bad_authtoken", "invalid_value"]) {
      const { server, send } = await setUp(failing(1, 500, { status: "error", code, message: "no" }));
      expect((await send()).status).toBe(500);
      expect(server.requests).toHaveLength(1);
    }
  });

  it.each(["unknown", "unexpected", "something_new", 7])("is repeated when the code %j is none", async (code) => {
    const { server, send } = await setUp(failing(1, 500, { status: "error", code, message: "oops" }));
    expect((await send()).status).toBe(200);
    expect(server.requests).toHaveLength(2);
  });

  it("is repeated with HTTP 429 even when the body has a code", async () => {
    const { server, send } = await setUp(failing(1, 429, { status: "error", code: "bad_request", message: "slow" }));
    expect((await send()).status).toBe(200);
    expect(server.requests).toHaveLength(2);
  });

  it("is repeated with its body, byte for byte", async () => {
    const body = JSON.stringify({ text: "ä".repeat(50_000) });
    const { server, send } = await setUp(failing(2));
    await send({ method: "POST", body, headers: { "content-type": "application/json" } });
    expect(server.requests.map((request) => request.body === body)).toEqual([true, true, true]);
    expect(server.requests.map((request) => request.method)).toEqual(["POST", "POST", "POST"]);
  });

  it("is repeated when the connection breaks", async () => {
    const { server, send } = await setUp((response, _request, nth) =>
      nth < 3 ? response.destroy() : sendJson(response, {}),
    );
    expect((await send()).status).toBe(200);
    expect(server.requests).toHaveLength(3);
  });

  it("reports each repetition: which attempt, after how long, and why", async () => {
    const events: HttpEvent[] = [];
    const { server, send } = await setUp(
      (response, _request, nth) => (nth === 1 ? response.destroy() : sendJson(response, {}, nth === 2 ? 503 : 200)),
      { onEvent: (event) => events.push(event), random: () => 0.5 },
    );
    await send();
    const url = `${server.origin}/api/v1/pool`;
    expect(events.filter((event) => event.type === "retry")).toEqual([
      { type: "retry", url, attempt: 2, waitMs: 125, reason: "connection_reset" },
      { type: "retry", url, attempt: 3, waitMs: 250, reason: "HTTP 503" },
    ]);
  });
});

describe("the wait between attempts", () => {
  it("is drawn from bounds that double from 250 ms and end at 20 s", async () => {
    for (const random of [0, 0.5, 0.999]) {
      const { send, clock } = await setUp(failing(99), { maxRetries: 9, random: () => random, deadlineMs: 1e9 });
      await send();
      const bounds = [250, 500, 1000, 2000, 4000, 8000, 16_000, 20_000, 20_000];
      expect(clock.waits).toEqual(bounds.map((bound) => bound * random));
    }
  });

  it("does not go past the deadline: the last failure is given at once", async () => {
    const { server, send, clock } = await setUp(failing(99), { random: () => 0.999, deadlineMs: 200, maxRetries: 8 });
    expect((await send()).status).toBe(503);
    expect(server.requests).toHaveLength(1);
    expect(clock.waits).toEqual([]);
  });
});

describe("Retry-After", () => {
  /** Answers 503 with these headers once; gives what was waited. */
  async function waited(headers: Record<string, string | string[]>, random = 0): Promise<number[]> {
    const { send, clock } = await setUp(
      (response, _request, nth) => (nth === 1 ? sendJson(response, {}, 503, headers) : sendJson(response, {})),
      { random: () => random },
    );
    expect((await send()).status).toBe(200);
    return clock.waits;
  }
  const date = "Tue, 01 Jan 2030 00:00:00 GMT";

  it("in seconds is a floor, with jitter on top", async () => {
    expect(await waited({ "retry-after": "2" })).toEqual([2000]);
    expect(await waited({ "retry-after": "2" }, 0.5)).toEqual([2125]);
    expect(await waited({ "retry-after": "0" })).toEqual([0]);
  });

  it("as a date is read against the answer's own Date, so that a wrong clock does not matter", async () => {
    expect(
      await waited({ date: "Mon, 03 Feb 2020 10:00:00 GMT", "retry-after": "Mon, 03 Feb 2020 10:00:07 GMT" }),
    ).toEqual([7000]);
  });

  it("as a date without a Date beside it is read against the clock", async () => {
    expect(await waited({ date: "-", "retry-after": "Tue, 01 Jan 2030 00:00:09 GMT" })).toEqual([9000]);
  });

  it("that comes twice is the longest of both, in whatever form they are", async () => {
    expect(await waited({ "retry-after": ["2", "5"] })).toEqual([5000]);
    const dates = ["Tue, 01 Jan 2030 00:00:03 GMT", "Tue, 01 Jan 2030 00:00:11 GMT"];
    expect(await waited({ date, "retry-after": dates })).toEqual([11_000]);
    expect(await waited({ date, "retry-after": [...dates, "4"] })).toEqual([11_000]);
    expect(await waited({ date, "retry-after": ["12", ...dates] })).toEqual([12_000]);
  });

  it.each(["-1", "1e9", "abc", "1.5", "2, abc", "0x10", "Tue, 99 Foo 2030 99:99:99 GMT", "2030-01-01T00:00:00Z"])(
    "%j is no value: the computed delays apply",
    async (value) => {
      expect(await waited({ date, "retry-after": value }, 0.5)).toEqual([125]);
    },
  );

  it.each([
    ["1000000000", 503, "server_error", "1000000000 s"],
    ["3600", 429, "rate_limited", "3600 s"],
    ["9".repeat(400), 503, "server_error", "longer than the deadline"],
    ["Tue, 01 Jan 2030 01:00:00 GMT", 503, "server_error", "3600 s"],
  ])("%s beyond the deadline ends the call at once and is named (HTTP %i)", async (value, status, code, said) => {
    const { server, send, clock } = await setUp((response) =>
      sendJson(response, {}, status, { date, "retry-after": value, "x-request-id": "req_9" }),
    );
    const error = (await rejection(send())) as AgentAuthError;
    expect(error).toMatchObject({ code, class: "unavailable", status, requestId: "req_9" });
    expect(error.message).toContain(said);
    expect(error.message).toContain(`Retry-After "${value.slice(0, 60)}`);
    expect(server.requests).toHaveLength(1);
    expect(clock.waits).toEqual([]);
  });

  it("is never undercut, nor overstepped by more than the jitter", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(59), fc.double({ min: 0, max: 0.999, noNaN: true }), async (seconds, random) => {
        const clock = new FakeClock();
        let nth = 0;
        const fetch = async () =>
          ++nth === 1
            ? Response.json({}, { status: 429, headers: { "retry-after": `${seconds}` } })
            : Response.json({});
        await createTransport({ clock, fetch, random: () => random })(new Request("https://agentauth.example"));
        expect(clock.waits[0]).toBeGreaterThanOrEqual(seconds * 1000);
        expect(clock.waits[0]).toBeLessThanOrEqual(seconds * 1000 + 250);
      }),
    );
  });
});

describe("the retry budget", () => {
  it("runs out while everything fails, so that a service that is down gets one request a call", async () => {
    const { server, send } = await setUp(failing(1e9));
    for (let call = 0; call < 60; call++) await send();
    // 500 tokens at 5 a retry are 100 retries: 50 calls with two, then none.
    expect(server.requests).toHaveLength(60 + 100);
  });

  it("pays a timeout double", async () => {
    let attempts = 0;
    const onEvent = (event: HttpEvent) => {
      if (event.type === "request") attempts++;
    };
    const { send } = await setUp(() => undefined, { timeoutMs: 5, onEvent });
    for (let call = 0; call < 30; call++) expect(await rejection(send())).toMatchObject({ code: "timeout" });
    expect(attempts).toBe(30 + 50);
  });

  it("is not filled by calls that ran into their deadline", async () => {
    let fetches = 0;
    // The second attempt of each call fails by the deadline of the whole, not by a failure of its own.
    const fetch: typeof globalThis.fetch = () =>
      ++fetches % 2 === 1 && fetches < 200
        ? Promise.reject(new TypeError("fetch failed"))
        : new Promise(() => undefined);
    const transport = createTransport({ clock: new FakeClock(), random: () => 0, fetch, deadlineMs: 5 });
    const call = () => rejection(transport(new Request("https://agentauth.example")));
    for (let nth = 0; nth < 100; nth++) expect(await call()).toMatchObject({ code: "timeout" });
    fetches = 0;
    expect(await call()).toMatchObject({ code: "network_failed" });
    expect(fetches).toBe(1);
  });

  it("is filled again by success", async () => {
    let down = true;
    const { server, send } = await setUp((response) => sendJson(response, {}, down ? 503 : 200));
    for (let call = 0; call < 51; call++) await send();
    down = false;
    for (let call = 0; call < 5; call++) await send();
    down = true;
    const before = server.requests.length;
    await send();
    expect(server.requests.length - before).toBe(2);
  });
});
