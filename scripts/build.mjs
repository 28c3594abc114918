// Builds dist/: the library, its declarations, and the CLI, the sandbox and the Node parts, as split bundles that include
// their dependencies: few files to read, one package to install.
// With --check it changes nothing and fails if dist/ differs from what the sources build.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { PassThrough, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { planChunks } from "./build/chunk-plan.mjs";
import { toCommonJs, writeModule } from "./build/common-js.mjs";
import { addPackageTypes, reduceDeclarations } from "./build/declarations.mjs";
import { fetchClasses } from "./build/fetch-classes.mjs";
import { jsonSchemaValidator } from "./build/json-schema-validator.mjs";
import { isLazyBuiltin, lazyBuiltins } from "./build/lazy-builtins.mjs";
import { lazyConstants } from "./build/lazy-constants.mjs";
import { bundleLibrary } from "./build/library.mjs";
import { notices } from "./build/notices.mjs";
import { sharedChunk } from "./build/shared-chunk.mjs";
import { silentConsole } from "./build/silent-console.mjs";
import { unusedParts } from "./build/unused-parts.mjs";
import { worldMap } from "./build/world-map.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, "dist");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

// Built in a temporary folder and then renamed: a failed build leaves the last one in place, and no process reads half of one.
const made = join(root, "node_modules", `.agentauth-build-${process.pid}`);

/** Whether a module can be part of a command that starts and ends. */
const isStarted = (path) =>
  path.startsWith(join(root, "src/")) && !/^(?:sandbox|testing)\b/.test(relative(join(root, "src"), path));

/** The entry points that need Node. */
const NODE_ENTRIES = { "node/index": "src/node/index.ts", "sandbox/index": "src/sandbox/index.ts" };

const BUNDLE = {
  absWorkingDir: root,
  outdir: made,
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20.19",
  minifySyntax: true,
  minifyWhitespace: true,
  keepNames: true,
  // Its main module loads its parts with a require() that no bundler sees.
  alias: { "jsonc-parser": "jsonc-parser/lib/esm/main.js" },
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
};

mkdirSync(made);
try {
  const inLibrary = await compileLibrary();
  const { inputs } = await bundle();
  await writeHelp();
  writeNotices([...inLibrary, ...Object.keys(inputs)]);
  if (process.argv.includes("--check")) compare();
  else replace();
} finally {
  rmSync(made, { recursive: true, force: true });
}

/** Writes the declarations, and the modules that run on web-standard interfaces; returns the files that are in them. */
async function compileLibrary() {
  const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
  const args = [tsc, "-p", join(root, "tsconfig.build.json"), "--emitDeclarationOnly", "--outDir", made];
  if (spawnSync(process.execPath, args, { stdio: "inherit" }).status !== 0) throw new Error("tsc failed");
  const types = Object.values(manifest.exports).flatMap((entry) => entry.types ?? []);
  const entries = types.map((path) => path.replace("./dist/", ""));
  const copied = addPackageTypes(made, root);
  reduceDeclarations(made, entries);
  const names = entries.map((path) => path.replace(".d.ts", "")).filter((name) => !(name in NODE_ENTRIES));
  const entryPoints = Object.fromEntries(names.map((name) => [name, `src/${name}.ts`]));
  const { inputs } = await bundleLibrary(root, { outdir: made, entryPoints });
  return [...copied.map((path) => relative(root, path)), ...Object.keys(inputs)];
}

