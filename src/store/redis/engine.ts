import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import { isUnanswered, unansweredError, unavailableError } from "../driver/bounded-driver.js";
import { type EngineCall, engineCalls, type Row, thrownTexts } from "../driver/engine.js";
import type { Link } from "./connection.js";

/** Replies that another moment or another node would not have: the same call may succeed later. */
const PASSING =
  /(?:^|: -?)(LOADING|CLUSTERDOWN|READONLY|MASTERDOWN|OOM|BUSY|TRYAGAIN|NOREPLICAS|MISCONF|UNBLOCKED|ERR max number of clients)\b/;
/** The code that a reply begins with; the errors of a client are sentences. */
const REPLY = /^([A-Z]{2,}[A-Z\d]*) /;

const ADVICE: Readonly<Record<string, string>> = {
  NOAUTH: "the engine wants a password: set username and password of the client",
  WRONGPASS: "the engine does not accept the user name or the password of the client",
  NOPERM: "let the user of the client run EVALSHA, EVAL, WAIT and what the scripts call, on the keys of the prefix",
  MOVED: "the engine is a cluster: use the cluster client of the package",
  CROSSSLOT: "the engine is a cluster: use the cluster client of the package",
  WRONGTYPE: "another program uses the same keys: choose another prefix",
};

/** What a script is refused with begins with the code ERR. */
const FORBIDDEN = /The user executing the script/;

/** What a client threw, as an error of the store. */
export function redisError(thrown: unknown, location: string): AgentAuthError {
  if (isAgentAuthError(thrown)) return thrown;
  const { name, message, code } = thrownTexts(thrown);
  // Without what a client hangs on an error, such as the arguments of the command: AUTH has the password there.
  const cause = new Error(quote(message).slice(1, -1));
  Object.assign(cause, name && { name }, code && { code });
  const reply = REPLY.exec(message)?.[1];
  const passing = PASSING.exec(message)?.[1];
  if (passing === undefined && reply !== undefined) {
    const refusal = `${serverAt(location)} refused an operation of the store: ${quote(message)}`;
    return new AgentAuthError("store_failed", refusal, {
      class: "store",
      hint: ADVICE[FORBIDDEN.test(message) ? "NOPERM" : reply],
      cause,
    });
  }
  return unavailableError(`${serverAt(location)} cannot be used now: ${passing ?? (code || quote(message))}`, cause);
}

function serverAt(location: string): string {
  return location === "redis" ? "the Redis server" : `the Redis server at ${location}`;
}

/** The commands of one call of the driver. None is sent after the call has ended. */
export interface Session {
  /** Runs a script, and returns its list, or its only value; its first key decides which node of a cluster runs it. */
  run(script: string, keys: readonly string[], args?: readonly (string | number)[]): Promise<Row>;
  /** Sends a command that some services forbid to the nodes that {@link Link} names; undefined if one of them fails. */
  tryKeyless(args: readonly (string | number)[], key: string): Promise<unknown[] | undefined>;
}

/** How to carry out calls over a connection. */
export function scriptCalls({ location, send, sendKeyless, renew }: Link, timeoutMs: number): EngineCall<Session> {
  const session = (signal: AbortSignal): Session => ({
    async run(script, keys, args = []) {
      const rest = [String(keys.length), ...keys, ...args.map(String)];
      const [key = ""] = keys;
      const digest = await digestOf(script);
      signal.throwIfAborted();
      try {
        return rowOf(await send(["EVALSHA", digest, ...rest], key, signal));
      } catch (thrown) {
        if (!thrownTexts(thrown).message.startsWith("NOSCRIPT")) throw thrown;
        signal.throwIfAborted();
        return rowOf(await send(["EVAL", script, ...rest], key, signal));
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
  });
  const failure = (thrown: unknown, signal: AbortSignal | undefined) => {
    const error = redisError(thrown, location);
    if (!signal?.aborted && isUnanswered(error)) renew?.();
    return error;
  };
  return engineCalls({ name: serverAt(location), timeoutMs, session, failure });
}

/**
 * The same for leases, which may have expired before this process read the answer: a stopped process reads it late. A call
 * that took more time than its limit fails with `store_unavailable`.
 */
export function leaseScriptCalls(link: Link, timeoutMs: number): EngineCall<Session> {
  const call = scriptCalls(link, timeoutMs);
  return async (options, work) => {
    const startedAt = performance.now();
    const answer = await call(options, work);
    if (performance.now() - startedAt > timeoutMs) throw unansweredError(serverAt(link.location), timeoutMs);
    return answer;
  };
}

/** A client may be set to return numbers as texts, and texts as buffers. */
function rowOf(reply: unknown): Row {
  return [reply].flat().map((part) => (part === null || part === undefined || part === false ? null : String(part)));
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
