import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import { redisError } from "../../../src/store/redis/engine.js";

describe("an error of Redis", () => {
  it.each([
    "LOADING Redis is loading the dataset in memory",
    "CLUSTERDOWN The cluster is down",
    "READONLY You can't write against a read only replica. script: 1a2b, on @user_script:20.",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "ERR Error running script (call to f_1a2b): @user_script:1: -OOM command not allowed",
    "BUSY Redis is busy running a script.",
    "NOREPLICAS Not enough good replicas to write.",
    "MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist to disk.",
    "ERR max number of clients reached",
    "connect ECONNREFUSED 127.0.0.1:6379",
    "The client is closed",
    "Connection is closed.",
    "Failed to refresh slots cache.",
  ])("is unavailable: %s", (message) => {
    const error = redisError(new Error(message), "redis");
    expect(error).toMatchObject({
      code: "store_unavailable",
      class: "unavailable",
      retryable: true,
      remedy: { action: "retry" },
    });
    expect(error.cause).toMatchObject({ message });
  });

  it.each([
    ["NOAUTH Authentication required.", /password/],
    ["WRONGPASS invalid username-password pair or user is disabled.", /does not accept/],
    ["NOPERM User app has no permissions to run the 'evalsha' command", /EVALSHA/],
    ["MOVED 866 10.0.0.1:6379", /cluster client/],
    ["CROSSSLOT Keys in request don't hash to the same slot", /cluster client/],
    ["WRONGTYPE Operation against a key holding the wrong kind of value", /another prefix/],
  ])("is a failure with advice: %s", (message, hint) => {
    const error = redisError(new Error(message), "redis.example:6379/0");
    expect(error).toMatchObject({ code: "store_failed", class: "store", retryable: false });
    expect(error.message).toContain(`at redis.example:6379/0 refused an operation of the store: "${message}"`);
    expect(error.hint).toMatch(hint);
  });

  it("has neither the arguments of a command nor the credentials of an address", () => {
    const thrown = Object.assign(new Error("cannot connect to redis://app:canary-one@redis.example \u001b[31m"), {
      code: "ECONNRESET",
      command: { name: "auth", args: ["canary-two"] },
    });
    const error = redisError(thrown, "redis");
    expect(inspect(error, { depth: 9 })).not.toContain("canary");
    expect((error.cause as Error).message).not.toContain("\u001b");
    expect(error.message).toBe("the Redis server cannot be used now: ECONNRESET");
    expect(error.cause).toMatchObject({ code: "ECONNRESET" });
  });

  it("stays what it is if it is one of ours", () => {
    const error = new AgentAuthError("usage", "wrong", { class: "usage" });
    expect(redisError(error, "redis")).toBe(error);
  });

  it("may be thrown as anything", () => {
    for (const thrown of [undefined, null, "text", 1, {}]) {
      expect(redisError(thrown, "redis")).toMatchObject({ code: "store_unavailable" });
    }
  });
});
