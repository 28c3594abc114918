// What is inside dist/ and was written by others: the licences that must be distributed with it, and a bill of materials
// for the tools that look for packages with known vulnerabilities.
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
  const components = new Map(packages.map(componentOf).map((component) => [component.purl, component]));
  const bill = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: componentOf(readManifest(root)) },
    components: [...components.values()],
  };
  writeFileSync(join(made, "sbom.cdx.json"), `${JSON.stringify(bill, null, 1)}\n`);
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
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  const licenses = typeof license === "string" ? [{ expression: license }] : undefined;
  return { type: "library", "bom-ref": purl, group, name: own, version, licenses, purl };
}
