import { describe, expect, it } from "vitest";
import { printResponse, terminalText } from "../../../../src/cli/commands/request/response-output.js";
import { unsafeIn } from "../../../helpers/cli.js";
import { createMemoryIo } from "../../../helpers/memory-io.js";
import { fc } from "../../../helpers/properties.js";

const encode = (text: string) => new TextEncoder().encode(text);

function shown(...pieces: Uint8Array[]): string {
  const text = terminalText();
  return pieces.map((piece) => text.push(piece)).join("") + text.end();
}

describe("bytes on a terminal", () => {
  it.each([
    ["an escape sequence", "a\u001b[31mb\n", "a\\e[31mb\n"],
    ["a C1 control", "a\u009b31mb\n", "a\\u{9b}31mb\n"],
    ["a bidi override", "a\u202eb\n", "a\\u{202e}b\n"],
    ["line breaks and tabs", "a\tb\nc\r\nd\n", "a\tb\nc\nd\n"],
    ["a carriage return that hides what was before", "a\rb\n", "a\\rb\n"],
    ["letters", "grüße 日本 ❤️\n", "grüße 日本 ❤️\n"],
    ["no line break at the end", "a", "a\n"],
    ["a carriage return at the end", "a\r", "a\\r\n"],
    ["nothing", "", ""],
  ])("%s", (_what, text, expected) => {
    expect(shown(encode(text))).toBe(expected);
    expect(shown(...[...encode(text)].map((byte) => Uint8Array.of(byte)))).toBe(expected);
  });

  it("hold back nothing of a line that is complete", () => {
    expect(terminalText().push(encode("data: 1\n\n"))).toBe("data: 1\n\n");
  });

  it("come out alike and harmless wherever they are cut", () => {
    const unit = fc.constantFrom(
      "a",
      "\r",
      "\n",
      "\r\n",
      "\t",
      "\u001b]0;x\u0007",
      "\u0301",
      "❤",
      "\ufe0f",
      "é",
      "日",
      "\u202e",
    );
    const bytes = fc.oneof(fc.string({ unit, maxLength: 20 }).map(encode), fc.uint8Array({ maxLength: 30 }));
    fc.assert(
      fc.property(bytes, fc.array(fc.nat(30), { maxLength: 5 }), (whole, cuts) => {
        const at = [0, ...cuts.map((cut) => Math.min(cut, whole.length)).sort((a, b) => a - b), whole.length];
        const pieces = at.slice(1).map((end, index) => whole.subarray(at[index], end));
        expect(shown(...pieces)).toBe(shown(whole));
        expect(unsafeIn(shown(whole).replaceAll("\ufffd", ""))).toEqual([]);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("an answer", () => {
  const print = async (response: Response, tty: boolean, include = false) => {
    const written: Buffer[] = [];
    const io = createMemoryIo({ tty });
    const write = async (piece: string | Uint8Array) => void written.push(Buffer.from(piece as string));
    await printResponse(response, include, { ...io, stdout: { ...io.stdout, isTTY: tty, write } });
    return Buffer.concat(written);
  };
  const BYTES = Uint8Array.from({ length: 256 }, (_, byte) => byte);

  it("goes into a pipe as it is", async () => {
    expect([...(await print(new Response(BYTES), false))]).toEqual([...BYTES]);
    expect((await print(new Response(null, { status: 204 }), false)).length).toBe(0);
  });

  it("goes to a terminal without what would move it", async () => {
    const text = (await print(new Response(BYTES), true)).toString();
    expect(unsafeIn(text.replaceAll("\ufffd", ""))).toEqual([]);
    expect(text).toContain("\\e");
  });

  it("has its status and headers in front with --include, every cookie in its line", async () => {
    const headers = new Headers([
      ["x-a", "é"],
      ["set-cookie", "a=1"],
      ["set-cookie", "b=2"],
    ]);
    const make = () => new Response(encode("body"), { status: 404, statusText: "Not Found", headers });
    const piped = (await print(make(), false, true)).toString("latin1");
    expect(piped).toBe("HTTP/1.1 404 Not Found\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nx-a: é\r\n\r\nbody");
    expect((await print(make(), true, true)).toString()).toMatch(/^HTTP\/1\.1 404 Not Found\n(?:.+\n)+\nbody\n$/);
  });

  it("has harmless headers on a terminal", async () => {
    const response = new Response(null, { headers: { "x-a": "\u009b31m" } });
    expect((await print(response, true, true)).toString()).toContain("x-a: \\u{9b}31m");
  });

  it("is given up when it cannot be printed", async () => {
    let isCancelled = false;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(BYTES),
      cancel() {
        isCancelled = true;
      },
    });
    const io = createMemoryIo();
    const write = () => Promise.reject(new Error("gone"));
    const printing = printResponse(new Response(endless), false, { ...io, stdout: { ...io.stdout, write } });
    await expect(printing).rejects.toThrow("gone");
    expect(isCancelled).toBe(true);
  });

  it("is asked for only as fast as it is read", async () => {
    let pulled = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        pulled++;
        controller.enqueue(BYTES);
      },
    });
    const io = createMemoryIo();
    const waiting: ((error: Error) => void)[] = [];
    const write = () => new Promise<void>((_, reject) => void waiting.push(reject));
    const printing = printResponse(new Response(endless), false, { ...io, stdout: { ...io.stdout, write } });
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect([waiting.length, pulled]).toEqual([1, expect.any(Number)]);
    expect(pulled).toBeLessThan(5);
    waiting[0]?.(new Error("gone"));
    await expect(printing).rejects.toThrow("gone");
  });
});
