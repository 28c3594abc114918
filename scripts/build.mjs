// Builds dist/: declarations, the library (ES modules that share one graph), the packages that are bundled as published, and
// the command line (CommonJS, which Node loads faster).
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { describeBundledPackages } from "./build/bundled-packages.mjs";
import { writeDeclarations } from "./build/declarations.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, "dist");
const { exports, dependencies, optionalDependencies, peerDependencies } = JSON.parse(
  readFileSync(join(root, "package.json"), "utf8"),
);

// Built in a temporary folder and then renamed: a failed build leaves the last one in place, and no process reads half of one.
const made = join(root, "node_modules", `.agentauth-build-${process.pid}`);

const COMMON = {
  absWorkingDir: root,
  outdir: made,
  bundle: true,
  platform: "node",
  target: "node20.19",
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
  // Files that the library and the command line share.
  external: ["#packages/*"],
};

/** What packages print may hold control sequences of a server; `completion` reads what one prints with `log`. */
const SILENCE = join(root, "scripts/build/silence.mjs");
const SILENT = Object.fromEntries(
  ["debug", "dir", "error", "info", "trace", "warn"].map((method) => [`console.${method}`, "silence"]),
);

/** CommonJS of which a command reads all and runs little: as short as can be, but with the names in stack traces. */
const PROGRAM = {
  ...COMMON,
  format: "cjs",
  outExtension: { ".js": ".cjs" },
  minify: true,
  keepNames: true,
  lineLimit: 500,
  // Makes import() a require() that is called late.
  supported: { "dynamic-import": false },
  define: { "import.meta.url": "moduleUrl", ...SILENT },
  // The command line silences jq for the time of a run.
  logOverride: { "assign-to-define": "silent" },
  // Our classes of the Fetch Standard, for ours and for packages: to touch Node's own loads all of `fetch`, which takes a short
  // command longer than the rest of its start. No global is replaced.
  inject: [join(root, "src/cli/fetch-classes.ts"), SILENCE],
  banner: { js: 'const moduleUrl=require("node:url").pathToFileURL(__filename).href;' },
};

/** What commands leave out: lists use no login, and the commands for the settings send nothing. */
const LOGINS = ["cli/clients/agent", "cli/clients/store"];
const LEFT_OUT = { lists: LOGINS, settings: [...LOGINS, "cli/clients/management", "cli/clients/network"] };

mkdirSync(made);
try {
  const declared = Object.values(exports).flatMap(({ types }) => types?.replace("./dist/", "") ?? []);
  const entries = declared.map((path) => path.replace(".d.ts", ""));
  await writeDeclarations(root, made, entries);
  const bundles = ["lists", "tokens", "settings", "all"].map(buildCommandLine);
  const metafiles = await Promise.all([buildLibrary(entries), buildPackages(), ...bundles, buildFrequent()]);
  describeBundledPackages(root, made, metafiles);
  replace();
  writeHelp();
} finally {
  rmSync(made, { recursive: true, force: true });
}

async function buildLibrary(entries) {
  const { metafile } = await build({
    ...COMMON,
    // These get chunks of their own: a bundle of ManagementClient, or of AgentClient, leaves the other one out.
    entryPoints: {
      "chunks/management": "src/api/client.ts",
      "chunks/keep-alive": "src/oauth/keep-alive.ts",
      "chunks/login-handlers": "src/oauth/login-handlers.ts",
      ...Object.fromEntries(entries.map((name) => [name, `src/${name}.ts`])),
    },
    format: "esm",
    splitting: true,
    chunkNames: "chunks/[name]-[hash]",
    // Without source maps: a stack trace leads to readable code, and maps with the sources would triple what is downloaded.
    external: [...COMMON.external, ...Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })],
  });
  // esbuild keeps the order in which chunks load. These have no side effects: without the order a bundle of one class does
  // not load the chunks of another.
  for (const path of Object.keys(metafile.outputs).map((name) => join(root, name))) {
    const text = readFileSync(path, "utf8");
    writeFileSync(path, text.replace(/^import "\.[^"]+";\n/gm, ""));
  }
  return metafile;
}

/** One file for each package that is bundled: programs load it when they need it. */
async function buildPackages() {
  const names = readdirSync(join(root, "src/packages")).map((name) => name.replace(".ts", ""));
  const entryPoints = Object.fromEntries(names.map((name) => [`packages/${name}`, `src/packages/${name}.ts`]));
  // The main module of jsonc-parser loads its parts with a require() that no bundler sees.
  const alias = { "jsonc-parser": "jsonc-parser/lib/esm/main.js" };
  const { metafile } = await build({ ...PROGRAM, inject: [SILENCE], entryPoints, alias });
  return metafile;
}

/** The groups of commands: parsing code that a command never runs costs a start more than anything else. */
async function buildCommandLine(name) {
  const left = LEFT_OUT[name] ?? [];
  const { metafile } = await build({
    ...PROGRAM,
    entryPoints: { [`cli/${name}`]: `src/cli/groups/${name}.ts` },
    external: [...Object.keys(optionalDependencies), ...COMMON.external, ...left.map((path) => `./src/${path}.ts`)],
  });
  return metafile;
}

/** The most frequent commands are small files, which load the program only where they have to. */
async function buildFrequent() {
  const toProgram = { filter: /\/groups\/\w+\.js$|fast-path\/cached-\w+\.js$/ };
  const { metafile } = await build({
    ...PROGRAM,
    keepNames: false,
    entryPoints: ["src/cli/main.ts", "src/cli/fast-path/cached-token.ts", "src/cli/fast-path/cached-exec.ts"],
    outbase: "src",
    plugins: [
      {
        name: "to-program",
        setup: ({ onResolve }) =>
          onResolve(toProgram, ({ path }) => ({
            path: path.replace("groups/", "").replace(/js$/, "cjs"),
            external: true,
          })),
      },
    ],
  });
  return metafile;
}

/**
 * Writes the output of `agentauth --help` into files, for the width of a pipe and for the maximal width: a process that
 * prints a file starts faster.
 */
function writeHelp() {
  for (const columns of ["80", "100"]) {
    const env = { COLUMNS: columns, NODE_DISABLE_COMPILE_CACHE: "1" };
    const text = execFileSync(process.execPath, [join(root, "bin/agentauth.cjs"), "--help"], { env });
    writeFileSync(join(dist, "cli", `help-${columns}.txt`), text);
  }
}

function replace() {
  const old = `${made}-old`;
  if (existsSync(dist)) renameSync(dist, old);
  renameSync(made, dist);
  rmSync(old, { recursive: true, force: true });
}
