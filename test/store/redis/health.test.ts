import { describe, expect, it } from "vitest";
import { healthOf } from "../../../src/store/redis/health.js";

const INFO = [
  "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1",
  "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction",
  "# Persistence\r\naof_enabled:1\r\naof_last_write_status:ok\r\nrdb_last_bgsave_status:ok",
  "# Replication\r\nrole:master\r\nconnected_slaves:2\r\nmin_slaves_good_slaves:2",
  "# Cluster\r\ncluster_enabled:1\r\n",
].join("\r\n\r\n");

describe("the health of Redis", () => {
  it("has the facts of Valkey", () => {
    expect(healthOf(INFO, 5, false)).toEqual({
      clockAheadMs: 5,
      errors: [],
      risks: [expect.stringMatching(/everysec/)],
      facts: {
        server: "valkey",
        version: "8.0.1",
        maxmemory_policy: "noeviction",
        maxmemory: "0",
        aof: "on",
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
    expect(healthOf(INFO.replace(from, to), 0, false).risks).toContainEqual(expect.stringMatching(risk));
    expect(healthOf(INFO, 0, false).risks).not.toContainEqual(expect.stringMatching(risk));
  });

  it("is unknown where INFO is refused", () => {
    const { errors, risks } = healthOf(undefined, 0, false);
    expect({ errors, risks }).toEqual({ errors: [], risks: [expect.stringMatching(/may not run INFO/)] });
  });
});
