import { spawnSync } from "node:child_process";
import { lstatSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { atMost, goalText } from "../lib/claims.mjs";

export const title = "Size of an installation";
export const shows =
  "The tarball, and what `npm install --omit=optional` of it puts into an empty folder: the blocks of all files, dependencies " +
  "included. It does not show the optional packages for keychains and jq.";

/** The unit of `blocks` (stat(2)). */
const BLOCK = 512;

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

export function measure() {
  const folder = mkdtempSync(join(tmpdir(), "agentauth-bench-"));
  try {
    const packed = npm(["pack", "--ignore-scripts", "--json", "--pack-destination", folder], ROOT);
    const [{ filename, size }] = JSON.parse(packed);
    const empty = join(folder, "empty");
    writeFileSync(join(folder, "package.json"), "{}");
    npm(
      ["install", "--omit=optional", "--ignore-scripts", "--no-audit", "--prefix", empty, join(folder, filename)],
      folder,
    );
    const claims = [
      atMost("the tarball", "–", size / 1e6, 2.5, { unit: "MB" }),
      atMost("an installation without optional packages", "–", bytesOf(empty) / 1e6, 10, { unit: "MB" }),
    ];
    const rows = claims.map((claim) => [claim.what, `${claim.value.toFixed(2)} MB`, goalText(claim)]);
    return [{ caption: "npm", header: ["what", "size", "goal"], rows, claims }];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function npm(args, cwd) {
  const { status, stdout, stderr } = spawnSync("npm", args, { cwd, encoding: "utf8" });
  if (status !== 0) throw new Error(`npm ${args[0]} failed:\n${stderr}`);
  return stdout;
}

/** What the files and folders occupy. */
function bytesOf(folder) {
  const paths = readdirSync(folder, { recursive: true }).map((name) => join(folder, name));
  return paths.reduce((sum, path) => sum + lstatSync(path).blocks * BLOCK, 0);
}
