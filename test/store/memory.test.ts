import { describe, expect, it, onTestFinished, vi } from "vitest";
import { memoryStore } from "../../src/store/memory.js";

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
