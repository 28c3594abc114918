import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { rollup } from "rollup";
import { dts } from "rollup-plugin-dts";

/**
 * Writes the declarations that the entry points reach: one file for each entry, and a few that several share.
 *
 * @param {string} root the folder of the project
 * @param {string} made the folder of the build
 * @param {readonly string[]} entries the entry points, relative to `src` and without an extension
 */
export async function writeDeclarations(root, made, entries) {
  const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
  const each = join(made, "declarations");
  const args = [tsc, "-p", join(root, "scripts/build/tsconfig.json"), "--emitDeclarationOnly", "--outDir", each];
  if (spawnSync(process.execPath, args, { stdio: "inherit" }).status !== 0) throw new Error("tsc failed");
  // `declare module` extends an interface of remedy.ts, which only a file of its own lets it name.
  const input = Object.fromEntries(["remedy", ...entries].map((name) => [name, join(each, `${name}.d.ts`)]));
  const bundle = await rollup({ input, plugins: [dts({ respectExternal: true })], external: /^[^./]/, onLog: refuse });
  await bundle.write({ dir: made, entryFileNames: "[name].d.ts", chunkFileNames: "chunks/[name].ts" });
  await bundle.close();
  rmSync(each, { recursive: true });
}

/** An unresolved import or name is an error; that a shared type is not exported by name is not. */
function refuse(level, { message }) {
  if (level === "warn" && !message.includes("private shared type exports")) throw new Error(message);
}
