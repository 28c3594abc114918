import type { DriverHealth } from "../driver/driver.js";
import { healthReport } from "../driver/engine.js";

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
  const values = replies.map(settingOf);
  const names = Object.keys(LOSSES) as Appendfsync[];
  if (!values.every((value) => names.some((name) => name === value))) return undefined;
  return names.findLast((name) => values.includes(name));
}

/** The value in a reply with one setting: a list, or a map or object where the client speaks RESP3. */
function settingOf(reply: unknown): string {
  return String((reply instanceof Map ? [...reply.values()] : Object.values(Object(reply))).at(-1));
}

/** What the state of the engine means for a store. */
export function healthOf(
  { info, appendfsync, refused = [] }: EngineState,
  clockAheadMs: number,
  allowEviction: boolean,
): DriverHealth {
  const forbidden = forbiddenIn(refused);
  if (info === undefined) {
    const risk = "the user of the client may not run INFO, so neither eviction nor durability is known";
    return healthReport(clockAheadMs, [risk], [forbidden], {});
  }
  const fields = fieldsOf(info);
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
  return healthReport(clockAheadMs, risks, errors, factsOf(fields, appendfsync));
}

/** What else refuses a command, such as a full memory, passes. */
const FORBIDDEN = /NOPERM|The user executing the script|WRONGTYPE/;

/** @param refused commands, each followed by the reason, which no command is named like */
function forbiddenIn(refused: readonly string[]): string | false {
  const commands = refused.filter((_, at) => FORBIDDEN.test(refused[at + 1] ?? ""));
  return commands.length > 0 && `the user of the client may not run ${commands.join(", ")} on the keys of the store`;
}

type Fields = ReadonlyMap<string, string>;

function fieldsOf(info: string): Fields {
  return new Map([...info.matchAll(/^([^#:\r\n]+):([^\r\n]*)/gm)].map(([, name = "", value = ""]) => [name, value]));
}

function syncRisk(appendfsync: Appendfsync | undefined): string | false {
  if (appendfsync === undefined)
    return `appendfsync could not be read with CONFIG GET: with everysec, a crash of the machine loses ${LOSSES.everysec}`;
  const loss = LOSSES[appendfsync];
  return loss !== undefined && `appendfsync is ${appendfsync}: a crash of the machine loses ${loss}`;
}

function factsOf(fields: Fields, appendfsync: Appendfsync | undefined): Record<string, string | undefined> {
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
