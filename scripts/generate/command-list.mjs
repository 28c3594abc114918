// The lists of the commands that the program declares: every folder of src/cli/commands.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The bundles of commands: those below a heading of the help, or some alone. All others are in `all`. */
const BUNDLES = {
  lists: /group: "Lists:"/,
  tokens: /group: "Tokens:"/,
  // They send nothing, so that their bundle is without clients.
  settings: /names: \["(?:config|profile)"\]/,
};

/** The text of the generated module with the declarations. */
export function commandListText(root, folder) {
  const names = commandsIn(root, folder);
  const variable = (name) => `${name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase())}Command`;
  const imports = names.map((name) => `import { command as ${variable(name)} } from "./${name}/command.js";\n`);
  const list = (title, members) =>
    `export const ${title} = [\n${members.map((name) => `  ${variable(name)},\n`).join("")}] as const;\n`;
  const bundles = Object.keys(BUNDLES).map((bundle) =>
    list(
      bundle.toUpperCase(),
      names.filter((name) => bundleOf(declaration(root, folder, name)) === bundle),
    ),
  );
  return `// Generated from ${folder}/*/command.ts by scripts/generate.mjs. Do not edit.

${imports.join("")}
${[list("COMMANDS", names), ...bundles].join("\n")}`;
}

/** The text of the generated module that names the bundle of a command line by its first word. */
export function commandBundlesText(root, folder) {
  const texts = commandsIn(root, folder).map((name) => declaration(root, folder, name));
  const words = (text, list) => list.exec(text)?.[1]?.match(/[a-z-]+/g) ?? [];
  const lines = texts.flatMap((text) =>
    words(text, /\bnames: \[([^\]]+)\]/).map((word) => `  ["${word}", "${bundleOf(text)}"],\n`),
  );
  const hidden = texts.flatMap((text) => words(text, /\bhiddenNames: \[([^\]]+)\]/));
  const bundles = [...Object.keys(BUNDLES), "all"].map((name) => `"${name}"`);
  return `// Generated from ${folder}/*/command.ts by scripts/generate.mjs. Do not edit.

/** Each word that a command line may begin with, and the bundle of its commands. */
export const BUNDLE_OF_WORD: ReadonlyMap<string, ${bundles.join(" | ")}> = new Map([
${[...new Set(lines)].join("")}]);

/** Words that the help does not list. */
export const HIDDEN_WORDS: readonly string[] = ${JSON.stringify(hidden).replaceAll(",", ", ")};
`;
}

function bundleOf(text) {
  return Object.keys(BUNDLES).find((bundle) => BUNDLES[bundle].test(text)) ?? "all";
}

function commandsIn(root, folder) {
  const names = readdirSync(join(root, folder)).filter((name) => existsSync(join(root, folder, name, "command.ts")));
  return names.sort();
}

function declaration(root, folder, name) {
  return readFileSync(join(root, folder, name, "command.ts"), "utf8");
}
