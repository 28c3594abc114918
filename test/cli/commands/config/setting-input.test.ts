import { PassThrough } from "node:stream";
import { describe, expect, it, vi } from "vitest";
import { readHiddenLine } from "../../../../src/cli/commands/config/run.js";

const never = new AbortController().signal;

describe("a hidden line", () => {
  it("ends with Enter, though the input stays open", async () => {
    const stream = new PassThrough();
    stream.write("tok_0123456789\rnot read");
    expect(await readHiddenLine({ stream }, () => {}, never)).toBe("tok_0123456789");
    expect(stream.isPaused()).toBe(true);
  });

  it("ends with the input", async () => {
    const stream = new PassThrough();
    stream.end();
    expect(await readHiddenLine({ stream }, () => {}, never)).toBe("");
  });

  it("reports Ctrl-C, and ends by the signal", async () => {
    const stream = new PassThrough();
    const controller = new AbortController();
    const onInterrupt = vi.fn(() => controller.abort(new Error("interrupted")));
    stream.write("tok\u0003");
    await expect(readHiddenLine({ stream }, onInterrupt, controller.signal)).rejects.toThrow();
    expect(onInterrupt).toHaveBeenCalledTimes(1);
  });
});
