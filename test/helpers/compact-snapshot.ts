import type { SnapshotSerializer } from "vitest";

const WIDTH = 116;

/** Prints the snapshot of an object, or of a list that holds other values than strings, in as few lines as fit. */
export default {
  test: (value: unknown) =>
    isPlain(value) && !(Array.isArray(value) && value.every((item) => typeof item === "string")),
  serialize: (value, config, _indentation, depth, refs, printer) =>
    printed(value, "", (other) => printer(other, config, "", depth, refs)),
} satisfies SnapshotSerializer;

const isPlain = (value: unknown): value is object =>
  Array.isArray(value) || (typeof value === "object" && value?.constructor === Object);

function printed(value: unknown, indent: string, print: (value: unknown) => string): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (!isPlain(value)) return print(value);
  const inner = `${indent} `;
  if (Array.isArray(value))
    return `[${filled(
      value.map((item) => printed(item, inner, print)),
      inner,
    )}]`;
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  const parts = members.map(
    ([name, member]) => `${/^\w+$/.test(name) ? name : JSON.stringify(name)}: ${printed(member, inner, print)}`,
  );
  return `{${filled(parts, inner)}}`;
}

/** The parts with commas between them: as many on a line as fit, and one of several lines by itself. */
function filled(parts: readonly string[], indent: string): string {
  const lines: string[] = [];
  for (const part of parts) {
    const line = lines.at(-1);
    const both = `${line}, ${part}`;
    if (line === undefined || both.includes("\n") || indent.length + both.length > WIDTH) lines.push(part);
    else lines[lines.length - 1] = both;
  }
  return lines.join(`,\n${indent}`);
}
