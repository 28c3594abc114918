import type { AgentAuthError } from "../../errors.js";
import { inTime, unansweredError } from "./bounded-driver.js";
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
 *
 * @param textOf the owner or the note that was stored as this text
 */
export function claimAnswer(
  [held, attempt, leftMs, ...trace]: Row,
  textOf: (stored: string) => string,
): LeaseHeld | LeaseBusy {
  const newest = traceOf(trace, textOf);
  if (held === "1" || newest === undefined) return { held: true, attempt: Number(attempt), previous: newest };
  return { held: false, by: newest, leftMs: Math.max(0, Number(leftMs)) };
}

function traceOf(
  [attempt, owner, at, now, releasedAt, note]: Row,
  textOf: (stored: string) => string,
): LeaseTrace | undefined {
  if (attempt == null) return undefined;
  const released = releasedAt ? Number(releasedAt) : undefined;
  const texts = { owner: textOf(owner ?? ""), note: textOf(note ?? "") };
  return { attempt: Number(attempt), ...texts, at: Number(at), now: Number(now), releasedAt: released };
}

/** What a client threw, as far as it is text: a client may throw anything. */
export function thrownTexts(thrown: unknown): { name: string; message: string; code: string } {
  const members = Object(thrown) as Readonly<Record<string, unknown>>;
  const textOf = (name: string) => (typeof members[name] === "string" ? members[name] : "");
  return { name: textOf("name"), message: textOf("message"), code: textOf("code") };
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
