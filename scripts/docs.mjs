// Builds the documentation site into docs/.vitepress/dist: the pages of docs/, those that are output of programs, the files
// that they link to, and the API pages of typedoc. Installs the generators into docs/.vitepress where they are missing; its
// package.json holds rollup at the last version that has binaries for all machines. With --dev it serves docs/ and follows
// their changes; with --pictures it draws docs/images; with --api it writes docs/api, and with --check it only finds out what
// typedoc misses.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { installPackages } from "../lab/install.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const docs = join(root, "docs");
const site = join(docs, ".vitepress");
const vitepress = join(site, "node_modules/vitepress/bin/vitepress.js");
const typedoc = join(site, "node_modules/typedoc/bin/typedoc");

if (!installPackages(site)) process.exit(1);
const [mode, ...rest] = process.argv.slice(2);
if (mode === "--pictures") run(process.execPath, [join(site, "pictures/pictures.mjs"), ...rest]);
else if (mode === "--api") run(process.execPath, [typedoc]);
else if (mode === "--check") run(process.execPath, [typedoc, "--emit", "none"]);
else {
  run(process.execPath, ["--import", "tsx", "--conditions=agentauth-source", join(root, "scripts/site-pages.mjs")]);
  if (mode === "--dev") run(process.execPath, [vitepress, "dev", docs]);
  else await build();
}

async function build() {
  run(process.execPath, [vitepress, "build", docs]);
  const { copyLinkedFiles } = await import("../docs/.vitepress/file-links.mjs");
  const pages = readdirSync(docs).filter((name) => name.endsWith(".md"));
  const dist = join(site, "dist");
  copyLinkedFiles(
    pages.map((name) => join(docs, name)),
    dist,
  );
  run(process.execPath, [typedoc, "--out", join(dist, "api"), "--favicon", join(docs, "public/favicon.svg")]);
}

function run(command, args) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: "inherit", shell: process.platform === "win32" });
  if (status !== 0) process.exit(status ?? 1);
}
