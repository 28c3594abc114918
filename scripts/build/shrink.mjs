// Sources are most of the installation.
import { readFileSync, writeFileSync } from "node:fs";
import { transform } from "esbuild";

/** Removes the comments of a module of the library: the declarations beside it have those of its exports. */
export async function removeComments(file) {
  const { code } = await transform(readFileSync(file, "utf8"), {
    format: "esm",
    target: "esnext",
    legalComments: "none",
  });
  writeFileSync(file, code);
}
