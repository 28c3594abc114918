import { AgentAuthError, abortedError, isAgentAuthError } from "../../errors.js";
import { type Clock, followSignal, systemClock, untilAborted } from "../../http/deadline.js";
import type { Grant } from "../../oauth/model/grant.js";
import type {
  DriverCallOptions,
  DriverHealth,
  LeaseBusy,
  LeaseHeld,
  LeaseTrace,
  RecordKey,
  StoreDriver,
} from "./driver.js";

/** Carries out a call of one or more commands with one time limit for all of them. */
export type EngineCall<S> = <T>(options: DriverCallOptions | undefined, work: (session: S) => Promise<T>) => Promise<T>;

/** How to carry out the calls of a driver. */
export function engineCalls<S>(engine: {
  /** What does not respond, for messages. */
  readonly name: string;
  readonly timeoutMs: number;
  /** What a call works with until the signal fires, at its end: a client may ignore that, but nothing more is sent. */
  session(signal: AbortSignal): S;
  /** The error of the store for what the client threw. */
  failure(thrown: unknown, signal: AbortSignal | undefined): AgentAuthError;
}): EngineCall<S> {
  const { timeoutMs } = engine;
  const late = () => unansweredError(engine.name, timeoutMs);
  return async ({ signal } = {}, work) => {
    try {
      return await inTime({ signal, timeoutMs, late }, (limit) => work(engine.session(limit)));
    } catch (thrown) {
      throw engine.failure(thrown, signal);
    }
  };
}

/** What an engine returned, in the order of the statement or the script: texts, whatever a client makes of numbers. */
export type Row = readonly (string | null)[];

/**
 * The response to a claim: `1` if the caller has the lease, the attempt, the milliseconds left, and the newest claim before
 * or the one that holds the lease, if there is one.
 */
export function readClaimResponse([held, attempt, leftMs, ...trace]: Row): LeaseHeld | LeaseBusy {
  const newest = readTrace(trace);
  if (held === "1" || newest === undefined) return { held: true, attempt: Number(attempt), previous: newest };
  return { held: false, by: newest, leftMs: Math.max(0, Number(leftMs)) };
}

function readTrace([attempt, owner, at, now, releasedAt, note]: Row): LeaseTrace | undefined {
  if (attempt == null) return undefined;
  return {
    attempt: Number(attempt),
    owner: owner ?? "",
    at: Number(at),
    now: Number(now),
    releasedAt: releasedAt ? Number(releasedAt) : undefined,
    note: note ?? "",
  };
}

/** What a client threw, as far as it is text: a client may throw anything. */
export function thrownTexts(thrown: unknown): { name: string; message: string; code: string } {
  const members = Object(thrown) as Readonly<Record<string, unknown>>;
  const readText = (name: string) => (typeof members[name] === "string" ? members[name] : "");
  return { name: readText("name"), message: readText("message"), code: readText("code") };
}

/** Reports the messages of a channel until the signal fires; `onGap`: it listens again, and may have missed some. */
export type Subscribe = (
  channel: string,
  onMessage: (message: string) => void,
  onGap: () => void,
  signal: AbortSignal,
) => Promise<void>;

/** `watch` of a driver whose engine publishes the key of each change in a channel. */
export function watchBy(
  subscribe: Subscribe,
  channel: string,
  { keyOf, failure }: { keyOf(message: string): RecordKey | undefined; failure(thrown: unknown): AgentAuthError },
): NonNullable<StoreDriver["watch"]> {
  return async (onChange, onGap, signal) => {
    if (signal.aborted) return;
    const onMessage = (message: string) => {
      const key = keyOf(message);
      if (key && !signal.aborted) onChange(key);
    };
    await subscribe(channel, onMessage, onGap, signal).catch((thrown: unknown) => {
      throw failure(thrown);
    });
  };
}

