// The list of the recorded servers: every JSON file of src/sandbox/vendors but the schema.
import { readdirSync } from "node:fs";
import { join } from "node:path";

/** The text of the generated module. */
export function vendorListText(root, folder) {
  const ids = readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".json") && !name.endsWith(".schema.json"))
    .map((name) => name.slice(0, -".json".length))
    .sort();
  const variable = (id) => id.replace(/-(\w)/g, (_, letter) => letter.toUpperCase());
  const imports = ids.map((id) => `import ${variable(id)} from "./${id}.json" with { type: "json" };\n`);
  return `// Generated from ${folder}/*.json by scripts/generate.mjs. Do not edit.

${imports.join("")}import type { ServerShape } from "./shape.js";

export const SERVER_SHAPES = [
${ids.map((id) => `  ${variable(id)},\n`).join("")}] as readonly ServerShape[];
`;
}
