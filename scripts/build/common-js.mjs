// Node loads an ES module in several asynchronous steps, with a loader that must itself be loaded: a command of twenty
// chunks takes an eighth less CPU when they are CommonJS.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { transform } from "esbuild";
import { removeNames } from "./names.mjs";

const LAZY = /\bimport\("(\.{1,2}\/[^"]+)\.js"\)/g;
const EAGER = /\brequire\("(\.{1,2}\/[^"]+)\.js"\)/g;
const MODULE_URL = "__moduleUrl";

/**
 * Turns the chunks of a build into CommonJS, `name.js` into `name.cjs`, and shortens their identifiers: sources are most of
 * the installation, and a start reads all of the chunk that it needs. The build has written down each function's name
 * (`keepNames`), so that stack traces and code that reads names find the same ones.
 *
 * @param outputs of the metafile of the build
 * @param options `root` is the folder of its paths; `target` as of the build
 */
export async function toCommonJs(outputs, { root, target }) {
  for (const [path, { imports, inputs }] of Object.entries(outputs)) {
    const isChunk = ({ kind, external, path: to }) => kind === "dynamic-import" && (!external || to.startsWith("."));
    const lazy = new Set(imports.filter(isChunk).map((one) => one.path)).size;
    await convert(join(root, path), { root, target, lazy, inputs: Object.keys(inputs) });
  }
}

async function convert(file, { root, target, lazy, inputs }) {
  const given = removeNames(readFileSync(file, "utf8"), inputs, root);
  const found = new Set();
  const source = given.replace(LAZY, (_, path) => {
    found.add(path);
    return `Promise.resolve().then(() => require("${path}.js"))`;
  });
  if (found.size !== lazy) throw new Error(`${file} loads ${lazy} chunks with import(), and ${found.size} were found`);
  const { code } = await transform(source, {
    format: "cjs",
    platform: "node",
    target,
    minify: true,
    // Node prints the line of an error that nothing catches.
    lineLimit: 200,
    legalComments: "none",
    define: { "import.meta.url": MODULE_URL },
    banner: source.includes("import.meta.url")
      ? `const ${MODULE_URL}=require("node:url").pathToFileURL(__filename).href;`
      : "",
  });
  writeFileSync(file.replace(/\.js$/, ".cjs"), code.replace(EAGER, 'require("$1.cjs")'));
  rmSync(file);
}

/** Writes the ES module that has the exports of the CommonJS module beside it. */
export function writeModule(file, names) {
  writeFileSync(file, `export{${names.join(",")}}from"./index.cjs";\n`);
}
