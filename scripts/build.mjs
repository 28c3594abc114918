// Builds dist/: the library file by file with tsc (readable stack traces, one declaration a module), and the
// CLI as a split bundle that carries its own dependencies, so that starting it reads a few files, not hundreds.
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const external = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies });

rmSync(join(root, "dist"), { recursive: true, force: true });

const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
const compiled = spawnSync(process.execPath, [tsc, "-p", join(root, "tsconfig.build.json")], { stdio: "inherit" });
if (compiled.status !== 0) process.exit(compiled.status ?? 1);

const result = await build({
  absWorkingDir: root,
  entryPoints: { main: "src/cli/main.ts" },
  outdir: "dist/cli",
  chunkNames: "chunks/[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node20.19",
  external,
  // CommonJS dependencies inside the bundle ask for Node's own modules by require().
  banner: { js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);' },
  minifySyntax: true,
  minifyWhitespace: true,
  keepNames: true,
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
});

writeNotices(Object.keys(result.metafile.inputs));

/** The licences of the packages that the bundle carries must travel with it. */
function writeNotices(inputs) {
  const folders = new Set();
  for (const input of inputs) {
    const match = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (match) folders.add(match[1]);
  }
  const notices = [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
    const file = ["LICENSE", "license", "LICENSE.md", "LICENSE.txt", "LICENCE", "License"]
      .map((candidate) => join(root, folder, candidate))
      .find((candidate) => {
        try {
          return readFileSync(candidate).length > 0;
        } catch {
          return false;
        }
      });
    return `${name} ${version} (${license})\n\n${file ? readFileSync(file, "utf8").trim() : "No licence file in the package."}\n`;
  });
  writeFileSync(join(root, "dist/cli/THIRD-PARTY-NOTICES.txt"), notices.join(`\n${"-".repeat(72)}\n\n`));
}
