// The library that runs on web-standard interfaces: one module for each entry point, modules for what they share, and the
// packages in them. An installation is one package, and importing it reads few files. Names and lines stay readable, for
// stack traces.
import { build } from "esbuild";

/**
 * Bundles the entry points that need no Node.
 *
 * @param root the folder of the project
 * @param options `outdir`; `entryPoints` are sources by the name of what is built
 * @returns the metafile
 * @throws {Error} where the bundle imports a package, which would be missing in an installation
 */
export async function bundleLibrary(root, { outdir, entryPoints }) {
  const { metafile } = await build({
    absWorkingDir: root,
    outdir,
    entryPoints,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "neutral",
    mainFields: ["module", "main"],
    target: "es2023",
    chunkNames: "library/[name]-[hash]",
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
  });
  for (const [path, { imports }] of Object.entries(metafile.outputs)) {
    const missing = imports.find(({ external }) => external);
    if (missing !== undefined) throw new Error(`${path} imports ${missing.path}, which is not installed`);
  }
  return metafile;
}
