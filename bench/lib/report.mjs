// The report of a run, and its place in README.md.
import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { markdownTable } from "./table.mjs";

/** Node version, CPU and date of a run. */
export function describeRun() {
  const processors = cpus();
  const model = processors[0]?.model.trim() || process.arch;
  return `Node ${process.versions.node}, ${processors.length} × ${model}, ${process.platform}, ${new Date().toISOString().slice(0, 10)}`;
}

/** The text of a workload's results. */
export function section(workload, tables, about) {
  const texts = tables.map(({ caption, header, rows }) => `${caption}:\n\n${markdownTable(header, rows)}`);
  return [workload.title, workload.shows, ...texts, `Measured on ${about}.`].join("\n\n");
}

/** Writes each section between its marks; other sections stay. */
export function writeSections(path, sections) {
  let readme = readFileSync(path, "utf8");
  for (const [name, text] of sections) {
    const [open, close] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
    const [start, end] = [readme.indexOf(open), readme.indexOf(close)];
    if (start < 0 || end < start) throw new Error(`${path} has no marks for ${name}`);
    readme = `${readme.slice(0, start + open.length)}\n### ${text}\n${readme.slice(end)}`;
  }
  writeFileSync(path, readme);
}
