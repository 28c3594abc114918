import { abortedError } from "../../errors.js";
import { follow, untilAborted } from "../../http/deadline.js";
import type { DriverCallOptions } from "../driver/driver.js";
import { isUnanswered } from "../driver/store-failure.js";
import type { Link } from "./connection.js";
import { noAnswer, redisError } from "./redis-error.js";

/** The commands of one call of the driver. None is sent after the call has ended. */
export interface Session {
  /** Runs a script; its first key decides which node of a cluster runs it. */
  run(script: string, keys: readonly string[], args?: readonly (string | number)[]): Promise<unknown>;
  /** Sends a command that some services forbid to the nodes that {@link Link} names; undefined if one of them fails. */
  tryKeyless(args: readonly (string | number)[], key: string): Promise<unknown[] | undefined>;
}

/** A constant, because an error would be made for each call. */
const ENDED = "the call has ended";

/** Runs scripts in the engine, with a time limit for each call of the driver. */
export class Engine {
  readonly #link: Link;
  readonly #timeoutMs: number;

  constructor(link: Link, timeoutMs: number) {
    this.#link = link;
    this.#timeoutMs = timeoutMs;
  }

  /** @throws AgentAuthError `store_unavailable` without an answer in time, `store_failed` for a refusal, `aborted` */
  async call<T>(options: DriverCallOptions | undefined, work: (session: Session) => Promise<T>): Promise<T> {
    if (options?.signal?.aborted) throw abortedError(options.signal);
    const late = () => noAnswer(this.#link.location, this.#timeoutMs);
    const limit = follow(options?.signal, this.#timeoutMs, late);
    try {
      return await untilAborted(work(this.#session(limit.signal)), limit.signal);
    } catch (thrown) {
      const failure = limit.signal.aborted ? abortedError(limit.signal) : redisError(thrown, this.#link.location);
      // A command that waits for its turn must not be sent later.
      limit.abort(ENDED);
      const isAborted = options?.signal?.aborted === true;
      if (!isAborted && isUnanswered(failure)) this.#link.renew?.();
      throw failure;
    } finally {
      limit.release();
    }
  }

  /**
   * The same for a lease, which may have expired before this process read the answer: a stopped process reads it late.
   *
   * @throws AgentAuthError `store_unavailable` if more time has passed since the call than its limit
   */
  async callForLease<T>(options: DriverCallOptions | undefined, work: (session: Session) => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const answer = await this.call(options, work);
    if (performance.now() - startedAt > this.#timeoutMs) throw noAnswer(this.#link.location, this.#timeoutMs);
    return answer;
  }

  #session(signal: AbortSignal): Session {
    const { send, sendKeyless } = this.#link;
    return {
      async run(script, keys, args = []) {
        const rest = [String(keys.length), ...keys, ...args.map(String)];
        const [key = ""] = keys;
        const digest = await digestOf(script);
        signal.throwIfAborted();
        try {
          return await send(["EVALSHA", digest, ...rest], key, signal);
        } catch (thrown) {
          if (!isUnknownScript(thrown)) throw thrown;
          signal.throwIfAborted();
          return await send(["EVAL", script, ...rest], key, signal);
        }
      },
      async tryKeyless(args, key) {
        try {
          signal.throwIfAborted();
          return await sendKeyless(args.map(String), key, signal);
        } catch {
          return undefined;
        }
      },
    };
  }
}

const digests = new Map<string, Promise<string>>();

/** The name of a script in the engine's cache. */
function digestOf(script: string): Promise<string> {
  const known = digests.get(script);
  if (known) return known;
  const digest = crypto.subtle
    .digest("SHA-1", new TextEncoder().encode(script))
    .then((bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join(""));
  digests.set(script, digest);
  return digest;
}

function isUnknownScript(thrown: unknown): boolean {
  return String((Object(thrown) as { message?: unknown }).message).startsWith("NOSCRIPT");
}
