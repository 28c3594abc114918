import { describe, expect, it, onTestFinished, vi } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import { memoryStore } from "../../../src/store/memory.js";
import { pendingError } from "../../helpers/captured.js";
import { until } from "../../helpers/server.js";
import { stores } from "../stores.js";

const BRIEF = { durationMs: 5000 };

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
    let end: (() => void) | undefined;
    const held = store.lease(
      "x",
      () =>
        new Promise<void>((resolve) => {
          end = resolve;
        }),
      BRIEF,
    );
    await until(() => end !== undefined);
    expect(await store.lease("y", async () => "done", BRIEF)).toBe("done");
    end?.();
    await held;
  });

  it("continues after work that failed", async () => {
    const store = open();
    const failing = store.lease(
      "x",
      async () => {
        throw new Error("no");
      },
      BRIEF,
    );
    const next = store.lease("x", async () => "yes", BRIEF);
    await expect(failing).rejects.toThrow("no");
    expect(await next).toBe("yes");
  });

  it("lets a waiting caller leave at once, without its work being done or the others being held up", async () => {
    const store = open();
    let end: () => void = () => undefined;
    let begun = false;
    const held = store.lease(
      "x",
      () => {
        begun = true;
        return new Promise<void>((resolve) => {
          end = resolve;
        });
      },
      BRIEF,
    );
    await until(() => begun);
    const controller = new AbortController();
    let worked = false;
    const leaving = store.lease(
      "x",
      async () => {
        worked = true;
      },
      { ...BRIEF, signal: controller.signal },
    );
    let stayed = false;
    const staying = store.lease(
      "x",
      async () => {
        stayed = true;
        return "stayed";
      },
      BRIEF,
    );
    controller.abort();
    expect(await pendingError(leaving)).toMatchObject({ code: "aborted" });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(stayed).toBe(false);
    end();
    await held;
    expect(await staying).toBe("stayed");
    expect(worked).toBe(false);
  });

  it("does no work for a caller who has left already", async () => {
    const store = open();
    let worked = false;
    const leaving = store.lease(
      "x",
      async () => {
        worked = true;
      },
      { ...BRIEF, signal: AbortSignal.abort() },
    );
    expect(await pendingError(leaving)).toMatchObject({ code: "aborted" });
    expect(worked).toBe(false);
  });

  const failed = (code: string) => new AgentAuthError(code, "it failed", { class: "unavailable", hint: "wait" });

  it("reports the outcome of the attempt before where that failed, and nothing where it did not", async () => {
    const store = open();
    const since = Date.now();
    const failing = store.lease(
      "x",
      async (lease) => {
        await lease.commit();
        throw failed("timeout");
      },
      BRIEF,
    );
    expect(await pendingError(failing)).toMatchObject({ code: "timeout" });
    const before = await store.lease("x", async (lease) => lease.previous, BRIEF);
    expect(before).toMatchObject({
      ended: "released",
      committed: true,
      failure: { code: "timeout", class: "unavailable", message: "it failed", hint: "wait" },
    });
    expect(before?.at).toBeGreaterThanOrEqual(since);
    expect(before?.endedAt).toBeGreaterThanOrEqual(before?.at ?? 0);
    expect((await store.lease("x", async (lease) => lease.previous, BRIEF))?.failure).toBeUndefined();
    expect(await store.lease("y", async (lease) => lease.previous, BRIEF)).toBeUndefined();
  });

  it("reports to those who waited that they did, and to those who came later that they did not", async () => {
    const store = open();
    let begun = false;
    let fail: () => void = () => undefined;
    const held = store.lease(
      "x",
      () => {
        begun = true;
        return new Promise<void>((_resolve, reject) => {
          fail = () => reject(failed("timeout"));
        });
      },
      BRIEF,
    );
    await until(() => begun);
    const waiting = store.lease(
      "x",
      async ({ waited, previous }) => ({ waited, code: previous?.failure?.code }),
      BRIEF,
    );
    // The clocks of a store and of its engine differ by milliseconds, and the times decide who has waited.
    await new Promise((resolve) => setTimeout(resolve, 20));
    fail();
    await expect(held).rejects.toBeDefined();
    expect(await waiting).toEqual({ waited: true, code: "timeout" });
    expect(await store.lease("x", async ({ waited }) => waited, BRIEF)).toBe(false);
  });

  it("has not waited for a failure from before its request", async () => {
    const store = open();
    await expect(store.lease("x", () => Promise.reject(failed("old")), BRIEF)).rejects.toBeDefined();
    const endedAt = Date.now();
    await until(() => Date.now() > endedAt);
    let begun = false;
    let end: () => void = () => undefined;
    const held = store.lease(
      "x",
      async (lease) => {
        begun = true;
        await new Promise<void>((resolve) => {
          end = resolve;
        });
        lease.rollback();
        throw failed("new");
      },
      BRIEF,
    );
    await until(() => begun);
    const waiting = store.lease(
      "x",
      async ({ waited, previous }) => ({ waited, code: previous?.failure?.code }),
      BRIEF,
    );
    // The waiting caller has requested the lease.
    await new Promise((resolve) => setImmediate(resolve));
    end();
    expect(await pendingError(held)).toMatchObject({ code: "new" });
    expect(await waiting).toEqual({ waited: false, code: "old" });
  });

  it("can be committed while there is time left", async () => {
    const store = open();
    await store.lease(
      "x",
      async (lease) => {
        expect(lease.left()).toBeGreaterThan(0);
        expect(lease.left()).toBeLessThanOrEqual(BRIEF.durationMs);
        await lease.commit();
        expect(lease.left()).toBeGreaterThan(0);
      },
      BRIEF,
    );
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
