// Some packages make objects at load that few runs need: a pattern of all emoji, a segmenter, each of them 10 ms or more.
import { readFile } from "node:fs/promises";

const LAZY = {
  "commander/lib/command.js": ["childProcess"],
  "string-width/index.js": ["segmenter", "rgiEmojiRegex"],
};

/**
 * The esbuild plugin that makes named constants of packages on their first use.
 *
 * @param lazy the names of the constants, by the file's path below node_modules; each is one line at the top of its module
 * @throws {Error} where a file has no such line
 */
export function lazyConstants(lazy = LAZY) {
  return {
    name: "lazy-constants",
    setup(build) {
      build.onLoad({ filter: /[\\/]node_modules[\\/].*\.js$/ }, async ({ path }) => {
        // Older versions are below the packages that need them.
        const file = Object.keys(lazy).find(
          (name) =>
            !/node_modules.*node_modules/.test(path) && path.replaceAll("\\", "/").endsWith(`/node_modules/${name}`),
        );
        if (file === undefined) return undefined;
        const source = await readFile(path, "utf8");
        return { contents: lazy[file].reduce((text, name) => deferred(text, name, file), source), loader: "js" };
      });
    },
  };
}

/** The source with a function in place of a constant, and a call in place of each use. */
function deferred(source, name, file) {
  const declaration = new RegExp(`^const ${name} = (.+);$`, "m");
  const value = declaration.exec(source)?.[1];
  if (value === undefined) throw new Error(`${file} has no constant ${name}: change scripts/build/lazy-constants.mjs`);
  const uses = source.replace(declaration, "").replaceAll(new RegExp(`\\b${name}\\b`, "g"), `${name}()`);
  return `${uses}\nlet ${name}Made;\nfunction ${name}() {\n\treturn (${name}Made ??= ${value});\n}\n`;
}
