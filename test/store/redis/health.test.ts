import { describe, expect, it } from "vitest";
import { type Appendfsync, healthOf, weakestSync } from "../../../src/store/redis/health.js";

const INFO = [
  "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1",
  "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction",
  "# Persistence\r\naof_enabled:1\r\naof_last_write_status:ok\r\nrdb_last_bgsave_status:ok",
  "# Replication\r\nrole:master\r\nconnected_slaves:2\r\nmin_slaves_good_slaves:2",
  "# Cluster\r\ncluster_enabled:1\r\n",
].join("\r\n\r\n");

const health = (info: string | undefined, appendfsync?: Appendfsync) => healthOf({ info, appendfsync }, 0, false);

describe("the health of Redis", () => {
  it("has the facts of Valkey", () => {
    expect(healthOf({ info: INFO, appendfsync: "always" }, 5, false)).toEqual({
      clockAheadMs: 5,
      errors: [],
      risks: [],
      facts: {
        server: "valkey",
        version: "8.0.1",
        maxmemory_policy: "noeviction",
        maxmemory: "0",
        aof: "on",
        appendfsync: "always",
        replicas: "2",
        good_replicas: "2",
        cluster: "on",
      },
    });
  });

  it.each([
    ["aof_last_write_status:ok", "aof_last_write_status:err", /last write of the append-only file failed/],
    ["rdb_last_bgsave_status:ok", "rdb_last_bgsave_status:err", /last snapshot failed/],
    ["min_slaves_good_slaves:2", "", /min-replicas-to-write/],
  ])("names a risk without %s", (from, to, risk) => {
    expect(health(INFO.replace(from, to)).risks).toContainEqual(expect.stringMatching(risk));
    expect(health(INFO).risks).not.toContainEqual(expect.stringMatching(risk));
  });

  it.each([
    ["allkeys-lru", true],
    ["allkeys-random", true],
    ["volatile-lru", false],
  ])("is an error where logins are evicted: %s", (policy, isError) => {
    const { errors } = health(INFO.replace("noeviction", policy), "always");
    expect(errors).toEqual(isError ? [expect.stringContaining(`maxmemory-policy is ${policy}`)] : []);
    const allowed = healthOf({ info: INFO.replace("noeviction", policy), appendfsync: "always" }, 0, true);
    expect(allowed).toMatchObject({ errors: [], risks: isError ? [expect.stringContaining(policy)] : [] });
  });

  it("is an error where the server is a replica", () => {
    const { errors } = health(INFO.replace("role:master", "role:slave"), "always");
    expect(errors).toEqual(["the server is a replica: connect the client to the primary"]);
  });

  it("is an error where the user of the client may not run a command, and not where it failed for another reason", () => {
    const refused = [
      "get",
      "NOPERM this user has no permissions",
      "set",
      "OOM command not allowed",
      "del",
      "WRONGTYPE x",
    ];
    expect(healthOf({ info: INFO, appendfsync: "always", refused }, 0, false).errors).toEqual([
      "the user of the client may not run get, del on the keys of the store",
    ]);
  });

  it("is unknown where INFO is refused", () => {
    const { errors, risks } = health(undefined);
    expect({ errors, risks }).toEqual({ errors: [], risks: [expect.stringMatching(/may not run INFO/)] });
    const refused = ["get", "NOPERM this user has no permissions"];
    expect(healthOf({ info: undefined, appendfsync: undefined, refused }, 0, false).errors).toEqual([
      "the user of the client may not run get on the keys of the store",
    ]);
  });

  it.each<[Appendfsync | undefined, RegExp]>([
    ["everysec", /^appendfsync is everysec: a crash of the machine loses the logins of the last second$/],
    ["no", /^appendfsync is no: a crash of the machine loses the logins that .* the last 30 seconds$/],
    [undefined, /^appendfsync could not be read with CONFIG GET: with everysec, a crash/],
  ])("names what appendfsync %s can lose", (appendfsync, risk) => {
    expect(health(INFO, appendfsync).risks).toEqual([expect.stringMatching(risk)]);
    const off = health(INFO.replace("aof_enabled:1", "aof_enabled:0"), appendfsync);
    expect(off.risks).toEqual([expect.stringMatching(/append-only file is off/)]);
  });
});

describe("the replies of CONFIG GET", () => {
  const always = ["appendfsync", "always"];

  it.each<[string, unknown]>([
    ["a list", always],
    ["a list of buffers", always.map((text) => Buffer.from(text))],
    ["an object", { appendfsync: "always" }],
    ["a map", new Map([["appendfsync", "always"]])],
  ])("are read as %s", (_form, reply) => {
    expect(weakestSync([reply])).toBe("always");
  });

  it("count by the node that loses most", () => {
    expect(weakestSync([always, ["appendfsync", "no"], ["appendfsync", "everysec"]])).toBe("no");
    expect(weakestSync([always, ["appendfsync", "everysec"]])).toBe("everysec");
  });

  it.each<[string, unknown[]]>([
    ["no node", []],
    ["a node with no value", [always, []]],
    ["an unknown value", [["appendfsync", "constructor"]]],
    ["no reply", [null]],
  ])("are unknown with %s", (_what, replies) => {
    expect(weakestSync(replies)).toBeUndefined();
  });
});
