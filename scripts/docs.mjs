// Builds the documentation site into site/dist: the pages of docs/, the files that they link to, and the API pages of
// typedoc. Installs the generator into site/ the first time; its package.json holds rollup at the last version that has
// binaries for all machines. With --dev it serves docs/ and follows their changes; with --pictures it draws docs/images.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const site = join(root, "site");
const vitepress = join(site, "node_modules/vitepress/bin/vitepress.js");

if (!existsSync(vitepress)) run("npm", ["ci", "--prefix", site]);
const [mode, ...rest] = process.argv.slice(2);
if (mode === "--pictures") run(process.execPath, [join(site, "pictures/pictures.mjs"), ...rest]);
else if (mode === "--dev") run(process.execPath, [vitepress, "dev", site]);
else await build();

async function build() {
  run(process.execPath, [vitepress, "build", site]);
  const { copyLinkedFiles } = await import("../site/.vitepress/file-links.mjs");
  const pages = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
  const dist = join(site, "dist");
  copyLinkedFiles(
    pages.map((name) => join(root, "docs", name)),
    dist,
  );
  const typedoc = join(root, "node_modules/typedoc/bin/typedoc");
  run(process.execPath, [typedoc, "--out", join(dist, "api"), "--favicon", join(root, "docs/public/favicon.svg")]);
}

function run(command, args) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: "inherit", shell: process.platform === "win32" });
  if (status !== 0) process.exit(status ?? 1);
}
