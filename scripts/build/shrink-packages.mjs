// Chunks of packages are most of the installation. Their local names are in no stack trace that says something about us.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { transform } from "esbuild";

/** The part of a chunk that has to come from packages. */
const SHARE = 0.9;

/**
 * Shortens the identifiers in the chunks that consist of packages. The build has written down each function's name
 * (`keepNames`), so that code that reads names finds the same ones.
 *
 * @param outputs of the metafile; `root` is the folder that its paths are relative to
 */
export async function shrinkPackages(outputs, { root, target }) {
  for (const [path, { inputs, bytes }] of Object.entries(outputs)) {
    const fromPackages = Object.entries(inputs).filter(([input]) => input.includes("node_modules/"));
    const size = fromPackages.reduce((sum, [, { bytesInOutput }]) => sum + bytesInOutput, 0);
    if (size < bytes * SHARE) continue;
    const file = join(root, path);
    const { code } = await transform(readFileSync(file, "utf8"), {
      format: "esm",
      target,
      minify: true,
      legalComments: "none",
    });
    writeFileSync(file, code);
  }
}
