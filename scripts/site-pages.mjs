// Writes the pages of the site that are output of programs into docs/, where git ignores them: the hostile inputs, from the
// cases of test/hostile, and the measurements of reliability, from lab/stress/page.md and the last results that
// `npm run soak` and `npm run fleet` wrote. scripts/docs.mjs runs it through tsx.
import { readFileSync, writeFileSync } from "node:fs";
import { resultText } from "../lab/stress/results.mjs";
import { allCases } from "../test/hostile/all.ts";

const read = (path) => readFileSync(new URL(path, import.meta.url), "utf8");
const write = (name, text) => writeFileSync(new URL(`../docs/${name}.md`, import.meta.url), text);

write("security-table", hostileInputs());
write("reliability-measurements", measurements());
// What the cases import keeps a server open.
process.exit();

function hostileInputs() {
  const rows = allCases.map(({ id, input, result }) => `| ${id} | ${cell(input)} | ${cell(result)} |`);
  return `# Hostile inputs

The ${allCases.length} hostile inputs of the tests, and what has to happen. \`npm run hostile\` runs them;
[security](security.md) has the promises that they test.

| row | input | result |
| --- | --- | --- |
${rows.join("\n")}
`;
}

/** Escapes text for a table cell: it has no link, no tag and no cell border. */
function cell(text) {
  return text.replace(/[|<>`*_[\]\\]/g, "\\$&");
}

function measurements() {
  const results = JSON.parse(read("../lab/stress/results.json"));
  return read("../lab/stress/page.md").replace(/^<!-- ([\w-]+) -->$/gm, (_mark, name) => {
    const { [name]: result } = results;
    if (result === undefined) throw new Error(`lab/stress/results.json has no ${name}`);
    delete results[name];
    return resultText(result);
  });
}
