import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "./helpers/folder.js";

const SCRIPT = fileURLToPath(new URL("../scripts/check-lock.mjs", import.meta.url));
const INTEGRITY = `sha512-${"A".repeat(86)}==`;
const GOOD = { version: "1.2.3", integrity: INTEGRITY };

/** What the check says of a lock file in which one package, or the manifest, is like this. */
function check(entry: object, { path = "node_modules/thing", manifest = {}, installed }: Changes = {}) {
  const folder = temporaryFolder();
  const dependencies = { thing: "^1.0.0" };
  const lock = {
    lockfileVersion: 3,
    packages: { "": { dependencies, ...("optionalDependencies" in manifest && manifest) }, [path]: entry },
  };
  writeFileSync(join(folder, "package.json"), JSON.stringify({ dependencies, ...manifest }));
  writeFileSync(join(folder, "package-lock.json"), JSON.stringify(lock));
  if (installed !== undefined) {
    const file = join(folder, path, "package.json");
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, JSON.stringify(installed));
  }
  const { status, stderr } = spawnSync(process.execPath, [SCRIPT, join(folder, "package-lock.json")], {
    encoding: "utf8",
  });
  return { status, stderr };
}

interface Changes {
  path?: string;
  manifest?: object;
  installed?: object;
}

describe("the check of the lock file", () => {
  it("takes the one that there is", () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT], { encoding: "utf8" });
    expect([status, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^\d+ packages, each with a checksum\n$/);
  });

  it("takes a package with its checksum", () => {
    expect(check(GOOD)).toEqual({ status: 0, stderr: "" });
  });

  it.each<[string, object, Changes, RegExp]>([
    ["no checksum", { version: "1.2.3" }, {}, /thing has no integrity/],
    ["a weak checksum", { ...GOOD, integrity: "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=" }, {}, /is not SHA-512/],
    [
      "no checksum, though for another machine",
      { version: "1.2.3", dev: true, optional: true, os: ["win32"] },
      { path: "node_modules/@biomejs/cli-win32-arm64" },
      /has no integrity/,
    ],
    [
      "the address of a registry",
      { ...GOOD, resolved: "https://registry.example/thing/-/thing-1.2.3.tgz" },
      {},
      /names where it comes from: https/,
    ],
    ["a repository", { ...GOOD, resolved: "git+ssh://git@github.com/x/y.git#abc" }, {}, /comes from: git/],
    ["a link", { ...GOOD, link: true }, {}, /is a link/],
    ["a script", { ...GOOD, hasInstallScript: true }, {}, /runs a script/],
    [
      "a script that the lock file does not have",
      GOOD,
      { installed: { scripts: { postinstall: "x" } } },
      /runs a script: postinstall/,
    ],
    [
      "a script of our own",
      GOOD,
      { manifest: { scripts: { postinstall: "x" } } },
      /package\.json has a script postinstall/,
    ],
    [
      "an optional package without a pin",
      GOOD,
      { manifest: { optionalDependencies: { x: "^1.0.0" } } },
      /x is not pinned/,
    ],
    [
      "another manifest",
      GOOD,
      { manifest: { devDependencies: { x: "1.0.0" } } },
      /devDependencies differ from package\.json/,
    ],
  ])("refuses %s", (_what, entry, changes, message) => {
    const { status, stderr } = check(entry, changes);
    expect([status, stderr]).toEqual([1, expect.stringMatching(message)]);
  });
});
