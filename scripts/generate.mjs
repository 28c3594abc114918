// Writes what is derived: from openapi.yaml the types, the table of shapes and the schemas of what is listed; from the
// TypeScript types of the outputs their schemas; from the folders of the commands the list of them; from the commands
// the manual page and docs/cli*.md; from the output formats their table in docs/lists.md; from the events their tables in docs/events.md; from the recorded servers the
// list of them and docs/servers.md, with the results of the last whole run of lab/foreign; from the results of the benchmarks docs/performance.md and the tables in
// lab/bench/README.md.
// With --check it writes nothing and fails where a file is not what it should be.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { readResults, withClaims, withSections } from "../lab/bench/lib/report.mjs";
import { cliPages } from "./generate/cli-page.mjs";
import { commandBundlesText, commandListText } from "./generate/command-list.mjs";
import { withEvents } from "./generate/events.mjs";
import { withFormats } from "./generate/formats.mjs";
import { manPage } from "./generate/man-page.mjs";
import { outputSchemasText } from "./generate/output-schemas.mjs";
import { serversPage, withForeignRun } from "./generate/servers-page.mjs";
import { serviceSchemasText } from "./generate/service-schemas.mjs";
import { shapesText } from "./generate/shapes.mjs";
import { readTree } from "./generate/tree.mjs";

const CONTRACT = "openapi.yaml";
const COMMANDS = "the command tree";
const FOLDERS = "src/cli/commands";
const VENDORS = "test/vendors";
const FOREIGN = "lab/foreign/results.json";
const TYPES = "src/api/schema.gen.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const check = process.argv.includes("--check");

const contract = parse(readFileSync(join(root, CONTRACT), "utf8"));
settle("src/api/shapes.gen.ts", shapesText(contract, CONTRACT), CONTRACT);
settle("src/cli/commands/schema/service.gen.json", serviceSchemasText(contract), CONTRACT);
if (typesAreWrong()) complain(TYPES, CONTRACT);
settle("src/cli/commands/schema/outputs.gen.json", outputSchemasText(root), "the types of the outputs");
settle(`${FOLDERS}/all.gen.ts`, commandListText(root, FOLDERS), FOLDERS);
settle("src/cli/groups/words.gen.ts", commandBundlesText(root, FOLDERS), FOLDERS);
const { tree, formats, events, servers } = await readTree(root);
settle("docs/man/agentauth.1", manPage(tree), COMMANDS);
for (const [page, text] of Object.entries(cliPages(tree))) settle(page, text, COMMANDS);
const foreign = JSON.parse(readFileSync(join(root, FOREIGN), "utf8"));
settle("docs/servers.md", serversPage(servers, foreign), `${VENDORS} and ${FOREIGN}`);
const CONFORMANCE = "docs/conformance.md";
settle(CONFORMANCE, withForeignRun(readFileSync(join(root, CONFORMANCE), "utf8"), foreign), FOREIGN);
const LISTS = "docs/lists.md";
settle(LISTS, withFormats(readFileSync(join(root, LISTS), "utf8"), formats), "src/cli/output/formats.ts");
const PAGE = "docs/events.md";
settle(PAGE, withEvents(readFileSync(join(root, PAGE), "utf8"), events), "src/telemetry/events.ts");
const results = readResults();
for (const [page, written] of [
  ["docs/performance.md", withClaims],
  ["lab/bench/README.md", withSections],
]) {
  settle(page, written(readFileSync(join(root, page), "utf8"), results), "lab/bench/results.json");
}

/** Writes a file, or compares it. */
function settle(file, text, source) {
  const path = join(root, file);
  if (check) {
    if (readOrNothing(path) !== text) complain(file, source);
    return;
  }
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function complain(file, source) {
  console.error(`${file} differs from ${source}: run "npm run generate"`);
  process.exitCode = 1;
}

/** Runs openapi-typescript, which writes or checks; returns whether it failed. */
function typesAreWrong() {
  const manifest = createRequire(import.meta.url).resolve("openapi-typescript/package.json");
  const args = [join(dirname(manifest), "bin/cli.js"), CONTRACT, "--output", TYPES, "--array-length"];
  const run = spawnSync(process.execPath, check ? [...args, "--check"] : args, { cwd: root, encoding: "utf8" });
  if (run.status === 0) return false;
  console.error(run.stderr);
  if (!check) process.exit(1);
  return true;
}

function readOrNothing(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