async function bundle() {
  const entryPoints = { "cli/execute": "src/cli/execute.ts", ...NODE_ENTRIES };
  const { plugin, check } = silentConsole();
  const unused = unusedParts();
  const validator = jsonSchemaValidator();
  const bundleWith = (plan, write) =>
    build({
      ...BUNDLE,
      write,
      plugins: [
        unused.plugin,
        validator.plugin,
        worldMap(),
        plugin,
        fetchClasses(root),
        lazyConstants(),
        lazyBuiltins(isStarted),
        sharedChunk({ folder: join(root, "src/cli"), shared: join(root, "src/cli/execute.ts"), plan }),
      ],
      // What the plan and the shared chunk add imports nothing by name.
      logOverride: { "ignored-bare-import": "silent" },
      entryPoints,
      chunkNames: "chunks/[name]-[hash]",
      splitting: true,
      external: Object.keys(manifest.optionalDependencies),
    });
  const { metafile: apart } = await bundleWith(new Map(), false);
  const plan = planChunks(apart, {
    folder: "src/cli/",
    shared: "src/cli/execute.ts",
    entries: Object.values(entryPoints),
  });
  const absolute = [...plan].map(([user, paths]) => [
    join(root, user),
    paths.map((path) => (isLazyBuiltin(path) ? path : join(root, path))),
  ]);
  const { metafile } = await bundleWith(new Map(absolute), true);
  check(metafile);
  unused.check();
  validator.check();
  await toCommonJs(metafile.outputs, { root, target: BUNDLE.target });
  for (const [path, { exports }] of Object.entries(metafile.outputs)) {
    if (/\/(?:node|sandbox)\/index\.js$/.test(path)) writeModule(join(root, path), exports);
  }
  // The most frequent commands are one file each, since each file that a process reads costs more than its content. They
  // import no package: one that is not bundled would be missing in an installation.
  const { metafile: frequent } = await build({
    ...BUNDLE,
    minify: true,
    entryPoints: { "cli/main": "src/cli/main.ts", "cli/fast-path/cached-token": "src/cli/fast-path/cached-token.ts" },
    // The table of formats imports its writers lazily, and these entries never print a format.
    external: ["./execute.js", "./fast-path/cached-token.js", "../execute.js"],
    // Not with `external`, which reads the path against the working folder too: one named "output" would match whole.
    plugins: [{ name: "writers", setup: ({ onResolve }) => onResolve({ filter: /^\.\.\/output\// }, externalPath) }],
    packages: "external",
  });
  await toCommonJs(frequent.outputs, { root, target: BUNDLE.target });
  return metafile;
}

function externalPath({ path }) {
  return { path, external: true };
}

/**
 * Writes the output of `agentauth --help` into files, for the width of a pipe and for the maximal width: a process that
 * prints a file starts faster.
 */
async function writeHelp() {
  const { runProgram } = createRequire(import.meta.url)(join(made, "cli/execute.cjs"));
  for (const columns of ["80", "100"]) {
    let text = "";
    const stdout = new Writable({
      write(chunk, _encoding, done) {
        text += chunk;
        done();
      },
    });
    const host = { stdin: new PassThrough(), stdout, stderr: process.stderr, env: { COLUMNS: columns } };
    const code = await runProgram(["--help"], { ...host, on() {}, off() {}, exit: (status) => process.exit(status) });
    if (code !== 0 || text === "") throw new Error(`--help ended with ${code}`);
    writeFileSync(join(made, "cli", `help-${columns}.txt`), text);
  }
}

/** Writes the licences of the bundled packages, which must be distributed with them. */
function writeNotices(inputs) {
  const folders = new Set();
  for (const input of inputs) {
    const match = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (match) folders.add(match[1]);
  }
  const absolute = [...folders].map((folder) => join(root, folder));
  writeFileSync(join(made, "THIRD-PARTY-NOTICES.txt"), notices(absolute));
}

function replace() {
  if (!existsSync(dist)) return renameSync(made, dist);
  const old = `${made}-old`;
  renameSync(dist, old);
  renameSync(made, dist);
  rmSync(old, { recursive: true, force: true });
}

function compare() {
  const wanted = filesOf(made);
  const present = existsSync(dist) ? filesOf(dist) : new Map();
  const names = [...new Set([...wanted.keys(), ...present.keys()])].sort();
  const stale = names.filter((name) => wanted.get(name) !== present.get(name));
  for (const name of stale) console.error(`dist/${name} differs from what the sources build`);
  if (stale.length === 0) return;
  console.error('run "npm run build"');
  process.exitCode = 1;
}

/** The content of each file below a folder. */
function filesOf(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    files.map(({ parentPath, name }) => {
      const path = join(parentPath, name);
      return [path.slice(folder.length + 1), readFileSync(path, "utf8")];
    }),
  );
}
