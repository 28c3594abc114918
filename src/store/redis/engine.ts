import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { encodeHex } from "../../http/base64url.js";
import { quote } from "../../redact.js";
import type { DriverHealth } from "../driver/driver.js";
import {
  type EngineCall,
  engineCalls,
  healthReport,
  isUnanswered,
  type Row,
  thrownTexts,
  unansweredError,
  unavailableError,
} from "../driver/engine.js";
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
      const digest = await scriptDigest(script);
      signal.throwIfAborted();
      try {
        return toRow(await send(["EVALSHA", digest, ...rest], key, signal));
      } catch (thrown) {
        if (!thrownTexts(thrown).message.startsWith("NOSCRIPT")) throw thrown;
        signal.throwIfAborted();
        return toRow(await send(["EVAL", script, ...rest], key, signal));
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
function toRow(reply: unknown): Row {
  return [reply].flat().map((part) => (part === null || part === undefined || part === false ? null : String(part)));
}

const digests = new Map<string, Promise<string>>();

/** What EVALSHA names a script by: up to 2 kB are not sent with each operation. */
function scriptDigest(script: string): Promise<string> {
  const known = digests.get(script);
  if (known) return known;
  const digest = crypto.subtle
    .digest("SHA-1", new TextEncoder().encode(script))
    .then((bytes) => encodeHex(new Uint8Array(bytes)));
  digests.set(script, digest);
  return digest;
}

/** What the engine says of itself; undefined where the user of the client must not read it. */
export interface EngineState {
  readonly info: string | undefined;
  /** The setting of the append-only file. */
  readonly appendfsync: Appendfsync | undefined;
  /** Commands that the engine refuses, each with its reply. */
  readonly refused?: readonly string[];
}

/** What a crash of the machine loses by each value of `appendfsync`; from the safest to the one that loses most. */
const LOSSES = {
  always: undefined,
  everysec: "the logins of the last second",
  no: "the logins that the system has not yet written to the disk, usually those of the last 30 seconds",
};

export type Appendfsync = keyof typeof LOSSES;

/** The value of `appendfsync` that loses most in the replies of `CONFIG GET`; undefined if one of them has none. */
export function weakestSync(replies: readonly unknown[]): Appendfsync | undefined {
  const values = replies.map(readSetting);
  const names = Object.keys(LOSSES) as Appendfsync[];
  if (!values.every((value) => names.some((name) => name === value))) return undefined;
  return names.findLast((name) => values.includes(name));
}

/** The value in a reply with one setting: a list, or a map or object where the client speaks RESP3. */
function readSetting(reply: unknown): string {
  return String((reply instanceof Map ? [...reply.values()] : Object.values(Object(reply))).at(-1));
}

/** What the state of the engine means for a store. */
export function describeHealth(
  { info, appendfsync, refused = [] }: EngineState,
  clockAheadMs: number,
  allowEviction: boolean,
): DriverHealth {
  const forbidden = forbiddenIn(refused);
  if (info === undefined) {
    const risk = "the user of the client may not run INFO, so neither eviction nor durability is known";
    return healthReport(clockAheadMs, [risk], [forbidden], {});
  }
  const fields = new Map(
    [...info.matchAll(/^([^#:\r\n]+):([^\r\n]*)/gm)].map(([, name = "", value = ""]) => [name, value]),
  );
  const policy = fields.get("maxmemory_policy") ?? "";
  const eviction =
    policy.startsWith("allkeys-") &&
    `the server evicts logins when its memory is full: maxmemory-policy is ${policy}, it must be noeviction or volatile-*`;
  const aof = fields.get("aof_enabled");
  // The server reports `min_slaves_good_slaves` only if min-replicas-to-write is set.
  const mayLoseReplicas = Number(fields.get("connected_slaves") ?? 0) > 0 && !fields.has("min_slaves_good_slaves");
  const risks = [
    allowEviction && eviction,
    aof === "0" && "the append-only file is off: a restart loses what was stored since the last snapshot",
    aof === "1" && syncRisk(appendfsync),
    fields.get("aof_last_write_status") === "err" && "the last write of the append-only file failed",
    fields.get("rdb_last_bgsave_status") === "err" && "the last snapshot failed",
    mayLoseReplicas &&
      "min-replicas-to-write is not set: a primary that lost its replicas accepts logins that a failover then loses",
  ];
  const errors = [
    forbidden,
    !allowEviction && eviction,
    fields.get("role") === "slave" && "the server is a replica: connect the client to the primary",
  ];
  return healthReport(clockAheadMs, risks, errors, listFacts(fields, appendfsync));
}

/** What else refuses a command, such as a full memory, passes. */
const NOT_PERMITTED = /NOPERM|The user executing the script|WRONGTYPE/;

/** @param refused commands, each followed by the reason, which no command is named like */
function forbiddenIn(refused: readonly string[]): string | false {
  const commands = refused.filter((_, at) => NOT_PERMITTED.test(refused[at + 1] ?? ""));
  return commands.length > 0 && `the user of the client may not run ${commands.join(", ")} on the keys of the store`;
}

type Fields = ReadonlyMap<string, string>;

function syncRisk(appendfsync: Appendfsync | undefined): string | false {
  if (appendfsync === undefined)
    return `appendfsync could not be read with CONFIG GET: with everysec, a crash of the machine loses ${LOSSES.everysec}`;
  const loss = LOSSES[appendfsync];
  return loss !== undefined && `appendfsync is ${appendfsync}: a crash of the machine loses ${loss}`;
}

function listFacts(fields: Fields, appendfsync: Appendfsync | undefined): Record<string, string | undefined> {
  return {
    server: fields.has("valkey_version") ? "valkey" : "redis",
    version: fields.get("valkey_version") ?? fields.get("redis_version"),
    maxmemory_policy: fields.get("maxmemory_policy"),
    maxmemory: fields.get("maxmemory"),
    aof: onOff(fields.get("aof_enabled")),
    appendfsync,
    replicas: fields.get("connected_slaves"),
    good_replicas: fields.get("min_slaves_good_slaves"),
    cluster: onOff(fields.get("cluster_enabled")),
  };
}

function onOff(value: string | undefined): string | undefined {
  return value === undefined ? undefined : value === "1" ? "on" : "off";
}
