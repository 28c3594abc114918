// Checks that package-lock.json has only packages of the configured registry, each with a checksum and none with an address,
// and that no package of users runs an install script. `npm run check:lock -- <lock file>` checks another lock file.
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** Development tools that may run install scripts. */
const MAY_RUN_SCRIPTS = new Set(
  ["esbuild", "fsevents", "msw", "node", "@modelcontextprotocol/inspector"].map((name) => `node_modules/${name}`),
);
const SCRIPTS = ["preinstall", "install", "postinstall"];
const EXACT = /^\d+\.\d+\.\d+(?:-[\w.-]+)?$/;

const lockPath = resolve(process.argv[2] ?? join(root, "package-lock.json"));
const folder = dirname(lockPath);
const lock = JSON.parse(readFileSync(lockPath, "utf8"));
const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
const { "": own, ...packages } = lock.packages ?? {};

const problems = [
  ...checkOwn(),
  ...Object.entries(packages).flatMap(([path, entry]) => [...checkPackage(path, entry)]),
];
for (const problem of problems) console.error(`package-lock.json: ${problem}`);
if (problems.length > 0) process.exitCode = 1;
else console.log(`${Object.keys(packages).length} packages, each with a checksum`);

function* checkOwn() {
  if (lock.lockfileVersion !== 3) yield `it is of version ${lock.lockfileVersion}, not 3`;
  for (const kind of ["dependencies", "optionalDependencies", "devDependencies"]) {
    if (JSON.stringify(own?.[kind]) !== JSON.stringify(manifest[kind])) yield `its ${kind} differ from package.json`;
  }
  for (const [name, version] of Object.entries(manifest.optionalDependencies ?? {})) {
    if (!EXACT.test(version)) yield `the optional package ${name} is not pinned to one version: ${version}`;
  }
  for (const name of SCRIPTS) {
    if (manifest.scripts?.[name] !== undefined)
      yield `package.json has a script ${name}, which would run on every user's machine`;
  }
}

function* checkPackage(path, entry) {
  if (entry.link) yield `${path} is a link to a folder`;
  // Without an address npm takes the package of this name from the registry that is configured.
  if (entry.resolved !== undefined) yield `${path} names where it comes from: ${entry.resolved}`;
  if (!EXACT.test(entry.version ?? "")) yield `${path} has no exact version`;
  if (entry.integrity === undefined) yield `${path} has no integrity`;
  else if (!/^sha512-[\w+/]{86}==$/.test(entry.integrity)) yield `${path} has an integrity that is not SHA-512`;
  const scripts = scriptsOf(path, entry);
  if (scripts.length > 0 && !(entry.dev && MAY_RUN_SCRIPTS.has(path)))
    yield `${path} runs a script: ${scripts.join(", ")}`;
}

/** Install scripts according to the lock file and to the installed package. */
function scriptsOf(path, entry) {
  const said = entry.hasInstallScript ? ["(install script)"] : [];
  try {
    const { scripts } = JSON.parse(readFileSync(join(folder, path, "package.json"), "utf8"));
    return [...said, ...SCRIPTS.filter((name) => scripts?.[name] !== undefined)];
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
    return said;
  }
}
