// Markdown tables, for the terminal and for README.md.

/** A table with a header; the first column is text, the others are numbers. */
export function markdownTable(header, rows) {
  const widths = header.map((title, column) => Math.max(3, ...[title, ...rows.map((row) => row[column])].map(length)));
  const line = (cells) =>
    `| ${cells.map((cell, at) => (at === 0 ? cell.padEnd(widths[at]) : cell.padStart(widths[at]))).join(" | ")} |`;
  const rule = widths.map((width, at) => (at === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`));
  return [line(header), line(rule), ...rows.map(line)].join("\n");
}

function length(text) {
  return text.length;
}

/** A ratio, such as `1.04×`. */
export function times(value) {
  return `${value.toFixed(2)}×`;
}

/** Milliseconds as milliseconds or seconds. */
export function duration(ms) {
  return ms < 1000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(2)} s`;
}

/** KiB as MB. */
export function megabytes(kib) {
  return `${((kib * 1024) / 1e6).toFixed(0)} MB`;
}
