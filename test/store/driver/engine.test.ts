import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import type { RecordKey } from "../../../src/store/driver/driver.js";
import { healthReport, type Subscribe, untilFired, watchBy } from "../../../src/store/driver/engine.js";

describe("a watch over the channel of an engine", () => {
  const failure = (cause: unknown) =>
    new AgentAuthError("store_unavailable", "it ended", { class: "unavailable", cause });
  const keyOf = (id: string): RecordKey | undefined =>
    id === "no key" ? undefined : { kind: "grant", partition: "p", id };

  it("reports the key in each message until its signal fires, and gaps", async () => {
    const controller = new AbortController();
    const heard: string[] = [];
    const subscribe: Subscribe = async (channel, onMessage, onGap, signal) => {
      expect([channel, signal]).toEqual(["changes", controller.signal]);
      onGap();
      for (const message of ["one", "no key", "two"]) onMessage(message);
      controller.abort();
      onMessage("late");
    };
    const watch = watchBy(subscribe, "changes", { keyOf, failure });
    const listen = () =>
      watch(
        ({ id }) => heard.push(id),
        () => heard.push("gap"),
        controller.signal,
      );
    await listen();
    expect(heard).toEqual(["gap", "one", "two"]);
    await listen();
    expect(heard).toHaveLength(3);
  });

  it("fails with an error of the engine", async () => {
    const cause = new Error("the connection is gone");
    const watch = watchBy(() => Promise.reject(cause), "changes", { keyOf, failure });
    const { signal } = new AbortController();
    await expect(
      watch(
        () => {},
        () => {},
        signal,
      ),
    ).rejects.toMatchObject({ code: "store_unavailable", cause });
  });
});

it("a connection that listens is kept until the signal of its watch fires", async () => {
  const controller = new AbortController();
  let hasEnded = false;
  const ended = untilFired(controller.signal).then(() => {
    hasEnded = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(hasEnded).toBe(false);
  controller.abort();
  await ended;
});

describe("the report of an engine", () => {
  it("has the sentences that hold, and the facts that are known", () => {
    const facts = { version: "1", policy: "", replicas: undefined, role: null };
    expect(healthReport(5, ["a risk", false, undefined], [false, "an error"], facts)).toEqual({
      clockAheadMs: 5,
      risks: ["a risk"],
      errors: ["an error"],
      facts: { version: "1", policy: "" },
    });
  });
});
