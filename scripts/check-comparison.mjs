// Checks what docs/comparison.md says about other programs against their packages: packs the version that each column names,
// looks for the code without which a feature cannot be there, and counts the packages that an installation has. It needs
// the npm registry, and is no part of CI: versions move, and it names those that have.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** The packages of the columns, from left to right; the first is ours. */
const PACKAGES = [undefined, "@modelcontextprotocol/client", "@modelcontextprotocol/sdk", "mcp-remote"];

/** For each row: what a cell says where the feature is there, and the code that is in every package which has it. */
const FEATURES = {
  "one login for several processes": { says: /^(yes|one login)/, code: /lock-?file|wait-for-auth/i },
  "a token for other programs (`curl`, scripts)": { says: /^yes/, code: /["']--(?!use-id)[a-z-]+-token["']/ },
  "login without a browser on the machine": { says: /device code/, code: /grant-type:device_code/ },
  "machine grants": { says: /client credentials/, code: /["']client_credentials["']/ },
  DPoP: { says: /^yes/, code: /dpop\+jwt/ },
  "a sandbox to test against": { says: /^yes/, code: /startSandbox|createSandbox|--sandbox/ },
};
const INSTALLED = "packages installed";
/** A cell that says that something is not there. */
const LACKS = /^(no\b|you write)/;
const CODE = /\.[cm]?js$/;

const [header, ...rows] = readFileSync(join(root, "docs", "comparison.md"), "utf8")
  .match(/^\|(?! *-|-).*$/gm)
  .map((line) =>
    line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  );
const columns = PACKAGES.map((name, at) => ({
  name,
  title: header[at + 1],
  version: /\d+\.\d+\.\d+/.exec(header[at + 1])?.[0],
}));
const cellsOf = new Map(rows.map(([title, ...cells]) => [title, cells]));

const folder = mkdtempSync(join(tmpdir(), "agentauth-comparison-"));
let problems = 0;
try {
  for (const row of [...Object.keys(FEATURES), INSTALLED]) if (!cellsOf.has(row)) report(`there is no row "${row}"`);
  for (const [title, cells] of cellsOf) {
    const unchecked = cells.slice(1).some((cell) => LACKS.test(cell)) && FEATURES[title] === undefined;
    if (unchecked) report(`nothing checks the row "${title}", in which something is said not to be there`);
  }
  for (const [at, column] of columns.entries()) checkColumn(column, at);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
if (problems === 0) console.log("docs/comparison.md says of each package what is in it");
process.exitCode = problems === 0 ? 0 : 1;

function checkColumn({ name, title, version }, at) {
  const archive = name === undefined ? npmPack(["--ignore-scripts"]) : npmPack([`${name}@${version}`]);
  if (name !== undefined) {
    const latest = npm(["view", name, "version"]).trim();
    if (latest !== version) console.log(`moved: ${name} is ${latest} by now, the table is about ${version}`);
    checkFeatures(title, at, codeOf(archive));
  }
  const counts = [countInstalled(archive, ["--omit=optional"]), countInstalled(archive, [])];
  const expected = counts[0] === counts[1] ? `${counts[0]}` : `${counts[0]}, or ${counts[1]} with the optional ones`;
  const said = cellsOf.get(INSTALLED)?.[at];
  if (said !== expected) report(`${title}, ${INSTALLED}: the table says "${said}", an installation has ${expected}`);
}

function checkFeatures(title, at, files) {
  for (const [row, { says, code }] of Object.entries(FEATURES)) {
    const cell = cellsOf.get(row)?.[at] ?? "";
    const found = files.find(({ text }) => code.test(text));
    const place = found ? `${code.exec(found.text)[0]} is in ${found.path}` : `${code} is in no file`;
    if (says.test(cell) !== (found !== undefined)) report(`${title}, ${row}: the table says "${cell}", but ${place}`);
    else console.log(`ok  ${title}, ${row}: "${cell}", ${place}`);
  }
}

function codeOf(archive) {
  const target = mkdtempSync(join(folder, "package-"));
  run("tar", ["-xzf", archive, "-C", target]);
  const paths = readdirSync(target, { recursive: true }).filter((path) => CODE.test(path));
  return paths.map((path) => ({ path, text: readFileSync(join(target, path), "utf8") }));
}

/** The packages in an installation, itself included. */
function countInstalled(archive, flags) {
  const target = mkdtempSync(join(folder, "installed-"));
  writeFileSync(join(target, "package.json"), "{}");
  npm(["install", "--ignore-scripts", "--no-audit", "--no-fund", ...flags, archive], target);
  const { packages } = JSON.parse(readFileSync(join(target, "node_modules", ".package-lock.json"), "utf8"));
  return Object.keys(packages).length;
}

function npmPack(args) {
  const [{ filename }] = JSON.parse(npm(["pack", "--json", "--pack-destination", folder, ...args]));
  return join(folder, filename);
}

function npm(args, cwd = root) {
  return run("npm", args, cwd);
}

function run(command, args, cwd = root) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} failed: ${error?.message ?? stderr}`);
  return stdout;
}

function report(problem) {
  problems += 1;
  console.error(`WRONG  ${problem}`);
}
