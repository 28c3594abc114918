// What is inside dist/ and was written by others: the licences that must be distributed with it, and a bill of materials
// for the tools that look for packages with known vulnerabilities.
import { createHash } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { notices } from "./notices.mjs";

/**
 * Writes THIRD-PARTY-NOTICES.txt and sbom.cdx.json (CycloneDX 1.6).
 *
 * @param {string} root the folder of the project
 * @param {string} made the folder of the build
 * @param {readonly object[]} metafiles of the bundles
 */
export function describeBundledPackages(root, made, metafiles) {
  const paths = metafiles.flatMap(({ outputs }) => Object.values(outputs).flatMap(({ inputs }) => Object.keys(inputs)));
  const folders = new Set(paths.flatMap((path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []));
  checkUnedited(root, metafiles);
  const packages = [...folders].sort().map((folder) => readManifest(join(root, folder)));
  writeFileSync(join(made, "THIRD-PARTY-NOTICES.txt"), notices(packages));
  const licenses = new Map(packages.map(({ name, version, license }) => [purlOf(name, version), license]));
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const bill = billOfMaterials(lock, readManifest(root), [...folders], licenses);
  writeFileSync(join(made, "sbom.cdx.json"), `${JSON.stringify(bill, null, 1)}\n`);
}

/**
 * The bill of materials: what is bundled, and what npm installs with it, each with the checksum of its archive and what it
 * needs. The same content has the same serial number.
 *
 * @param {{ packages: Record<string, object> }} lock
 * @param {{ name: string, version: string, license: string }} own
 * @param {readonly string[]} bundled their folders
 * @param {ReadonlyMap<string, string>} licenses of bundled packages
 */
export function billOfMaterials(lock, own, bundled, licenses) {
  const { "": root, ...locked } = lock.packages;
  const installed = closureOf(locked, "", { ...root.dependencies, ...root.optionalDependencies });
  const paths = [...new Set([...bundled, ...installed])].sort();
  const components = new Map();
  const needs = new Map();
  for (const path of paths) {
    const { version, integrity, license, optional } = locked[path];
    const name = nameOf(path);
    const purl = purlOf(name, version);
    const scope = optional && !bundled.includes(path) ? "optional" : "required";
    const [algorithm, digest] = integrity.split("-");
    const content = Buffer.from(digest, "base64").toString("hex");
    const hashes = [{ alg: algorithm.replace("sha", "SHA-"), content }];
    components.set(purl, { ...componentOf({ name, version, license: licenses.get(purl) ?? license }), scope, hashes });
    const found = neededBy(locked, path, locked[path]).filter((other) => paths.includes(other));
    needs.set(purl, new Set([...(needs.get(purl) ?? []), ...found.map((other) => refOf(locked, other))]));
  }
  const declared = neededBy(locked, "", { ...root, dependencies: { ...root.dependencies, ...root.devDependencies } });
  const direct = new Set(declared.map((path) => refOf(locked, path)));
  const component = componentOf(own);
  const content = {
    metadata: { component },
    components: [...components.values()].sort((a, b) => (a.purl < b.purl ? -1 : 1)),
    dependencies: [
      { ref: component.purl, dependsOn: [...components.keys()].filter((ref) => direct.has(ref)).sort() },
      ...[...needs].sort(([a], [b]) => (a < b ? -1 : 1)).map(([ref, refs]) => ({ ref, dependsOn: [...refs].sort() })),
    ],
  };
  const hash = createHash("sha256").update(JSON.stringify(content)).digest("hex");
  // A UUID of one's own making (RFC 9562 section 5.8).
  const serial = `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
  return { bomFormat: "CycloneDX", specVersion: "1.6", serialNumber: `urn:uuid:${serial}`, version: 1, ...content };
}

/** The folders of packages, and of all that they need. */
function closureOf(locked, from, names) {
  const found = new Set();
  const add = (path) => {
    if (found.has(path)) return;
    found.add(path);
    neededBy(locked, path, locked[path]).forEach(add);
  };
  neededBy(locked, from, { dependencies: names }).forEach(add);
  return found;
}

/** The folders in which Node finds what a package needs; one for another system may be missing. */
function neededBy(locked, path, { dependencies, optionalDependencies }) {
  return Object.keys({ ...dependencies, ...optionalDependencies }).flatMap((name) => {
    for (let folder = path; ; folder = folder.replace(/(?:^|\/)node_modules\/(?:@[^/]+\/)?[^/]+$/, "")) {
      const place = `${folder === "" ? "" : `${folder}/`}node_modules/${name}`;
      if (locked[place] !== undefined) return [place];
      if (folder === "") return [];
    }
  });
}

function nameOf(path) {
  return path.replace(/^.*node_modules\//, "");
}

function refOf(locked, path) {
  return purlOf(nameOf(path), locked[path].version);
}

function purlOf(name, version) {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

/** What was bundled of a package must be its file as it is installed: a plugin that edits one would show here. */
function checkUnedited(root, metafiles) {
  const inputs = metafiles.flatMap((metafile) => Object.entries(metafile.inputs));
  const edited = inputs.filter(
    ([path, { bytes }]) => !path.startsWith("src/") && statSync(join(root, path)).size !== bytes,
  );
  if (edited.length > 0) throw new Error(`not as published: ${edited.map(([path]) => path).join(", ")}`);
}

function readManifest(folder) {
  return { ...JSON.parse(readFileSync(join(folder, "package.json"), "utf8")), folder };
}

function componentOf({ name, version, license }) {
  const [own, group] = name.split("/").reverse();
  const purl = purlOf(name, version);
  const licenses = typeof license === "string" ? [{ expression: license }] : undefined;
  return { type: "library", "bom-ref": purl, group, name: own, version, licenses, purl };
}
