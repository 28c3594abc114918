// The lists of the commands that the program declares: every folder of src/cli/commands.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The headings of the help whose commands are bundles of their own, with the name of the list. */
const BUNDLES = { "Lists:": "lists", "Tokens:": "tokens" };

/** The text of the generated module with the declarations. */
export function commandListText(root, folder) {
  const names = commandsIn(root, folder);
  const variable = (name) => `${name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase())}Command`;
  const imports = names.map((name) => `import { command as ${variable(name)} } from "./${name}/command.js";\n`);
  const list = (title, members) =>
    `export const ${title} = [\n${members.map((name) => `  ${variable(name)},\n`).join("")}] as const;\n`;
  const bundles = Object.entries(BUNDLES).map(([heading, bundle]) =>
    list(
      bundle.toUpperCase(),
      names.filter((name) => declaration(root, folder, name).includes(`group: "${heading}"`)),
    ),
  );
  return `// Generated from ${folder}/*/command.ts by scripts/generate.mjs. Do not edit.

${imports.join("")}
${[list("COMMANDS", names), ...bundles].join("\n")}`;
}

/** The text of the generated module that names the bundle of a command line by its first word. */
export function commandBundlesText(root, folder) {
  const lines = commandsIn(root, folder).flatMap((name) => {
    const text = declaration(root, folder, name);
    const bundle = Object.entries(BUNDLES).find(([heading]) => text.includes(`group: "${heading}"`))?.[1];
    const words = /\bnames: \[([^\]]+)\]/.exec(text)?.[1]?.match(/[a-z-]+/g) ?? [];
    return bundle === undefined ? [] : words.map((word) => `  ["${word}", "${bundle}"],\n`);
  });
  return `// Generated from ${folder}/*/command.ts by scripts/generate.mjs. Do not edit.

export const BUNDLE_OF_WORD: ReadonlyMap<string, ${Object.values(BUNDLES)
    .map((name) => `"${name}"`)
    .join(" | ")}> = new Map([
${[...new Set(lines)].join("")}]);
`;
}

function commandsIn(root, folder) {
  const names = readdirSync(join(root, folder)).filter((name) => existsSync(join(root, folder, name, "command.ts")));
  return names.sort();
}

function declaration(root, folder, name) {
  return readFileSync(join(root, folder, name, "command.ts"), "utf8");
}
