import { inspect } from "node:util";
import { describe, expect, it, vi } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import { chooseLink } from "../../../src/store/redis/connection.js";
import { type Appendfsync, describeHealth, redisError, weakestSync } from "../../../src/store/redis/engine.js";
import { type RedisDriverOptions, redisDriver } from "../../../src/store/redis/redis-driver.js";
import { decodeKey, encodeKey, namesWith } from "../../../src/store/redis/scripts.js";
import { pendingError } from "../../helpers/captured.js";

const KEY = { kind: "grant", partition: "p", id: "one" } as const;
const CLAIM = { owner: "a", ttlMs: 1000, note: "" };

describe("the Redis driver", () => {
  it.each<[string, RedisDriverOptions]>([
    ["prefix", { prefix: "a{b}" }],
    ["prefix", { prefix: "" }],
    ["timeoutMs", { timeoutMs: 0 }],
    ["timeoutMs", { timeoutMs: Number.POSITIVE_INFINITY }],
    ["wait.replicas", { wait: { replicas: 0, timeoutMs: 100 } }],
    ["wait.timeoutMs", { wait: { replicas: 1, timeoutMs: -1 } }],
  ])("refuses a wrong %s", (name, options) => {
    const create = () => redisDriver({ send: async () => null }, options);
    expect(create).toThrow(expect.objectContaining({ code: "usage", message: expect.stringContaining(name) }));
  });

  it("does not believe a lease whose answer it read too late, and does believe a record", async () => {
    // As if the process had been stopped: no timer runs between the answer and its reader.
    let time = 0;
    const clock = vi.spyOn(performance, "now").mockImplementation(() => time);
    try {
      const answering = (reply: unknown) => async () => {
        time += 3000;
        return reply;
      };
      const late = { code: "store_unavailable", message: "the Redis server did not answer in 2 s" };
      const claiming = redisDriver({ send: answering(["1", "7", "1000", "0"]) });
      expect(await pendingError(claiming.claim(KEY, CLAIM))).toMatchObject(late);
      expect(await pendingError(redisDriver({ send: answering(1) }).extend(KEY, CLAIM))).toMatchObject(late);
      const reading = redisDriver({ send: answering(["7", "text"]) });
      expect(await reading.get(KEY)).toMatchObject({ version: "7", value: "text" });
    } finally {
      clock.mockRestore();
    }
  });

  it("sends nothing more after its time is over", async () => {
    const commands: string[] = [];
    let refuse = (_error: Error) => {};
    const send = ([command = ""]: readonly string[]) => {
      commands.push(command);
      return new Promise<unknown>((_resolve, reject) => {
        refuse = reject;
      });
    };
    const driver = redisDriver({ send }, { timeoutMs: 20 });
    expect(await pendingError(driver.put(KEY, "text", undefined))).toMatchObject({ code: "store_unavailable" });
    refuse(new Error("NOSCRIPT No matching script. Please use EVAL."));
    await new Promise((resolve) => setImmediate(resolve));
    expect(commands).toEqual(["EVALSHA"]);
  });

  it("fires the signal of a command when the answer is not awaited any more", async () => {
    const signals: AbortSignal[] = [];
    const send = (_args: readonly string[], _key: string, signal: AbortSignal) => {
      signals.push(signal);
      return new Promise<unknown>(() => {});
    };
    const abort = new AbortController();
    const read = redisDriver({ send }).get(KEY, { signal: abort.signal });
    await vi.waitFor(() => expect(signals).toHaveLength(1));
    abort.abort();
    expect(await pendingError(read)).toMatchObject({ code: "aborted" });
    expect(signals[0]?.aborted).toBe(true);
  });

  it("reports that a grant is stored although the wait for replicas failed", async () => {
    const commands: string[] = [];
    const send = async ([command = ""]: readonly string[]) => {
      commands.push(command);
      if (command === "WAIT") throw new Error("ERR unknown command 'WAIT'");
      return ["7", "1"];
    };
    expect(await redisDriver({ send }).put(KEY, "text", undefined)).toBe("7");
    expect(commands).toEqual(["EVALSHA", "EVALSHA", "WAIT"]);
  });

  it.each<[string, () => unknown, RegExp[]]>([
    ["reports no risk of a server that writes its file before each answer", () => ["appendfsync", "always"], []],
    ["names the risk of a server that does not", () => ({ appendfsync: "everysec" }), [/^appendfsync is everysec/]],
    [
      "says that a server does not allow CONFIG",
      () => {
        throw new Error("NOPERM this user has no permissions to run the 'config|get' command");
      },
      [/^appendfsync could not be read/],
    ],
  ])("%s", async (_what, config, risks) => {
    const reply = ([command]: readonly string[]) => (command === "CONFIG" ? config() : ["0", "aof_enabled:1"]);
    const call = async (command: string, args: string[]) => reply([command, ...args]);
    const sendCommand = async (args: string[]) => reply(args);
    const cluster = { call, nodes: () => [{ call }] };
    const routed = {
      sendCommand: async (_key: string, _read: boolean, args: string[]) => reply(args),
      nodeClient: call,
    };
    for (const client of [{ call }, { sendCommand }, cluster, routed]) {
      const health = await redisDriver({ client }).health?.();
      expect(health?.risks).toEqual(risks.map((risk) => expect.stringMatching(risk)));
    }
  });

  it("has no watch where the connection is a function or a cluster", () => {
    const call = async () => null;
    expect(redisDriver({ send: call }).watch).toBeUndefined();
    const cluster = { call, nodes: () => [] };
    expect(redisDriver({ client: cluster }).watch).toBeUndefined();
    expect(redisDriver({ client: { call } }).watch).toBeDefined();
  });
});

