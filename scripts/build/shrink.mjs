// Packages and sources are most of the installation, and a start reads all of the chunk that it needs.
import { readFileSync, writeFileSync } from "node:fs";
import { transform } from "esbuild";

/**
 * Shortens the identifiers of a chunk. The build has written down each function's name (`keepNames`), so that stack traces
 * and code that reads names find the same ones.
 */
export async function shrinkChunk(file, target) {
  const options = { format: "esm", target, minify: true, legalComments: "none" };
  await replace(file, options);
}

/** Removes the comments of a module of the library: the declarations beside it have those of its exports. */
export async function removeComments(file) {
  await replace(file, { format: "esm", target: "esnext", legalComments: "none" });
}

async function replace(file, options) {
  const { code } = await transform(readFileSync(file, "utf8"), options);
  writeFileSync(file, code);
}
