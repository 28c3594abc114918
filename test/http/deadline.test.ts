import { getEventListeners } from "node:events";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { bearerAuth, type TokenSource } from "../../src/api/auth.js";
import { AgentAuthError } from "../../src/errors.js";
import { followSignal, systemClock, untilAborted } from "../../src/http/deadline.js";
import { type CallLimits, createTransport, type TransportOptions } from "../../src/http/transport.js";
import { Redactor } from "../../src/redact.js";
import { FakeClock } from "../helpers/clock.js";
import { type Answer, sendJson, startServer, until } from "../helpers/server.js";
import { rejection } from "../helpers/service.js";

const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length;

async function setUp(answer: Answer, options: TransportOptions = {}, token?: TokenSource) {
  const server = await startServer(answer);
  const controller = new AbortController();
  const auth = token === undefined ? undefined : bearerAuth(token, undefined, server.origin, new Redactor());
  const transport = createTransport({ clock: new FakeClock(), random: () => 0, ...options }, auth);
  const send = (limits?: CallLimits) =>
    transport(new Request(`${server.origin}/api/v1/pool`), controller.signal, limits);
  return { server, controller, send };
}

describe("the clock of the machine", () => {
  it("never ends a sleep before its time", async () => {
    for (const ms of [0.4, 1, 3.3, 12]) {
      const before = systemClock.now();
      await systemClock.sleep(ms, new AbortController().signal);
      expect(systemClock.now() - before).toBeGreaterThanOrEqual(ms);
    }
  });

  it("ends a sleep at once when the signal fires, and lets go of signal and timer", async () => {
    const controller = new AbortController();
    const sleeping = rejection(systemClock.sleep(1e9, controller.signal));
    expect(listeners(controller.signal)).toBe(1);
    controller.abort("enough");
    expect(await sleeping).toMatchObject({ code: "aborted", cause: "enough" });
    expect(listeners(controller.signal)).toBe(0);
    expect(await rejection(systemClock.sleep(1e9, controller.signal))).toMatchObject({ code: "aborted" });
  });

  it("lets go of the signal after a sleep that ended by itself", async () => {
    const { signal } = new AbortController();
    await systemClock.sleep(1, signal);
    expect(listeners(signal)).toBe(0);
  });

  it("sleeps on past what a timer can hold", async () => {
    vi.useFakeTimers();
    try {
      let isAwake = false;
      const month = 31 * 24 * 3600 * 1000;
      const sleeping = systemClock.sleep(month, new AbortController().signal).then(() => {
        isAwake = true;
      });
      await vi.advanceTimersByTimeAsync(month - 1000);
      expect(isAwake).toBe(false);
      await vi.advanceTimersByTimeAsync(1001);
      await sleeping;
      expect(isAwake).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("a deadline that was slept through", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  it("gives what has arrived five seconds to be read", () => {
    const now = vi.spyOn(performance, "now").mockReturnValue(0);
    const { signal } = followSignal(undefined, 100, () => "too late");
    now.mockReturnValue(5000);
    vi.advanceTimersByTime(100);
    expect(signal.aborted).toBe(false);
    vi.advanceTimersByTime(4999);
    expect(signal.aborted).toBe(false);
    vi.advanceTimersByTime(1);
    expect(signal.reason).toBe("too late");
  });

  it("leaves no timer behind when it is released within that time", () => {
    const now = vi.spyOn(performance, "now").mockReturnValue(0);
    const call = followSignal(undefined, 100);
    now.mockReturnValue(5000);
    vi.advanceTimersByTime(100);
    expect(vi.getTimerCount()).toBe(1);
    call.release();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("ends at once where the process was only a little late", () => {
    const now = vi.spyOn(performance, "now").mockReturnValue(0);
    const { signal } = followSignal(undefined, 100);
    now.mockReturnValue(900);
    vi.advanceTimersByTime(100);
    expect(signal.aborted).toBe(true);
  });
});

describe("a controller that follows a signal", () => {
  it("fires once, with its first reason, for those who listen then", () => {
    const parent = new AbortController();
    const following = followSignal(parent.signal);
    const heard: string[] = [];
    const [left, stays] = [() => heard.push("left"), () => heard.push("stays")];
    const { signal } = following;
    for (const listener of [left, stays]) signal.addEventListener("abort", listener);
    signal.removeEventListener("abort", left);
    expect([signal.aborted, signal.reason]).toEqual([false, undefined]);
    following.abort("first");
    following.abort("second");
    parent.abort("third");
    expect([heard, signal.aborted, signal.reason]).toEqual([["stays"], true, "first"]);
  });

  it("fires with a signal that fires, or has fired, until it is released", () => {
    const parent = new AbortController();
    const [one, released] = [followSignal(parent.signal), followSignal(parent.signal)];
    released.release();
    expect(listeners(parent.signal)).toBe(1);
    parent.abort("enough");
    const late = followSignal(parent.signal);
    expect([one.signal.reason, released.signal.aborted, late.signal.reason]).toEqual(["enough", false, "enough"]);
  });
});

describe("no timer is left behind", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("by a sleep that was ended", async () => {
    const controller = new AbortController();
    const sleeping = rejection(systemClock.sleep(1e9, controller.signal));
    expect(vi.getTimerCount()).toBe(1);
    controller.abort();
    await sleeping;
    expect(vi.getTimerCount()).toBe(0);
  });

  it("by a call, whether it succeeded or failed", async () => {
    const during: number[] = [];
    for (const status of [200, 503, 404]) {
      const fetch = async () => {
        during.push(vi.getTimerCount());
        return Response.json({}, { status });
      };
      const transport = createTransport({ fetch, clock: new FakeClock() });
      await transport(new Request("https://agentauth.example"));
      expect(vi.getTimerCount()).toBe(0);
    }
    // One of the attempt and one of the whole call.
    expect(new Set(during)).toEqual(new Set([2]));
  });
});

describe("work until a signal fires", () => {
  it("makes no error when the signal fires as soon as the work is over", async () => {
    const controller = new AbortController();
    let reads = 0;
    Object.defineProperty(controller.signal, "reason", { get: () => reads++ });
    await untilAborted(Promise.resolve(7), controller.signal);
    controller.abort();
    expect(reads).toBe(0);
  });

  it("gives what the work gives, and lets go of the signal", async () => {
    const { signal } = new AbortController();
    expect(await untilAborted(Promise.resolve(7), signal)).toBe(7);
    expect(await rejection(untilAborted(Promise.reject(new Error("no")), signal))).toMatchObject({ message: "no" });
    expect(listeners(signal)).toBe(0);
  });

  it("ends although the work never does", async () => {
    const controller = new AbortController();
    const waiting = rejection(untilAborted(new Promise(() => undefined), controller.signal));
    controller.abort();
    expect(await waiting).toMatchObject({ code: "aborted", class: "aborted" });
    expect(listeners(controller.signal)).toBe(0);
  });
});

describe("a caller's signal", () => {
  it("that has fired before prevents the call of a fetch that would ignore it", async () => {
    const fetch = vi.fn(async () => Response.json({}));
    const sending = createTransport({ fetch })(new Request("https://agentauth.example"), AbortSignal.abort("no"));
    expect(await rejection(sending)).toMatchObject({ code: "aborted", cause: "no" });
    expect(fetch).not.toHaveBeenCalled();
  });

  it("ends a request that is not answered", async () => {
    const { server, controller, send } = await setUp(() => undefined);
    const sending = rejection(send());
    await until(() => server.requests.length === 1);
    controller.abort(new Error("the user left"));
    expect(await sending).toMatchObject({ code: "aborted", cause: { message: "the user left" } });
    expect(listeners(controller.signal)).toBe(0);
    expect(server.requests).toHaveLength(1);
  });

  it("ends a body that does not end, and its connection", async () => {
    let isClosed = false;
    const { server, controller, send } = await setUp((response) => {
      response.on("close", () => {
        isClosed = true;
      });
      response.writeHead(200, { "content-type": "application/json" }).write('{"summaries":[');
    });
    const sending = rejection(send());
    await until(() => server.requests.length === 1);
    // Time for the head to arrive, so that it is the body that is waited for.
    await systemClock.sleep(20, new AbortController().signal);
    controller.abort();
    expect(await sending).toMatchObject({ code: "aborted" });
    expect(listeners(controller.signal)).toBe(0);
    await until(() => isClosed);
  });

  it("ends the wait before a repetition", async () => {
    const { server, controller, send } = await setUp(
      (response) => sendJson(response, {}, 503, { "retry-after": "50" }),
      { clock: systemClock },
    );
    const sending = rejection(send());
    await until(() => server.requests.length === 1);
    await systemClock.sleep(20, new AbortController().signal);
    controller.abort();
    expect(await sending).toMatchObject({ code: "aborted" });
    expect(listeners(controller.signal)).toBe(0);
    expect(server.requests).toHaveLength(1);
  });

  it("ends a token function that does not answer, and nothing is sent", async () => {
    let isAsked = false;
    const { server, controller, send } = await setUp(
      (response) => sendJson(response, {}),
      {},
      () => {
        isAsked = true;
        return new Promise<string>(() => undefined);
      },
    );
    const sending = rejection(send());
    await until(() => isAsked);
    controller.abort();
    expect(await sending).toMatchObject({ code: "aborted" });
    expect(listeners(controller.signal)).toBe(0);
    expect(server.requests).toEqual([]);
  });

  it("that lives as long as the program keeps nothing of a hundred calls", async () => {
    const { controller, send } = await setUp(
      (response, _request, nth) => (nth % 3 === 0 ? sendJson(response, {}, 503) : sendJson(response, {})),
      {},
      () => "a-token",
    );
    for (let call = 0; call < 100; call++) await send();
    expect(listeners(controller.signal)).toBe(0);
  });

  it("keeps its own reason when that is one of our errors", async () => {
    const { controller, send } = await setUp(() => undefined);
    const reason = new AgentAuthError("page_cap", "enough", { class: "partial" });
    controller.abort(reason);
    expect(await rejection(send())).toBe(reason);
  });
});

describe("the timeout of an attempt", () => {
  it("is followed by another attempt", async () => {
    const { server, send } = await setUp(
      (response, _request, nth) => (nth < 3 ? undefined : sendJson(response, { nth })),
      {
        timeoutMs: 200,
        // More than are needed, for a machine that is busy.
        maxRetries: 19,
      },
    );
    expect((await send()).json).toEqual({ nth: server.requests.length });
    expect(server.requests.length).toBeGreaterThanOrEqual(3);
  });

  it("also ends a body that drips for ever", async () => {
    const codes: string[] = [];
    const { send } = await setUp(
      (response) => {
        response.writeHead(200, { "content-type": "application/json" });
        const drip = setInterval(() => response.write(" "), 5);
        response.on("close", () => clearInterval(drip));
      },
      { timeoutMs: 60, maxRetries: 1, onEvent: (event) => event.type === "failure" && codes.push(event.code) },
    );
    const error = await rejection(send());
    expect(error).toMatchObject({ code: "timeout", class: "unavailable", retryable: true });
    expect((error as Error).message).toMatch(/^127\.0\.0\.1:\d+: no complete response in 0\.06 s$/);
    expect(codes).toEqual(["timeout", "timeout"]);
  });

  it("also ends a fetch that ignores its signal, and cancels its late response", async () => {
    let answer: (response: Response) => void = () => undefined;
    const fetch = () => new Promise<Response>((resolve) => (answer = resolve));
    const transport = createTransport({ fetch, timeoutMs: 5, maxRetries: 0 });
    expect(await rejection(transport(new Request("https://agentauth.example")))).toMatchObject({ code: "timeout" });
    let isCancelled = false;
    answer(
      new Response(
        new ReadableStream({
          cancel() {
            isCancelled = true;
          },
        }),
      ),
    );
    await until(() => isCancelled);
  });
});

describe("the deadline of a call", () => {
  it("ends it in the middle of an attempt, and says that it was the whole", async () => {
    const { server, send } = await setUp(
      (response, _request, nth) => (nth === 1 ? sendJson(response, {}, 503) : undefined),
      { deadlineMs: 1500 },
    );
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const sending = rejection(send());
    while (server.requests.length < 2) await new Promise((resolve) => setImmediate(resolve));
    vi.advanceTimersByTime(1500);
    const error = (await sending) as AgentAuthError;
    expect(error).toMatchObject({ code: "timeout", class: "unavailable" });
    expect(error.message).toMatch(/no complete response in 1\.5 s, retries included$/);
    expect(server.requests).toHaveLength(2);
  });

  it("ends a token function that does not answer", async () => {
    const { send } = await setUp(
      () => undefined,
      { deadlineMs: 20 },
      () => new Promise<string>(() => undefined),
    );
    expect(await rejection(send())).toMatchObject({ code: "timeout" });
  });

  it("may be longer than one attempt, also when only the timeout was set", async () => {
    const waits: number[] = [];
    const long = { timeoutMs: 120_000 };
    const calls: [TransportOptions, CallLimits?][] = [
      [long],
      [{}, long],
      [long, { timeoutMs: 10_000 }],
      [{ ...long, deadlineMs: 50_000 }],
      [{ deadlineMs: 50_000 }, long],
    ];
    for (const [options, limits] of calls) {
      const clock = new FakeClock();
      const { send } = await setUp(
        (response, _request, nth) => sendJson(response, {}, nth === 1 ? 503 : 200, { "retry-after": "100" }),
        { ...options, clock },
      );
      await send(limits).catch(() => undefined);
      waits.push(clock.waits.length);
    }
    expect(waits).toEqual([1, 1, 1, 0, 0]);
  });
});