const sendCommand = async () => "OK";
const call = async () => "OK";

describe("the client of a Redis driver", () => {
  it.each([
    ["nothing", {}, /neither client nor send/],
    ["two connections", { client: { call }, send: call }, /both client and send/],
    ["an address", { client: "redis://user:canary-password@redis.example" }, /neither "sendCommand" nor "call"/],
    ["a send that is no function", { send: "redis-cli" }, /not a function but of type string/],
    ["a pool", { client: { sendCommand, execute: call } }, /pool of redis/],
    ["a sentinel client", { client: { sendCommand, getSentinelNode: call } }, /sentinel client of redis/],
  ])("%s is refused with what is expected", (_name, connection, problem) => {
    const error = thrownBy(() => chooseLink(connection));
    expect(error).toMatchObject({ code: "usage", class: "usage", message: expect.stringMatching(problem) });
    expect(String(error)).toMatch(/expected \{ client \} with a client of redis .*, or \{ send \}/);
    expect(String(error)).not.toContain("canary");
  });

  it.each([
    ["redis", { sendCommand, options: { socket: { host: "r.example", port: 7000 }, database: 2 } }, "r.example:7000/2"],
    ["redis by default", { sendCommand, options: {} }, "localhost:6379/0"],
    ["redis on a socket", { sendCommand, options: { socket: { path: "/run/redis.sock" } } }, "/run/redis.sock"],
    ["ioredis", { call, options: { host: "::1", port: 6380, db: 1, password: "canary" } }, "[::1]:6380/1"],
    ["ioredis with sentinels", { call, options: { host: "localhost", sentinels: [{ host: "s" }] } }, "redis"],
    ["an address as a host", { call, options: { host: "user:canary@redis.example" } }, "redis"],
    ["a cluster of redis", { sendCommand, nodeClient: call }, "redis"],
    ["a cluster of ioredis", { call, nodes: () => [] }, "redis"],
  ])("%s shows where the engine is, without credentials", (_name, client, location) => {
    expect(chooseLink({ client }).location).toBe(location);
  });

  it("gets commands in its own form, with the key that routes them", async () => {
    const calls: unknown[][] = [];
    const record = async (...args: unknown[]) => void calls.push(args);
    const { signal } = new AbortController();
    const clients = [{ sendCommand: record }, { sendCommand: record, nodeClient: call }, { call: record }];
    for (const client of clients) await chooseLink({ client }).send(["GET", "key"], "key", signal);
    await chooseLink({ send: record }).send(["GET", "key"], "key", signal);
    const options = { abortSignal: signal };
    const command = ["GET", "key"];
    expect(calls).toEqual([
      [command, options],
      ["key", false, command, options],
      ["GET", ["key"]],
      [command, "key", signal],
    ]);
  });

  it("sends a command without a key to every primary of a cluster of ioredis", async () => {
    const calls: unknown[][] = [];
    const node = { call: async (...args: unknown[]) => calls.push(args) };
    const link = chooseLink({ client: { call, nodes: (role: string) => (role === "master" ? [node, node] : []) } });
    expect(await link.sendKeyless(["WAIT", "1", "100"], "key", new AbortController().signal)).toEqual([1, 2]);
    expect(calls).toEqual([
      ["WAIT", ["1", "100"]],
      ["WAIT", ["1", "100"]],
    ]);
  });
});

