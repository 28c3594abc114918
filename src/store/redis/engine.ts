import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import { inTime, isUnanswered } from "../driver/bounded-driver.js";
import type { DriverCallOptions } from "../driver/driver.js";
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

/** The error for an engine that did not answer in time. */
function noAnswer(location: string, timeoutMs: number): AgentAuthError {
  const message = `${serverAt(location)} did not answer within ${timeoutMs} ms`;
  return new AgentAuthError("store_unavailable", message, { class: "unavailable", remedy: { action: "retry" } });
}

/** What a client threw, as an error of the store. */
export function redisError(thrown: unknown, location: string): AgentAuthError {
  if (isAgentAuthError(thrown)) return thrown;
  const { message, code } = Object(thrown) as { message?: unknown; code?: unknown };
  const text = typeof message === "string" ? message : "";
  const cause = plainError(thrown, text);
  const reply = REPLY.exec(text)?.[1];
  const passing = PASSING.exec(text)?.[1];
  if (passing === undefined && reply !== undefined) {
    const refusal = `${serverAt(location)} refused an operation of the store: ${quote(text)}`;
    return new AgentAuthError("store_failed", refusal, {
      class: "store",
      hint: ADVICE[FORBIDDEN.test(text) ? "NOPERM" : reply],
      cause,
    });
  }
  const reason = passing ?? (typeof code === "string" ? code : undefined);
  const down = `${serverAt(location)} cannot be used now: ${reason ?? quote(text)}`;
  return new AgentAuthError("store_unavailable", down, { class: "unavailable", remedy: { action: "retry" }, cause });
}

/** The error without what a client hangs on it, such as the arguments of the command: AUTH has the password there. */
function plainError(thrown: unknown, text: string): Error {
  const plain = new Error(quote(text).slice(1, -1));
  const { name, code } = Object(thrown) as { name?: unknown; code?: unknown };
  if (typeof name === "string") plain.name = name;
  return typeof code === "string" ? Object.assign(plain, { code }) : plain;
}

function serverAt(location: string): string {
  return location === "redis" ? "the Redis server" : `the Redis server at ${location}`;
}

/** The commands of one call of the driver. None is sent after the call has ended. */
export interface Session {
  /** Runs a script; its first key decides which node of a cluster runs it. */
  run(script: string, keys: readonly string[], args?: readonly (string | number)[]): Promise<unknown>;
  /** Sends a command that some services forbid to the nodes that {@link Link} names; undefined if one of them fails. */
  tryKeyless(args: readonly (string | number)[], key: string): Promise<unknown[] | undefined>;
}

/** Carries out a call of the driver. */
export type ScriptCall = <T>(
  options: DriverCallOptions | undefined,
  work: (session: Session) => Promise<T>,
) => Promise<T>;

/** How to carry out calls over a connection, each with one time limit for all of its commands. */
export function scriptCalls({ location, send, sendKeyless, renew }: Link, timeoutMs: number): ScriptCall {
  const late = () => noAnswer(location, timeoutMs);
  const sessionUntil = (signal: AbortSignal): Session => ({
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
  });
  return async ({ signal } = {}, work) => {
    try {
      return await inTime({ signal, timeoutMs, late }, (limit) => work(sessionUntil(limit)));
    } catch (thrown) {
      const failure = redisError(thrown, location);
      if (!signal?.aborted && isUnanswered(failure)) renew?.();
      throw failure;
    }
  };
}

/**
 * The same for leases, which may have expired before this process read the answer: a stopped process reads it late. A call
 * that took more time than its limit fails with `store_unavailable`.
 */
export function leaseScriptCalls(link: Link, timeoutMs: number): ScriptCall {
  const call = scriptCalls(link, timeoutMs);
  return async (options, work) => {
    const startedAt = performance.now();
    const answer = await call(options, work);
    if (performance.now() - startedAt > timeoutMs) throw noAnswer(link.location, timeoutMs);
    return answer;
  };
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
