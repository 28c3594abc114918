// The report of a run, and its place in docs/reliability-measurements.md.
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/** Date, machine and seed of a run. */
export function describeRun(seed) {
  const date = new Date().toISOString().slice(0, 10);
  return `${date}, ${process.platform}, ${availableParallelism()} cores, Node ${process.versions.node}, seed ${seed}`;
}

/** The text of a scenario: its title, its table, and what the figures were measured on. */
export function section({ title, header }, rows, about) {
  const table = rows === undefined ? [] : [markdownTable(header, rows)];
  return [`### ${title}`, ...table, about].join("\n\n");
}

/** Writes each section between its marks; other sections stay. */
export function writeSections(path, sections) {
  let page = readFileSync(path, "utf8");
  for (const [name, text] of sections) {
    const [open, close] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
    const [start, end] = [page.indexOf(open), page.indexOf(close)];
    if (start < 0 || end < start) throw new Error(`${path} has no marks for ${name}`);
    page = `${page.slice(0, start + open.length)}\n${text}\n${page.slice(end)}`;
  }
  writeFileSync(path, page);
}

/** A table with a header; the first column is text, the others are numbers. */
function markdownTable(header, rows) {
  const cells = [header, ...rows].map((row) =>
    row.map((cell) => (typeof cell === "number" ? cell.toLocaleString("en") : cell)),
  );
  const widths = header.map((_, column) => Math.max(3, ...cells.map((row) => row[column].length)));
  const line = (row) =>
    `| ${row.map((cell, at) => (at === 0 ? cell.padEnd(widths[at]) : cell.padStart(widths[at]))).join(" | ")} |`;
  const rule = widths.map((width, at) => (at === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`));
  return [line(cells[0]), line(rule), ...cells.slice(1).map(line)].join("\n");
}
