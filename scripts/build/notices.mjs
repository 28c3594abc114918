// The licences of the bundled packages, which must be distributed with them.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * The notices of packages: each text of a licence once, below the packages that it covers.
 *
 * @param {readonly { folder: string, name: string, version: string, license: string }[]} packages
 */
export function notices(packages) {
  const titles = new Map();
  for (const { folder, name, version, license } of packages) {
    const texts = licenceFiles(folder).map((file) => readFileSync(file, "utf8").trim().replace(/\r\n?/g, "\n"));
    // Some packages state their licence only in the manifest.
    const text = texts.join("\n\n") || "(no licence file in the package)";
    titles.set(text, [...(titles.get(text) ?? []), `${name} ${version} (${license})`]);
  }
  return [...titles].map(([text, names]) => `${names.join("\n")}\n\n${text}\n`).join(`\n${"-".repeat(72)}\n\n`);
}

/** The licence of a package, the notice that Apache 2.0 requires, and the licences of code that the package includes. */
function licenceFiles(folder) {
  const names = readdirSync(folder).sort();
  const own = [/^licen[cs]e\b/i, /^notice\b/i].flatMap((kind) => names.find((name) => kind.test(name)) ?? []);
  const inner = names.includes("licenses")
    ? readdirSync(join(folder, "licenses")).map((name) => `licenses/${name}`)
    : [];
  return [...own, ...inner].map((name) => join(folder, name));
}