function thrownBy(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

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

const INFO = [
  "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1",
  "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction",
  "# Persistence\r\naof_enabled:1\r\naof_last_write_status:ok\r\nrdb_last_bgsave_status:ok",
  "# Replication\r\nrole:master\r\nconnected_slaves:2\r\nmin_slaves_good_slaves:2",
  "# Cluster\r\ncluster_enabled:1\r\n",
].join("\r\n\r\n");

const health = (info: string | undefined, appendfsync?: Appendfsync) => describeHealth({ info, appendfsync }, 0, false);

describe("the health of Redis", () => {
  it("has the facts of Valkey", () => {
    expect(describeHealth({ info: INFO, appendfsync: "always" }, 5, false)).toEqual({
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
    const allowed = describeHealth({ info: INFO.replace("noeviction", policy), appendfsync: "always" }, 0, true);
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
    expect(describeHealth({ info: INFO, appendfsync: "always", refused }, 0, false).errors).toEqual([
      "the user of the client may not run get, del on the keys of the store",
    ]);
  });

  it("is unknown where INFO is refused", () => {
    const { errors, risks } = health(undefined);
    expect({ errors, risks }).toEqual({ errors: [], risks: [expect.stringMatching(/may not run INFO/)] });
    const refused = ["get", "NOPERM this user has no permissions"];
    expect(describeHealth({ info: undefined, appendfsync: undefined, refused }, 0, false).errors).toEqual([
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

describe("the names of keys in Redis", () => {
  it("of one partition have one hash tag, which is its name", () => {
    const names = namesWith("aa");
    const key = { kind: "grant", partition: "{}:\0", id: "}{" } as const;
    const { kind, partition } = key;
    const all = [names.record(key), names.records(kind, partition), names.index(kind, partition), names.lease(key)];
    all.push(names.leases(partition), names.state(partition), ...names.tags(kind, partition, { "{": "}" }));
    // The rule of Redis Cluster: what is between the first brace and the first closing one after it.
    for (const name of all) expect(/\{(.*?)\}/.exec(name)?.[1]).toBe("%7B%7D%3A%00");
    expect(new Set(all).size).toBe(all.length);
  });

  it("say what they are", () => {
    const names = namesWith("aa");
    const key = { kind: "grant", partition: "p", id: "i" } as const;
    expect([
      ...[names.records("grant", "p"), names.record(key), names.index("grant", "p"), names.lease(key)],
      ...[names.leases("p"), names.state("p"), names.partitions("grant"), names.probe, names.channel],
      ...[...names.tags("grant", "p", { t: "v" }), ...names.tags("grant", "p")],
    ]).toEqual([
      ...["aa:{p}:r:grant:", "aa:{p}:r:grant:i", "aa:{p}:i:grant", "aa:{p}:l:grant:i"],
      ...["aa:{p}:l", "aa:{p}:seq", "aa:p:grant", "aa:probe", "aa:ch"],
      ...["aa:{p}:t:grant:t=v"],
    ]);
  });

  it("of tags never run into one another", () => {
    const names = namesWith("aa");
    expect(names.tags("grant", "p", { "a=b": "c" })).not.toEqual(names.tags("grant", "p", { a: "b=c" }));
  });

  it("in a message are read again, and another message is not a change", () => {
    const key = { kind: "grant", partition: "a b\0", id: "{}" } as const;
    expect(decodeKey(encodeKey(key))).toEqual(key);
    for (const text of ["", "grant", "grant p", "GRANT p id", "grant % id", "grant p id more"]) {
      expect(decodeKey(text)).toBeUndefined();
    }
  });
});
