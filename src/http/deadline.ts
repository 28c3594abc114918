import { abortedError } from "../errors.js";

/** The clock of a transport. Tests pass their own. */
export interface Clock {
  /** Monotonic milliseconds. */
  now(): number;
  /** Milliseconds since the Unix epoch. */
  epoch(): number;
  /** Resolves after at least `ms` milliseconds; rejects at once when the signal fires. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  epoch: () => Date.now(),
  async sleep(ms, signal) {
    const until = performance.now() + ms;
    // Timers may fire a fraction early; a peer that requests two seconds gets two seconds.
    for (let left = ms; left > 0; left = until - performance.now()) await waitOnce(Math.ceil(left), signal);
  },
};

function waitOnce(ms: number, signal: AbortSignal): Promise<void> {
  let handle: ReturnType<typeof setTimeout> | undefined;
  const fired = new Promise<void>((resolve) => {
    // setTimeout takes 31 bits; the caller repeats it for a longer wait.
    handle = setTimeout(resolve, Math.min(ms, 0x7fffffff));
  });
  return untilAborted(fired, signal).finally(() => clearTimeout(handle));
}

/** A timer that fires this much too late shows that the process was suspended: stopped, asleep, or busy. */
const SUSPENDED_MS = 1000;
const CATCH_UP_MS = 5000;

/** A controller that follows another signal until it is released. */
export interface SignalFollower {
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
  /** Stops following and clears the timer. */
  release(): void;
}

/**
 * A controller that aborts with `parent`, and with `reason()` after `ms` milliseconds.
 *
 * When a suspended process resumes, its timers fire before its sockets are read. A response that has arrived may be the
 * only copy of a token, so it gets five seconds to be read before the deadline counts.
 *
 * Not `AbortSignal.any`: a signal that lives as long as the program would keep every follower in memory.
 */
export function followSignal(parent: AbortSignal | undefined, ms?: number, reason?: () => unknown): SignalFollower {
  const controller = new AbortController();
  const onAbort = () => controller.abort(parent?.reason);
  if (parent?.aborted) onAbort();
  else parent?.addEventListener("abort", onAbort, { once: true });
  const isLimited = ms !== undefined && Number.isFinite(ms);
  const timer = isLimited ? startDeadline(ms, () => controller.abort(reason?.())) : undefined;
  return {
    signal: controller.signal,
    abort: (why) => controller.abort(why),
    release() {
      parent?.removeEventListener("abort", onAbort);
      timer?.clear();
    },
  };
}

/** A timer that does not expire while the process is suspended, as {@link followSignal} says. */
export function startDeadline(ms: number, expire: () => void): { clear(): void } {
  const time = Math.min(Math.max(0, ms), 0x7fffffff);
  const due = performance.now() + time;
  const onTimer = () => {
    if (performance.now() - due < SUSPENDED_MS) expire();
    else handle = setTimeout(expire, CATCH_UP_MS);
  };
  let handle = setTimeout(onTimer, time);
  return { clear: () => clearTimeout(handle) };
}

/** The outcome of `work`, or the signal's reason if that comes first: for code that may ignore its signal. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(abortedError(signal));
    // Stops listening before the caller continues: it may abort the signal, and the error for that is costly to make.
    const settle =
      <V>(end: (value: V) => void) =>
      (value: V) => {
        signal.removeEventListener("abort", onAbort);
        end(value);
      };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    work.then(settle(resolve), settle(reject));
  });
}

export function settledWithin(work: Promise<unknown>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const done = () => {
      clearTimeout(timer);
      resolve();
    };
    work.then(done, done);
  });
}
