// The results of scenarios: as text, and in results.json, which has one row of a table on a line.
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const FILE = new URL("results.json", import.meta.url);

/** The text of a result: its title, its table, and what the figures were measured on. */
export function resultText({ title, rows, about }) {
  return [`### ${title}`, ...(rows.length === 0 ? [] : [markdownTable(rows)]), about].join("\n\n");
}

/** Stores results by the names of their scenarios; those of other scenarios stay. */
export function storeResults(results) {
  const all = { ...(existsSync(FILE) && JSON.parse(readFileSync(FILE, "utf8"))), ...Object.fromEntries(results) };
  const parts = Object.entries(all).map(([name, { title, about, rows }]) => {
    const head = JSON.stringify({ title, about }).slice(0, -1);
    return `${JSON.stringify(name)}:${head},"rows":[\n${rows.map((row) => JSON.stringify(row)).join(",\n")}\n]}`;
  });
  writeFileSync(FILE, `{\n${parts.join(",\n")}\n}\n`);
}

/** A table whose first row is its header; the first column is text, the others are numbers. */
function markdownTable(rows) {
  const widths = rows[0].map((_, column) => Math.max(3, ...rows.map((row) => row[column].length)));
  const line = (row) =>
    `| ${row.map((cell, at) => (at === 0 ? cell.padEnd(widths[at]) : cell.padStart(widths[at]))).join(" | ")} |`;
  const rule = widths.map((width, at) => (at === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`));
  return [line(rows[0]), line(rule), ...rows.slice(1).map(line)].join("\n");
}
