import { describe, expect, it, vi } from "vitest";
import { type RedisDriverOptions, redisDriver } from "../../../src/store/redis/redis-driver.js";
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
    let answer = (_error: Error) => {};
    const send = ([command = ""]: readonly string[]) => {
      commands.push(command);
      return new Promise<unknown>((_resolve, reject) => {
        answer = reject;
      });
    };
    const driver = redisDriver({ send }, { timeoutMs: 20 });
    expect(await pendingError(driver.get(KEY))).toMatchObject({ code: "store_unavailable" });
    answer(new Error("NOSCRIPT No matching script. Please use EVAL."));
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
      return ["stored", "7", "1"];
    };
    expect(await redisDriver({ send }).put(KEY, "text", undefined)).toBe("7");
    expect(commands).toEqual(["EVALSHA", "WAIT"]);
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
