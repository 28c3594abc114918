import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { confirm } from "../../../src/cli/clients/confirm.js";
import type { Io } from "../../../src/cli/io/io.js";
import { createMemoryIo } from "../../helpers/memory-io.js";

const never = new AbortController().signal;

describe("a yes/no question", () => {
  it.each([
    ["y\n", true],
    [" YES \r\n", true],
    ["y", true],
    ["n\n", false],
    ["\n", false],
    ["yesterday\n", false],
    ["no\ny\n", false],
    ["", false],
  ])("takes %j for %s", async (stdin, answer) => {
    expect(await confirm(createMemoryIo({ tty: true, stdin }), "Continue?", never)).toBe(answer);
  });

  it("is on stderr alone, also with --quiet, and acts on no terminal", async () => {
    const io = createMemoryIo({ tty: true, stdin: "y\n", quiet: true });
    await confirm(io, "first\nsecond \u001b[31m?", never);
    expect([io.out(), io.err()]).toEqual(["", "first\nsecond \\e[31m? [y/N] "]);
  });

  it("ends with the signal, and leaves the input to others", async () => {
    const stream = new PassThrough();
    const memory = createMemoryIo({ tty: true });
    const io: Io = { ...memory, stdin: { ...memory.stdin, stream } };
    const controller = new AbortController();
    const answer = confirm(io, "Continue?", controller.signal);
    controller.abort();
    await expect(answer).rejects.toMatchObject({ code: "aborted" });
    await expect(confirm(io, "Continue?", controller.signal)).rejects.toMatchObject({ code: "aborted" });
    expect(["data", "end", "error", "keypress"].map((name) => stream.listenerCount(name))).toEqual([0, 0, 0, 0]);
    const again = confirm(io, "Continue?", never);
    stream.write("y\n");
    expect(await again).toBe(true);
  });
});