export function untilFired(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/** Resolves after some milliseconds, without keeping the process alive. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    // In Node a timer is an object, which must not keep the process alive.
    const timer: unknown = setTimeout(resolve, ms);
    (timer as { unref?(): void }).unref?.();
  });
}

/** Fails after some milliseconds, without keeping the process alive. */
export async function lateIn(ms: number, late: () => Error): Promise<never> {
  await pause(ms);
  throw late();
}

/** Sentences; another value for each that does not hold. */
type Findings = readonly (string | false | undefined)[];
type Facts = Readonly<Record<string, string | null | undefined>>;

/** The report of an engine: the sentences that hold, and the facts that are known. */
export function healthReport(clockAheadMs: number, risks: Findings, errors: Findings, facts: Facts): DriverHealth {
  const holding = (findings: Findings) => findings.filter((finding) => typeof finding === "string");
  const known = Object.entries(facts).filter((fact): fact is [string, string] => fact[1] != null);
  return { clockAheadMs, risks: holding(risks), errors: holding(errors), facts: Object.fromEntries(known) };
}

export interface CallLimit {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs: number;
  /** The error after that time. */
  late(): AgentAuthError;
}

/** A constant, because an error would be made for each call. */
const ENDED = "the call has ended";

/**
 * Ends the wait for work by a signal or after a time. What the work sends may happen after that; its own signal fires at
 * the end in any case, so that nothing is sent later.
 */
export async function inTime<T>(
  { signal, timeoutMs, late }: CallLimit,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = followSignal(signal, timeoutMs, late);
  try {
    if (signal?.aborted) throw abortedError(signal);
    return await untilAborted(work(limit.signal), limit.signal);
  } catch (error) {
    const failure = limit.signal.aborted ? abortedError(limit.signal) : error;
    limit.abort(ENDED);
    throw failure;
  } finally {
    limit.release();
  }
}

/** The error for an engine that cannot be used now: the same call may succeed later. */
export function unavailableError(message: string, cause?: unknown): AgentAuthError {
  return new AgentAuthError("store_unavailable", message, { class: "unavailable", remedy: { action: "retry" }, cause });
}

/** The error for an engine that did not respond in time. */
export function unansweredError(engine: string, ms: number): AgentAuthError {
  return unavailableError(`${engine} did not answer in ${ms / 1000} s`);
}

/** Whether the response of an engine is missing: what was requested may have happened. */
export function isUnanswered(error: unknown): boolean {
  return isAgentAuthError(error) && error.class === "unavailable";
}

/** A moment by the clocks of this process. */
export interface ClockReading {
  readonly now: number;
  readonly epoch: number;
}

/** The clocks and timers of a store. Tests pass their own. */
export interface StoreClock extends Clock {
  /** Calls `beat` every `ms` milliseconds until the result is called. */
  every(ms: number, beat: () => void): () => void;
}

/** Those of this machine. */
export const storeClock: StoreClock = {
  ...systemClock,
  every(ms, beat) {
    const timer: unknown = setInterval(beat, ms);
    // In Node a heartbeat must not keep a process alive; a browser has a number here.
    (timer as { unref?: () => void }).unref?.();
    return () => clearInterval(timer as ReturnType<typeof setInterval>);
  },
};

/** This moment. */
export function readClock(clock: Clock): ClockReading {
  return { now: clock.now(), epoch: clock.epoch() };
}

/**
 * Milliseconds since a moment. By the epoch too: the monotonic clock of a machine that sleeps stops, while the engine
 * counts on.
 */
export function since(from: ClockReading, clock: Clock): number {
  return Math.max(clock.now() - from.now, clock.epoch() - from.epoch);
}

/** Clocks that differ by less agree: the measurement is no better than the time that a response takes. */
const SLACK_MS = 10_000;
const MEASURED_FOR_MS = 10 * 60_000;

/** By how much the clock of this machine differs from the engine's, which is the one that all machines share. */
export class EngineClock {
  readonly #driver: StoreDriver;
  readonly #clock: StoreClock;
  #last: (ClockReading & { readonly aheadMs: Promise<number> }) | undefined;

  constructor(driver: StoreDriver, clock: StoreClock) {
    this.#driver = driver;
    this.#clock = clock;
  }

  /** Milliseconds by which this machine is ahead; 0 if the clocks agree, or the engine does not show its own. */
  aheadMs(): Promise<number> {
    const [now, epoch] = [this.#clock.now(), this.#clock.epoch()];
    const last = this.#last;
    if (last !== undefined) {
      const passed = now - last.now;
      // A clock that was set, or a machine that slept.
      const isSame = Math.abs(epoch - last.epoch - passed) < SLACK_MS;
      if (isSame && passed < MEASURED_FOR_MS) return last.aheadMs;
    }
    const aheadMs = this.#measure();
    this.#last = { now, epoch, aheadMs };
    return aheadMs;
  }

  async #measure(): Promise<number> {
    const health = await this.#driver.health?.().catch(() => undefined);
    const aheadMs = health?.clockAheadMs ?? 0;
    return Math.abs(aheadMs) < SLACK_MS ? 0 : aheadMs;
  }
}

/** A grant whose tokens have their times on a clock that is ahead of the other by this much. */
export function onClock(grant: Grant, aheadMs: number): Grant {
  if (aheadMs === 0) return grant;
  const usedAt = grant.usedAt === undefined ? undefined : grant.usedAt + aheadMs;
  return { ...grant, usedAt, tokens: { ...grant.tokens, ...timesOnClock(grant.tokens, aheadMs) } };
}

export function timesOnClock({ obtainedAt, expiresAt }: TokenTimes, aheadMs: number): TokenTimes {
  return { obtainedAt: obtainedAt + aheadMs, expiresAt: expiresAt === undefined ? undefined : expiresAt + aheadMs };
}

type TokenTimes = Pick<Grant["tokens"], "obtainedAt" | "expiresAt">;
