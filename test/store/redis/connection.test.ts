import { describe, expect, it } from "vitest";
import { linkOf } from "../../../src/store/redis/connection.js";

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
    const error = thrownBy(() => linkOf(connection));
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
    expect(linkOf({ client }).location).toBe(location);
  });

  it("gets commands in its own form, with the key that routes them", async () => {
    const calls: unknown[][] = [];
    const record = async (...args: unknown[]) => void calls.push(args);
    const { signal } = new AbortController();
    const clients = [{ sendCommand: record }, { sendCommand: record, nodeClient: call }, { call: record }];
    for (const client of clients) await linkOf({ client }).send(["GET", "key"], "key", signal);
    await linkOf({ send: record }).send(["GET", "key"], "key", signal);
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
    const link = linkOf({ client: { call, nodes: (role: string) => (role === "master" ? [node, node] : []) } });
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
