import { describe, expect, it } from "vitest";
import { createStdioWriter } from "../../src/mcp/stdio.js";
import { until } from "../helpers/server.js";

const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
};

describe("a pipe to a host", () => {
  it("has room again when the host has read", async () => {
    const taken: (() => void)[] = [];
    const pipe = createStdioWriter(
      () => new Promise((resolve) => taken.push(resolve)),
      () => {},
    );
    let isReady = false;
    for (let n = 0; n < 3; n++) pipe.send({ jsonrpc: "2.0", method: "x".repeat(512 * 1024) });
    void pipe.ready().then(() => {
      isReady = true;
    });
    await turns(20);
    expect(isReady).toBe(false);
    while (!isReady) {
      taken.shift()?.();
      await turns(1);
    }
    await pipe.flushed();
  });

  it("says once that nobody reads any more, and throws away what comes then", async () => {
    const failures: unknown[] = [];
    let written = 0;
    const pipe = createStdioWriter(
      async () => {
        written += 1;
        throw new Error("EPIPE");
      },
      (error) => failures.push(error),
    );
    for (let n = 0; n < 3; n++) pipe.send({ jsonrpc: "2.0", method: "x" });
    await until(() => failures.length > 0);
    await pipe.flushed();
    expect([failures.length, written]).toEqual([1, 1]);
  });
});
