// The list of the commands that the program declares: every folder of src/cli/commands.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** The text of the generated module. */
export function commandListText(root, folder) {
  const names = readdirSync(join(root, folder))
    .filter((name) => existsSync(join(root, folder, name, "command.ts")))
    .sort();
  const variable = (name) => name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase());
  const imports = names.map((name) => `import { command as ${variable(name)}Command } from "./${name}/command.js";\n`);
  return `// Generated from ${folder}/*/command.ts by scripts/generate.mjs. Do not edit.

${imports.join("")}
export const COMMANDS = [
${names.map((name) => `  ${variable(name)}Command,\n`).join("")}] as const;
`;
}
