import { onTestFinished, vi } from "vitest";

/** Counts how often jose verifies a signature since the last call of `clear`. */
export function countVerifications(): { count(): number; clear(): void } {
  const spy = vi.spyOn(crypto.subtle, "verify");
  onTestFinished(() => spy.mockRestore());
  return { count: () => spy.mock.calls.length, clear: () => spy.mockClear() };
}
