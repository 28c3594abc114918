import { onTestFinished, vi } from "vitest";

/** Counts how often a signature is verified, by `node:crypto` or by Web Crypto, since the last call of `clear`. */
export function countVerifications(): { count(): number; clear(): void } {
  const spies = [vi.spyOn(process.getBuiltinModule("node:crypto"), "verify"), vi.spyOn(crypto.subtle, "verify")];
  onTestFinished(() => {
    for (const spy of spies) spy.mockRestore();
  });
  return {
    count: () => spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0),
    clear() {
      for (const spy of spies) spy.mockClear();
    },
  };
}
