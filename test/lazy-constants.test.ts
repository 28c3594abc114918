import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { build, type Plugin } from "esbuild";
import { expect, it } from "vitest";
import { temporaryFolder } from "./helpers/folder.js";

const SCRIPT = "../scripts/build/lazy-constants.mjs";
const { lazyConstants } = (await import(SCRIPT)) as {
  lazyConstants: (lazy: Record<string, readonly string[]>) => Plugin;
};

/** Bundles a package with one constant and imports what it exports. */
async function bundled(lazy: Record<string, readonly string[]>): Promise<{ made: string[]; use: () => string }> {
  const folder = temporaryFolder();
  const path = join(folder, "node_modules/costly/index.js");
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(
    path,
    "export const made = [];\nconst costly = String(made.push('costly'));\nexport const use = () => costly;\n",
  );
  const { outputFiles } = await build({
    entryPoints: [path],
    bundle: true,
    write: false,
    format: "esm",
    logLevel: "silent",
    plugins: [lazyConstants(lazy)],
  });
  return import(`data:text/javascript,${encodeURIComponent(outputFiles[0]?.text ?? "")}`);
}

it("makes a named constant on its first use, once", async () => {
  const { made, use } = await bundled({ "costly/index.js": ["costly"] });
  expect(made).toEqual([]);
  expect([use(), use()]).toEqual(["1", "1"]);
  expect(made).toEqual(["costly"]);
});

it("leaves other packages as they are", async () => {
  expect((await bundled({})).made).toEqual(["costly"]);
});

it("fails for a constant that the package has no more", async () => {
  await expect(bundled({ "costly/index.js": ["gone"] })).rejects.toThrow("costly/index.js has no constant gone");
});
