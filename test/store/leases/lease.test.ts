import { describe, expect, it, onTestFinished, vi } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import type { Lease } from "../../../src/oauth/model/lease.js";
import { memoryStore } from "../../../src/store/memory.js";
import { pendingError } from "../../helpers/captured.js";
import { until } from "../../helpers/server.js";
import { stores } from "../stores.js";

const BRIEF = { durationMs: 5000 };

/** Work under the lease "x" that a test ends. */
async function hold(store: GrantStore) {
  let held: { lease: Lease; end(): void; fail(error: Error): void } | undefined;
  const work = (lease: Lease) =>
    new Promise<void>((end, fail) => {
      held = { lease, end, fail };
    });
  const ended = store.lease("x", work, BRIEF);
  await until(() => held !== undefined);
  return { ...(held as NonNullable<typeof held>), ended };
}

const previousOf = async ({ previous }: Lease) => previous;
const outcomeOf = async ({ waited, previous }: Lease) => ({ waited, code: previous?.failure?.code });
const failed = (code: string) => new AgentAuthError(code, "it failed", { class: "unavailable", hint: "wait" });

describe.each(stores)("a lease of %s", (name, open) => {
  it("lets one work at a time under a name, in the order they came", async () => {
    const store = open();
    const order: string[] = [];
    const work = (name: string) => async () => {
      order.push(`${name} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      order.push(`${name} ends`);
      return name;
    };
    const given = await Promise.all(["a", "b", "c"].map((one) => store.lease("x", work(one), BRIEF)));
    expect(given).toEqual(["a", "b", "c"]);
    const begun = order.filter((line) => line.endsWith("begins")).map((line) => line[0] ?? "");
    if (!name.includes("anew")) expect(begun).toEqual(["a", "b", "c"]);
    expect(order).toEqual(begun.flatMap((one) => [`${one} begins`, `${one} ends`]));
  });

  it("lets work under other names continue", async () => {
    const store = open();
    const { end, ended } = await hold(store);
    expect(await store.lease("y", async () => "done", BRIEF)).toBe("done");
    end();
    await ended;
  });

  it("continues after work that failed", async () => {
    const store = open();
    const failing = store.lease("x", () => Promise.reject(new Error("no")), BRIEF);
    const next = store.lease("x", async () => "yes", BRIEF);
    await expect(failing).rejects.toThrow("no");
    expect(await next).toBe("yes");
  });

  it("lets a waiting caller leave at once, without its work being done or the others being held up", async () => {
    const store = open();
    const { end, ended } = await hold(store);
    const controller = new AbortController();
    const work = vi.fn(async () => "stayed");
    const leaving = store.lease("x", work, { ...BRIEF, signal: controller.signal });
    const staying = store.lease("x", work, BRIEF);
    controller.abort();
    expect(await pendingError(leaving)).toMatchObject({ code: "aborted" });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(work).not.toHaveBeenCalled();
    end();
    await ended;
    expect(await staying).toBe("stayed");
    expect(work).toHaveBeenCalledTimes(1);
  });

  it("does no work for a caller who has left already", async () => {
    const work = vi.fn(async () => undefined);
    const leaving = open().lease("x", work, { ...BRIEF, signal: AbortSignal.abort() });
    expect(await pendingError(leaving)).toMatchObject({ code: "aborted" });
    expect(work).not.toHaveBeenCalled();
  });

  it("reports the outcome of the attempt before where that failed, and nothing where it did not", async () => {
    const store = open();
    const since = Date.now();
    const fail = async (lease: Lease) => {
      await lease.commit();
      throw failed("timeout");
    };
    expect(await pendingError(store.lease("x", fail, BRIEF))).toMatchObject({ code: "timeout" });
    const before = await store.lease("x", previousOf, BRIEF);
    expect(before).toMatchObject({
      ended: "released",
      committed: true,
      failure: { code: "timeout", class: "unavailable", message: "it failed", hint: "wait" },
    });
    expect(before?.at).toBeGreaterThanOrEqual(since);
    expect(before?.endedAt).toBeGreaterThanOrEqual(before?.at ?? 0);
    expect((await store.lease("x", previousOf, BRIEF))?.failure).toBeUndefined();
    expect(await store.lease("y", previousOf, BRIEF)).toBeUndefined();
  });

  it("reports to those who waited that they did, and to those who came later that they did not", async () => {
    const store = open();
    const { fail, ended } = await hold(store);
    const waiting = store.lease("x", outcomeOf, BRIEF);
    // The clocks of a store and of its engine differ by milliseconds, and the times decide who has waited.
    await new Promise((resolve) => setTimeout(resolve, 20));
    fail(failed("timeout"));
    await expect(ended).rejects.toBeDefined();
    expect(await waiting).toEqual({ waited: true, code: "timeout" });
    expect(await store.lease("x", async ({ waited }) => waited, BRIEF)).toBe(false);
  });

  it("has not waited for a failure from before its request", async () => {
    const store = open();
    await expect(store.lease("x", () => Promise.reject(failed("old")), BRIEF)).rejects.toBeDefined();
    const endedAt = Date.now();
    await until(() => Date.now() > endedAt);
    const { lease, fail, ended } = await hold(store);
    const waiting = store.lease("x", outcomeOf, BRIEF);
    // The waiting caller has requested the lease.
    await new Promise((resolve) => setImmediate(resolve));
    lease.rollback();
    fail(failed("new"));
    expect(await pendingError(ended)).toMatchObject({ code: "new" });
    expect(await waiting).toEqual({ waited: false, code: "old" });
  });

  it("can be committed while there is time left", async () => {
    const { lease, end, ended } = await hold(open());
    expect(lease.left()).toBeGreaterThan(0);
    expect(lease.left()).toBeLessThanOrEqual(BRIEF.durationMs);
    await lease.commit();
    expect(lease.left()).toBeGreaterThan(0);
    end();
    await ended;
  });
});

describe("a lease in memory", () => {
  it("has the time of its work, which passes, and cannot be committed after it", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    onTestFinished(() => void vi.useRealTimers());
    vi.advanceTimersByTime(5000);
    await memoryStore().lease(
      "x",
      async (lease) => {
        const left: number[] = [];
        for (const ms of [0, 400, 599, 1, 1]) {
          vi.advanceTimersByTime(ms);
          left.push(lease.left());
        }
        expect(left).toEqual([1000, 600, 1, 0, 0]);
        await expect(lease.commit()).rejects.toMatchObject({ code: "lease_lost" });
      },
      { durationMs: 1000 },
    );
  });

  it.each([true, false])("reports whether an attempt that failed had begun: %s", async (committed) => {
    const { lease } = memoryStore();
    const failing = lease(
      "x",
      async (held) => {
        if (committed) await held.commit();
        throw new Error("no");
      },
      { durationMs: 1000 },
    );
    await expect(failing).rejects.toThrow("no");
    expect(await lease("x", async ({ previous }) => previous?.committed, { durationMs: 1000 })).toBe(committed);
  });
});
