import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "./helpers/folder.js";

interface Lists {
  silenced?: string[];
  printing?: string[];
}

interface SilentConsole {
  plugin: import("esbuild").Plugin;
  check: (metafile: import("esbuild").Metafile) => void;
}

const SCRIPT = "../scripts/build/silent-console.mjs";
const { silentConsole } = (await import(SCRIPT)) as { silentConsole: (lists?: Lists) => SilentConsole };

const LOUD = 'exports.f = () => { console.warn("loud"); console.dir("loud"); };';
const FILES = {
  "main.js":
    'import { f } from "loud"; import { g } from "@scope/prints"; import "quiet"; f(); g(); console.log("own code");',
  "node_modules/loud/index.js": LOUD,
  "node_modules/@scope/prints/index.mjs": 'export const g = () => console.log("printed"); export const h = 1;',
  "node_modules/@scope/prints/package.json": '{ "module": "index.mjs", "exports": "./index.mjs" }',
  "node_modules/quiet/index.js": '// console.log() is for others\nexports.text = "the console"; "a" + 1;',
};

/** Bundles the files with these lists and returns what the bundle prints. */
async function printed(lists: Lists, files: Record<string, string> = FILES): Promise<string> {
  const folder = temporaryFolder();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const { plugin, check } = silentConsole(lists);
  const { metafile } = await build({
    absWorkingDir: folder,
    entryPoints: ["main.js"],
    outfile: join(folder, "out.mjs"),
    bundle: true,
    format: "esm",
    platform: "node",
    metafile: true,
    plugins: [plugin],
  });
  check(metafile);
  return execFileSync(process.execPath, [join(folder, "out.mjs")], { encoding: "utf8", stdio: "pipe" });
}

describe("the console of bundled packages", () => {
  it("writes nothing in the named packages, and is untouched in our own code and in packages that print", async () => {
    expect(await printed({ silenced: ["loud"], printing: ["@scope/prints"] })).toBe("printed\nown code\n");
  });

  it("fails the build where a package that no list names calls it", async () => {
    await expect(printed({ silenced: [], printing: ["@scope/prints"] })).rejects.toThrow(/call console: loud/);
    await expect(printed({ silenced: ["loud"], printing: [] })).rejects.toThrow(/call console: @scope\/prints/);
  });

  it.each(["gone", "quiet"])("fails the build where the named package %s does not call it", async (name) => {
    const lists = { silenced: ["loud", name], printing: ["@scope/prints"] };
    await expect(printed(lists)).rejects.toThrow(new RegExp(`no bundled file of ${name} calls console`));
  });
});
