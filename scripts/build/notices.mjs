// The licences of the bundled packages, which must be distributed with them.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A line that names a holder; only at the start of a text, since licences mention copyright in their terms too. */
const COPYRIGHT = /^\W*(?:copyright\b|\(c\)|©)/i;
const HEAD_LINES = 8;

/**
 * The notices of packages: each text once, below the packages that it covers, with the copyright lines of each.
 *
 * @param {readonly string[]} folders the packages
 */
export function notices(folders) {
  const groups = new Map();
  for (const folder of [...folders].sort()) {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const files = licenceFiles(folder).map((file) => readFileSync(file, "utf8").trim());
    // Some packages state their licence only in the manifest.
    const text = files.length > 0 ? files.join("\n\n") : "(no licence file in the package)";
    const { copyright, terms } = readLicence(text);
    // Copies of one licence differ in where their lines end.
    const key = `${license} ${terms.replace(/\s+/g, " ")}`;
    const group = groups.get(key) ?? [];
    groups.set(key, [...group, { title: `${name} ${version} (${license})`, copyright, terms, text }]);
  }
  return [...groups.values()].map(notice).join(`\n${"-".repeat(72)}\n\n`);
}

function notice(packages) {
  const [{ title, terms, text }] = packages;
  if (packages.length === 1) return `${title}\n\n${text}\n`;
  const lines = packages.flatMap(({ title, copyright }) => [title, ...copyright.map((line) => `  ${line}`)]);
  return `${lines.join("\n")}\n\n${terms}\n`;
}

/** The copyright lines at the start of a licence, and the rest of it. */
function readLicence(text) {
  const lines = text.split(/\r?\n/);
  const isHolder = (line, index) => index < HEAD_LINES && COPYRIGHT.test(line);
  const terms = lines.filter((line, index) => !isHolder(line, index)).join("\n");
  return {
    copyright: lines.filter(isHolder).map((line) => line.trim()),
    terms: terms.replace(/\n{3,}/g, "\n\n").trim(),
  };
}

/** The licence of a package, the notice that Apache 2.0 requires, and the licences of code that the package includes. */
function licenceFiles(folder) {
  const names = readdirSync(folder).sort();
  const own = [/^licen[cs]e\b/i, /^notice\b/i].map((kind) => names.find((name) => kind.test(name)));
  const inner = names.includes("licenses")
    ? readdirSync(join(folder, "licenses")).map((name) => `licenses/${name}`)
    : [];
  return [...own, ...inner].filter((name) => name !== undefined).map((name) => join(folder, name));
}
