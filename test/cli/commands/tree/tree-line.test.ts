import { expect, it } from "vitest";
import { treeLine } from "../../../../src/cli/commands/tree/tree-line.js";
import { createMemoryIo } from "../../../../src/cli/io/io.js";

const LINE = {
  depth: 3,
  last: false,
  kind: "device",
  id: "dev_0123456789abcd",
  title: "MacBook Pro of the second floor",
  note: "browser, active",
};

it("continues a line of the tree between two words, beside its branches", () => {
  const { stdout } = createMemoryIo({ tty: true, columns: 40, env: { NO_COLOR: "1" } });
  expect(treeLine(LINE, [true, false], stdout)).toBe(
    [
      "│       ├── MacBook Pro of the second",
      "│       │     floor  dev_0123456789abcd",
      "│       │     (browser, active)",
      "",
    ].join("\n"),
  );
});

it("keeps the line whole in a pipe", () => {
  const { stdout } = createMemoryIo({ columns: 40 });
  expect(treeLine(LINE, [true, false], stdout).split("\n")).toHaveLength(2);
});
