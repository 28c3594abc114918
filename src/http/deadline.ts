import { abortedError } from "../errors.js";

/** Time as the transport sees it. Tests give their own. */
export interface Clock {
  /** Milliseconds that never run backwards. */
  now(): number;
  /** Milliseconds since the Unix epoch. */
  epoch(): number;
  /** Resolves after at least `ms` milliseconds; rejects at once when the signal fires. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => performance.now(),
  epoch: () => Date.now(),
  async sleep(ms, signal) {
    const until = performance.now() + ms;
    // Timers may fire a fraction early; a peer that asked for two seconds gets two seconds.
    for (let left = ms; left > 0; left = until - performance.now()) await timer(Math.ceil(left), signal);
  },
};

function timer(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(abortedError(signal));
      return;
    }
    const onAbort = () => {
      clearTimeout(handle);
      reject(abortedError(signal));
    };
    // setTimeout holds 31 bits; a longer wait goes round again.
    const handle = setTimeout(
      () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      },
      Math.min(ms, 0x7fffffff),
    );
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

/** A controller that follows a signal until it is released. */
export interface FollowingController {
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
  /** Stops following and clears the timer. */
  release(): void;
}

/** A timer that comes this much too late tells of a process that stood still: stopped, asleep, or busy. */
const STOOD_STILL_MS = 1000;
const CATCH_UP_MS = 5000;

/**
 * A controller that aborts with `parent`, and with `reason()` after `ms` milliseconds.
 *
 * A process that stood still finds its timers over before it looks at its sockets. What arrived meanwhile may be the only
 * copy of a token, so that it gets five seconds to be read before the deadline counts.
 *
 * Not `AbortSignal.any`: a signal that lives as long as the program would keep every one of its followers.
 */
export function follow(parent: AbortSignal | undefined, ms?: number, reason?: () => unknown): FollowingController {
  const controller = new AbortController();
  const onAbort = () => controller.abort(parent?.reason);
  if (parent?.aborted) onAbort();
  else parent?.addEventListener("abort", onAbort, { once: true });
  const timer = ms === undefined || !Number.isFinite(ms) ? undefined : deadline(ms, () => controller.abort(reason?.()));
  return {
    signal: controller.signal,
    abort: (why) => controller.abort(why),
    release() {
      parent?.removeEventListener("abort", onAbort);
      timer?.clear();
    },
  };
}

function deadline(ms: number, end: () => void): { clear(): void } {
  const time = Math.min(Math.max(0, ms), 0x7fffffff);
  const due = performance.now() + time;
  const over = () => {
    if (performance.now() - due < STOOD_STILL_MS) end();
    else handle = setTimeout(end, CATCH_UP_MS);
  };
  let handle = setTimeout(over, time);
  return { clear: () => clearTimeout(handle) };
}

/** The outcome of `work`, or the signal's reason if that comes first: for code that may not heed its signal. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(abortedError(signal));
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
