// The results of the last run of each workload, and the texts that are made of them.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { goalText, valueText } from "./claims.mjs";
import { markdownTable } from "./table.mjs";

const RESULTS = fileURLToPath(new URL("../results.json", import.meta.url));

/** Node version, CPU and date of a run. */
export function describeRun() {
  const processors = cpus();
  const model = processors[0]?.model.trim() || process.arch;
  return `Node ${process.versions.node}, ${processors.length} × ${model}, ${process.platform}, ${new Date().toISOString().slice(0, 10)}`;
}

/** The result of a workload, as it is stored. */
export function resultOf({ title, shows, start }, tables, about) {
  return { title, shows, start, about, tables };
}

/** The stored results by workload. */
export function readResults() {
  return existsSync(RESULTS) ? JSON.parse(readFileSync(RESULTS, "utf8")) : {};
}

/** Stores the results; `npm run generate` writes the pages. */
export function writeResults(results) {
  writeFileSync(RESULTS, `${JSON.stringify(results, null, 2)}\n`);
}

/** The text of a workload's results. */
export function section({ title, shows, start, about, tables }) {
  const texts = tables.map(({ caption, header, rows }) => `${caption}:\n\n${markdownTable(header, rows)}`);
  const started = start === undefined ? "" : `The start of the process is ${start}.`;
  return [title, `${shows} ${started}`.trim(), ...texts, `Measured on ${about}.`].join("\n\n");
}

/** A page with the section of each result between its marks; other sections stay. */
export function withSections(page, results) {
  return Object.entries(results).reduce((text, [name, result]) => between(text, name, `### ${section(result)}`), page);
}

/** A page with a table of the figures that have a goal. */
export function withClaims(page, results) {
  const all = Object.values(results);
  const claims = all.flatMap(({ tables }) => tables.flatMap((table) => table.claims ?? []));
  const rows = claims.map((claim) => [
    claim.what,
    claim.against,
    claim.isMet ? valueText(claim) : `**${valueText(claim)}**`,
    goalText(claim),
  ]);
  const header = ["what", "compared with", "measured", "goal"];
  const machines = [...new Set(all.map(({ about }) => about))].map((about) => `- ${about}`);
  const met = `${claims.filter(({ isMet }) => isMet).length} of ${claims.length} goals are met; a measured value that misses its goal is bold.`;
  const text = [`Measured on:`, machines.join("\n"), met, markdownTable(header, rows)].join("\n\n");
  return between(page, "results", text);
}

function between(page, name, text) {
  const [open, close] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const [start, end] = [page.indexOf(open), page.indexOf(close)];
  if (start < 0 || end < start) throw new Error(`the page has no marks for ${name}`);
  return `${page.slice(0, start + open.length)}\n${text}\n${page.slice(end)}`;
}
