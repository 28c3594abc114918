import { describe, expect, it } from "vitest";
import { createMemoryIo } from "../../../src/cli/io/io.js";
import { type LongOutput, pagedStream } from "../../../src/cli/io/paged-stream.js";

/** A terminal of 20 columns and 4 lines, and a pager, where there is one. */
function setUp(hasPager = true) {
  const io = createMemoryIo({ tty: true, columns: 20, env: { LINES: "4" } });
  const paged: string[] = [];
  let opened = 0;
  const pager: LongOutput = {
    async write(text) {
      paged.push(typeof text === "string" ? text : new TextDecoder().decode(text));
    },
    async end() {
      paged.push("<end>");
    },
  };
  const output = pagedStream(io.stdout, async () => {
    opened++;
    return hasPager ? pager : undefined;
  });
  return { ...output, screen: io.out, paged: () => paged.join(""), opened: () => opened };
}

describe("an output that may be longer than the screen", () => {
  it("waits, and goes to the screen where it is short", async () => {
    const { stream, end, screen, opened } = setUp();
    await stream.write("one\ntwo\n");
    expect(screen()).toBe("");
    await stream.write("three\n");
    await end();
    expect([screen(), opened()]).toEqual(["one\ntwo\nthree\n", 0]);
  });

  it.each([
    ["lines", ["1\n2\n", "3\n", "4\n"]],
    ["lines that the terminal breaks", [`${"x".repeat(61)}\n`]],
    ["wide characters that the terminal breaks", [`${"日".repeat(31)}\n`]],
    ["parts of lines", ["x".repeat(40), "x".repeat(40), "\n"]],
    ["empty lines", ["\n\n\n\n"]],
    ["bytes", [new TextEncoder().encode("1\n2\n3\n4\n")]],
  ])("goes elsewhere as a whole where it is not: %s", async (_what, parts) => {
    const { stream, end, screen, paged, opened } = setUp();
    for (const part of parts) await stream.write(part);
    await stream.write("more\n");
    await end();
    const whole = parts.map((part) => (typeof part === "string" ? part : new TextDecoder().decode(part))).join("");
    expect([paged(), screen(), opened()]).toEqual([`${whole}more\n<end>`, "", 1]);
  });

  it("counts what is seen, not what makes it bold", async () => {
    const { stream, end, opened } = setUp();
    await stream.write(`\u001b[1m${"x".repeat(20)}\u001b[22m\n`.repeat(3));
    await end();
    expect(opened()).toBe(0);
  });

  it("goes to the screen where nobody wants it elsewhere", async () => {
    const { stream, end, screen, opened } = setUp(false);
    for (const line of ["1\n", "2\n", "3\n", "4\n", "5\n"]) await stream.write(line);
    await end();
    expect([screen(), opened()]).toEqual(["1\n2\n3\n4\n5\n", 1]);
  });

  it("looks like the terminal that it stands for", () => {
    const { isTTY, columns, rows, colors } = setUp().stream;
    expect([isTTY, columns, rows, colors.isColorSupported]).toEqual([true, 20, 4, true]);
  });
});
