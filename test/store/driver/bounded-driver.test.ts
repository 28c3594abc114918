import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import { boundedDriver, isUnanswered } from "../../../src/store/driver/bounded-driver.js";
import type { RecordKey, StoreDriver } from "../../../src/store/driver/driver.js";
import { memoryDriver } from "../../../src/store/driver/memory-driver.js";

const KEY: RecordKey = { kind: "grant", partition: "p", id: "i" };
const LEASE = { owner: "o", ttlMs: 1000, note: "" };

/** Each operation, as a caller asks for it. */
const OPERATIONS: [string, (driver: StoreDriver, signal: AbortSignal) => Promise<unknown> | undefined][] = [
  ["get", (driver, signal) => driver.get(KEY, { signal })],
  ["touch", (driver, signal) => driver.touch?.(KEY, { signal })],
  ["put", (driver, signal) => driver.put(KEY, "v", undefined, { signal })],
  ["delete", (driver, signal) => driver.delete(KEY, undefined, { signal })],
  ["scan", (driver, signal) => driver.scan({ kind: "grant" }, { limit: 1 }, { signal })],
  ["claim", (driver, signal) => driver.claim(KEY, LEASE, { signal })],
  ["extend", (driver, signal) => driver.extend(KEY, LEASE, { signal })],
  ["release", (driver, signal) => driver.release(KEY, { owner: "o", note: undefined }, { signal })],
];
const never = (): Promise<never> => new Promise(() => undefined);
const silent = Object.assign(memoryDriver(), Object.fromEntries(OPERATIONS.map(([name]) => [name, never])));

describe("a driver with a time limit", () => {
  it.each(OPERATIONS)("ends %s after that time, or with the signal of the caller", async (_name, ask) => {
    const { signal } = new AbortController();
    await expect(ask(boundedDriver(silent, 10), signal)).rejects.toMatchObject({
      code: "store_unavailable",
      message: "memory at memory did not answer in 0.01 s",
    });
    const controller = new AbortController();
    const asked = ask(boundedDriver(silent, 60_000), controller.signal);
    controller.abort();
    await expect(asked).rejects.toMatchObject({ code: "aborted" });
  });

  it.each(OPERATIONS)("passes on what %s asks for and is answered", async (name, ask) => {
    const asked: unknown[][] = [];
    const answer = { name };
    const operation = async (...args: unknown[]) => {
      asked.push(args);
      return answer;
    };
    const { signal } = new AbortController();
    const direct = Object.assign(memoryDriver(), { [name]: operation });
    expect(await ask(boundedDriver(direct, 60_000), signal)).toBe(answer);
    await ask(direct, signal);
    const [bounded, plain] = asked.map((args) => args.slice(0, -1));
    expect(bounded).toEqual(plain);
  });

  it("has the same watch and health, and none where the other one has none", async () => {
    const health = { clockAheadMs: 1, risks: [], errors: [], facts: {} };
    const own: StoreDriver = Object.assign(memoryDriver(), {
      async health(this: unknown) {
        return this === own ? health : undefined;
      },
      async watch(this: unknown, onChange: (key: RecordKey) => void) {
        if (this === own) onChange(KEY);
      },
    });
    const bounded = boundedDriver(own, 1000);
    const changed: RecordKey[] = [];
    await bounded.watch?.(
      (key) => changed.push(key),
      () => {},
      new AbortController().signal,
    );
    expect([changed, await bounded.health?.()]).toEqual([[KEY], health]);
    const { watch: _watch, health: _health, touch: _touch, ...bare } = memoryDriver();
    const optional = Object.keys(boundedDriver(bare, 1000)).filter((name) => /^(watch|health|touch)$/.test(name));
    expect(optional).toEqual([]);
  });
});

it("an error of ours that passes may hide what has happened, and no other does", () => {
  const error = (kind: AgentAuthError["class"]) => new AgentAuthError("x", "no", { class: kind });
  expect(
    [error("unavailable"), error("store"), Object.assign(new Error("no"), { class: "unavailable" })].map(isUnanswered),
  ).toEqual([true, false, false]);
});
