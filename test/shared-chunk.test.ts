import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { build, type Plugin } from "esbuild";
import { expect, it } from "vitest";
import { temporaryFolder } from "./helpers/folder.js";

const SCRIPT = "../scripts/build/shared-chunk.mjs";
const { sharedChunk } = (await import(SCRIPT)) as {
  sharedChunk: (options: { folder: string; shared: string }) => Plugin;
};

const FILES = {
  "package.json": '{ "sideEffects": false }',
  "src/main.ts":
    'import { a } from "./a.js"; import { b } from "./b.js"; console.log(a, b); await import("./x.js"); await import("./y.js");',
  "src/a.ts": 'export const a = "a";',
  "src/b.ts": 'export const b = "b";',
  "src/x.ts": 'import { a } from "./a.js"; console.log("x", a);',
  "src/y.ts": 'import { b } from "./b.js"; console.log("y", b);',
};

/** Which chunks each module is in, without the plugin or with it. */
async function chunksOf(hasPlugin: boolean): Promise<Map<string, string>> {
  const folder = temporaryFolder();
  for (const [path, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const src = join(folder, "src");
  const { metafile } = await build({
    absWorkingDir: folder,
    entryPoints: ["src/main.ts"],
    outdir: join(folder, "out"),
    bundle: true,
    splitting: true,
    format: "esm",
    metafile: true,
    write: false,
    logLevel: "error",
    plugins: hasPlugin ? [sharedChunk({ folder: src, shared: join(src, "main.ts") })] : [],
  });
  return new Map(
    Object.entries(metafile.outputs).flatMap(([chunk, { inputs }]) => Object.keys(inputs).map((path) => [path, chunk])),
  );
}

it("keeps the shared modules in one chunk, and each lazily loaded module in its own", async () => {
  const apart = await chunksOf(false);
  expect(apart.get("src/a.ts")).not.toBe(apart.get("src/b.ts"));
  const together = await chunksOf(true);
  expect(together.get("src/a.ts")).toBe(together.get("src/b.ts"));
  const chunks = ["src/a.ts", "src/x.ts", "src/y.ts"].map((path) => together.get(path));
  expect(new Set(chunks).size).toBe(3);
});
