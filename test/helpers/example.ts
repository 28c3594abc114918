import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("../../", import.meta.url));

/**
 * Compiles an example for the oldest supported Node, which runs no TypeScript. Its packages are those that are installed,
 * ours is the built one.
 *
 * @returns the path of the program, in the repository: that is where it finds the packages
 */
export async function compileExample(name: string): Promise<string> {
  const outfile = `${root}coverage/examples/${process.pid}/${name.replace(/\.ts$/, ".mjs")}`;
  await build({
    entryPoints: [`${root}examples/${name}`],
    outfile,
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
    target: "node20.19",
    logLevel: "silent",
    // The paths of our tsconfig.json lead to the sources.
    tsconfigRaw: "{}",
  });
  return outfile;
}
