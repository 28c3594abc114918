import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { build, type Plugin } from "esbuild";
import { expect, it } from "vitest";
import { temporaryFolder } from "./helpers/folder.js";

const SCRIPT = "../scripts/build/unused-parts.mjs";
type Unused = Record<string, Record<string, readonly string[]>>;
const { unusedParts } = (await import(SCRIPT)) as {
  unusedParts: (unused: Unused) => { plugin: Plugin; check: () => void };
};

const FILES = {
  "main.js":
    'export * as user from "user"; export * as other from "other"; export { default as types } from "mime-db/db.json";',
  "node_modules/user/index.js":
    'import { f } from "semver"; export const call = () => f(); export const made = "made";',
  "node_modules/other/index.js": 'export { f } from "semver";',
  "node_modules/semver/index.js": 'export const f = () => "compared";',
  "node_modules/mime-db/db.json": '{ "application/json": {}, "text/html": {}, "video/mp4": {} }',
};

/** Bundles the files and imports the result. */
async function bundled(unused: Unused) {
  const folder = temporaryFolder();
  for (const [path, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const { plugin, check } = unusedParts(unused);
  const { outputFiles } = await build({
    absWorkingDir: folder,
    entryPoints: ["main.js"],
    bundle: true,
    write: false,
    format: "esm",
    logLevel: "silent",
    plugins: [plugin],
  });
  check();
  return import(`data:text/javascript,${encodeURIComponent(outputFiles[0]?.text ?? "")}`);
}

it("leaves out what one package imports and does not call", async () => {
  const { user, other } = await bundled({ user: { semver: ["f"] } });
  expect(user.made).toBe("made");
  expect(user.call).toThrow("the bundle has no semver for user");
  expect(other.f()).toBe("compared");
});

it("keeps the media types that a service of OAuth answers with", async () => {
  expect(Object.keys((await bundled({})).types)).toEqual(["application/json", "text/html"]);
});

it("fails for a part that the package no longer imports", async () => {
  await expect(bundled({ user: { "semver/gone": ["f"] } })).rejects.toThrow("no longer imported: user: semver/gone");
});
