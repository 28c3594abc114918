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

/** What code that can be aborted needs of an `AbortSignal`. */
export interface AbortSource {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", onAbort: () => void, options?: { once: true }): void;
  removeEventListener(type: "abort", onAbort: () => void): void;
}

/** A controller that follows another source until it is released. */
export class FollowingController implements AbortSource {
  readonly #parent: AbortSource | undefined;
  readonly #timer: { clear(): void } | undefined;
  readonly #listeners = new Set<() => void>();
  readonly #onAbort = () => this.abort(this.#parent?.reason);
  #controller: AbortController | undefined;

  constructor(parent: AbortSource | undefined, ms: number | undefined, reason: (() => unknown) | undefined) {
    this.#parent = parent;
    if (parent?.aborted) this.#onAbort();
    else parent?.addEventListener("abort", this.#onAbort, { once: true });
    if (ms !== undefined && Number.isFinite(ms)) this.#timer = startDeadline(ms, () => this.abort(reason?.()));
  }

  /** Made when it is first needed, because it costs more than all else here. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    return this.#controller.signal;
  }

  get aborted(): boolean {
    return this.#controller?.signal.aborted ?? false;
  }

  get reason(): unknown {
    return this.#controller?.signal.reason;
  }

  addEventListener(_type: "abort", onAbort: () => void): void {
    this.#listeners.add(onAbort);
  }

  removeEventListener(_type: "abort", onAbort: () => void): void {
    this.#listeners.delete(onAbort);
  }

  abort(reason: unknown): void {
    if (this.aborted) return;
    this.#controller ??= new AbortController();
    this.#controller.abort(reason);
    for (const onAbort of this.#listeners) onAbort();
  }

  /** Stops following and clears the timer. */
  release(): void {
    this.#parent?.removeEventListener("abort", this.#onAbort);
    this.#timer?.clear();
  }
}

/**
 * A controller that aborts with `parent`, and with `reason()` after `ms` milliseconds.
 *
 * When a suspended process resumes, its timers fire before its sockets are read. A response that has arrived may be the
 * only copy of a token, so it gets five seconds to be read before the deadline counts.
 *
 * Not `AbortSignal.any`: a signal that lives as long as the program would keep every follower in memory.
 */
export function followSignal(
  parent: AbortSource | undefined,
  ms?: number,
  reason?: () => unknown,
): FollowingController {
  return new FollowingController(parent, ms, reason);
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
export function untilAborted<T>(work: Promise<T>, signal: AbortSource): Promise<T> {
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
