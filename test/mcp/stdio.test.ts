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

  it("is ready again when the host has read, for one after the other", async () => {
    const pendingWrites: (() => void)[] = [];
    const writer = createStdioWriter(
      () => new Promise((resolve) => pendingWrites.push(resolve)),
      () => {},
    );
    const message = { jsonrpc: "2.0", method: "x".repeat(512 * 1024) } as const;
    for (let n = 0; n < 3; n++) writer.send(message);
    const ready: number[] = [];
    for (let nth = 0; nth < 4; nth++) void writer.ready()?.then(() => ready.push(nth));
    await turns(20);
    expect(ready).toEqual([]);
    const write = async () => {
      pendingWrites.shift()?.();
      await turns(2);
    };
    while (ready.length === 0) await write();
    expect(ready).toEqual([0]);
    // What has begun goes on; what has not waits behind the others.
    expect(writer.ready(true)).toBeUndefined();
    void writer.ready()?.then(() => ready.push(4));
    writer.send(message);
    while (ready.length === 1) await write();
    expect(ready).toEqual([0, 1]);
    // Nothing comes of it, and the others do not wait for that.
    await until(() => ready.length === 5);
    expect(ready).toEqual([0, 1, 2, 3, 4]);
    while (pendingWrites.length > 0) await write();
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
