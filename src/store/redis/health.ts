import type { DriverHealth } from "../driver/driver.js";

/** What `INFO` of the engine means for a store; undefined where the user of the client must not read it. */
export function healthOf(info: string | undefined, clockAheadMs: number, allowEviction: boolean): DriverHealth {
  if (info === undefined) {
    const risk = "the user of the client may not run INFO, so neither eviction nor durability is known";
    return { clockAheadMs, risks: [risk], errors: [], facts: {} };
  }
  const fields = fieldsOf(info);
  const eviction = evictionOf(fields);
  const errors = allowEviction ? [] : eviction;
  const risks = [...(allowEviction ? eviction : []), ...durabilityRisks(fields), ...failoverRisks(fields)];
  if (fields.get("role") === "slave") errors.push("the server is a replica: connect the client to the primary");
  return { clockAheadMs, risks, errors, facts: factsOf(fields) };
}

type Fields = ReadonlyMap<string, string>;

function fieldsOf(info: string): Fields {
  return new Map([...info.matchAll(/^([^#:\r\n]+):([^\r\n]*)/gm)].map(([, name = "", value = ""]) => [name, value]));
}

function evictionOf(fields: Fields): string[] {
  const policy = fields.get("maxmemory_policy") ?? "";
  if (!policy.startsWith("allkeys-")) return [];
  return [
    `the server evicts logins when its memory is full: maxmemory-policy is ${policy}, it must be noeviction or volatile-*`,
  ];
}

function durabilityRisks(fields: Fields): string[] {
  const risks: string[] = [];
  if (fields.get("aof_enabled") === "0") {
    risks.push("the append-only file is off: a restart loses what was stored since the last snapshot");
  } else if (fields.get("aof_enabled") === "1") {
    risks.push("with appendfsync everysec, which INFO does not show, a crash of the machine loses the last second");
  }
  if (fields.get("aof_last_write_status") === "err") risks.push("the last write of the append-only file failed");
  if (fields.get("rdb_last_bgsave_status") === "err") risks.push("the last snapshot failed");
  return risks;
}

/** The server reports `min_slaves_good_slaves` only if min-replicas-to-write is set. */
function failoverRisks(fields: Fields): string[] {
  if (Number(fields.get("connected_slaves") ?? 0) === 0 || fields.has("min_slaves_good_slaves")) return [];
  return [
    "min-replicas-to-write is not set: a primary that lost its replicas accepts logins that a failover then loses",
  ];
}

function factsOf(fields: Fields): Record<string, string> {
  const known: [string, string | undefined][] = [
    ["server", fields.has("valkey_version") ? "valkey" : "redis"],
    ["version", fields.get("valkey_version") ?? fields.get("redis_version")],
    ["maxmemory_policy", fields.get("maxmemory_policy")],
    ["maxmemory", fields.get("maxmemory")],
    ["aof", onOff(fields.get("aof_enabled"))],
    ["replicas", fields.get("connected_slaves")],
    ["good_replicas", fields.get("min_slaves_good_slaves")],
    ["cluster", onOff(fields.get("cluster_enabled"))],
  ];
  return Object.fromEntries(known.filter((fact): fact is [string, string] => fact[1] !== undefined));
}

function onOff(value: string | undefined): string | undefined {
  return value === undefined ? undefined : value === "1" ? "on" : "off";
}
