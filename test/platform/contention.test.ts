import { describe, expect, it } from "vitest";
import { patiently } from "../../src/platform/contention.js";
import { onSystem } from "./support.js";

const failure = (code: string) => Object.assign(new Error(code), { code });

/** Work that fails a number of times before it succeeds. */
function failing(times: number, code: string) {
  let calls = 0;
  return () => {
    if (calls++ < times) throw failure(code);
    return calls;
  };
}

describe("a file that another program has open", () => {
  it.each(["EPERM", "EACCES", "EBUSY"])("is tried again on Windows: %s", (code) => {
    onSystem({ name: "win32" });
    expect(patiently(failing(3, code))).toBe(4);
  });

  it("is not waited for without end", () => {
    onSystem({ name: "win32" });
    expect(() => patiently(failing(Number.POSITIVE_INFINITY, "EBUSY"))).toThrow("EBUSY");
  });

  it.each([
    ["win32", "ENOENT"],
    ["linux", "EBUSY"],
    ["darwin", "EPERM"],
  ] as const)("is no reason to wait on %s for %s", (name, code) => {
    onSystem({ name });
    expect(() => patiently(failing(1, code))).toThrow(code);
  });
});
