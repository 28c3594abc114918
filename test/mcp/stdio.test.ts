import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { createStdioWriter, readLines } from "../../src/mcp/stdio.js";
import { until } from "../helpers/server.js";

const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
};

describe("the lines of the host", () => {
  it.each([1, 2, 3, 5, 100])("are read whole from pieces of %i bytes, but those that are too long", async (size) => {
    const text = "é\n\n12345678\n123456789\nend";
    const bytes = Buffer.from(text);
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, nth) =>
      bytes.subarray(nth * size, (nth + 1) * size),
    );
    const lines: (string | undefined)[] = [];
    for await (const line of readLines(Readable.from(pieces), 8)) lines.push(line);
    expect(lines).toEqual(["é", "", "12345678", undefined, "end"]);
  });
});

it("the lines of a host may come as texts", async () => {
  const lines: (string | undefined)[] = [];
  for await (const line of readLines(Readable.from(["a\nb", "c\n"]), 8)) lines.push(line);
  expect(lines).toEqual(["a", "bc"]);
});

describe("the writer to the host", () => {
  it("is ready up to a mebibyte that is not written, and again when it is", async () => {
    const written: string[] = [];
    let write = () => {};
    const writer = createStdioWriter(
      (text) =>
        new Promise((resolve) => {
          written.push(text);
          write = resolve;
        }),
      () => {},
    );
    const message = { jsonrpc: "2.0", method: "" } as const;
    const rest = 1024 * 1024 - JSON.stringify(message).length - 1;
    writer.send({ ...message, method: "x".repeat(rest) });
    expect(writer.ready()).toBeUndefined();
    writer.send(message);
    const ready = writer.ready();
    expect(ready).toBeInstanceOf(Promise);
    await turns(1);
    write();
    await turns(5);
    expect(writer.ready()).toBeUndefined();
    write();
    await ready;
    await writer.flushed();
    expect(written.map((text) => [text.length, text.at(-1)])).toEqual([
      [1024 * 1024, "\n"],
      [JSON.stringify(message).length + 1, "\n"],
    ]);
  });

  it("is ready again when the host has read", async () => {
    const pendingWrites: (() => void)[] = [];
    const writer = createStdioWriter(
      () => new Promise((resolve) => pendingWrites.push(resolve)),
      () => {},
    );
    let isReady = false;
    for (let n = 0; n < 3; n++) writer.send({ jsonrpc: "2.0", method: "x".repeat(512 * 1024) });
    void writer.ready()?.then(() => {
      isReady = true;
    });
    await turns(20);
    expect(isReady).toBe(false);
    while (!isReady) {
      pendingWrites.shift()?.();
      await turns(1);
    }
    await writer.flushed();
  });

  it("reports a closed pipe once, and drops later messages", async () => {
    const failures: unknown[] = [];
    let written = 0;
    const writer = createStdioWriter(
      async () => {
        written += 1;
        throw new Error("EPIPE");
      },
      (error) => failures.push(error),
    );
    for (let n = 0; n < 3; n++) writer.send({ jsonrpc: "2.0", method: "x" });
    await until(() => failures.length > 0);
    await writer.flushed();
    expect([failures.length, written]).toEqual([1, 1]);
  });
});
