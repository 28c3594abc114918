import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { Script } from "node:vm";
import { VERSION } from "../../http/user-agent.js";
import { COMPILED_CODE, homeFolder } from "../config/home.js";
import { accessOf } from "../config/home-access.js";
import type { Env } from "../io/env.js";
import { decodeParts, encodeParts, type Parts, replaceFile } from "./compiled-parts.js";

/** The chunks of the command line, compiled by V8 once for all starts. They call no `import()`, which V8 cannot store. */
export interface CompiledCode {
  /** Loads a CommonJS module of the build, and what it requires. */
  load(file: string): unknown;
  /** Stores the code of the chunks that the file of this command lacks. A failure changes nothing. */
  save(): void;
}

/** The build names a chunk by its content: of one with the same name, the same code was compiled. */
const CHUNK = /-[0-9A-Z]{8}\.cjs$/;
const [OPENING, CLOSING] = ["(function (exports, require, module, __filename, __dirname) { ", "\n})"];

type Compiled = (
  exports: unknown,
  require: (id: string) => unknown,
  module: { exports: unknown },
  file: string,
  folder: string,
) => void;

/**
 * Compiled code for the modules of a command, in our folder: half of the time of a start is that V8 parses them. One file
 * for each command, since each file that is read costs more than its content; V8 itself ignores code of another version or
 * of other flags. Nothing is kept with `NODE_DISABLE_COMPILE_CACHE=1`.
 *
 * @param word the first of the command line
 * @param native `require()` for everything else
 * @returns undefined where nothing can be kept, as in a folder in which others can write: what lies there is run
 */
export function compiledCode(word: string, env: Env, native: NodeJS.Require): CompiledCode | undefined {
  if (env["NODE_DISABLE_COMPILE_CACHE"] === "1") return undefined;
  try {
    const home = homeFolder(env);
    const access = accessOf(statSync(home));
    if (access === "writable" || access === "foreign") return undefined;
    return codeIn(join(home, COMPILED_CODE), word, native);
  } catch {
    return undefined;
  }
}

function codeIn(folder: string, word: string, native: NodeJS.Require): CompiledCode {
  const own = join(folder, VERSION);
  const file = join(own, `${/^[a-z][a-z-]*$/.test(word) ? word : "options"}-${process.version}-${process.arch}`);
  const stored = readParts(file);
  const scripts = new Map<string, Script>();
  const modules = new Map<string, { exports: unknown }>();
  let isComplete = true;

  function load(path: string): unknown {
    const known = modules.get(path);
    if (known !== undefined) return known.exports;
    const module = { exports: {} as unknown };
    modules.set(path, module);
    const below = dirname(path);
    const loadFrom = (id: string) => {
      const target = id.startsWith(".") ? join(below, id) : id;
      return CHUNK.test(target) ? load(target) : native(target);
    };
    (compile(path).runInThisContext() as Compiled)(module.exports, loadFrom, module, path, below);
    return module.exports;
  }

  function compile(path: string): Script {
    const source = `${OPENING}${readFileSync(path, "utf8")}${CLOSING}`;
    const name = basename(path);
    const isChunk = CHUNK.test(name);
    const cachedData = isChunk ? stored.get(name) : undefined;
    const script = new Script(source, {
      filename: path,
      columnOffset: -OPENING.length,
      cachedData,
    });
    if (isChunk) {
      scripts.set(path, script);
      if (cachedData === undefined || script.cachedDataRejected === true) isComplete = false;
    }
    return script;
  }

  return {
    load,
    save() {
      if (isComplete) return;
      // After the run, so that it has the functions that were called.
      const compiled = [...scripts].map(([path, script]) => [basename(path), script.createCachedData()] as const);
      try {
        // Another build of this version has other chunks.
        const folders = new Set([...scripts.keys()].map((path) => dirname(path)));
        const present = new Set([...folders].flatMap((below) => readdirSync(below)));
        const others = [...stored].filter(([name]) => present.has(name));
        mkdirSync(own, { recursive: true, mode: 0o700 });
        removeOthers(folder);
        replaceFile(file, encodeParts(new Map([...others, ...compiled])));
      } catch {
        // A folder that cannot be changed keeps nothing.
      }
    },
  };
}

function readParts(file: string): Parts {
  try {
    return decodeParts(readFileSync(file));
  } catch {
    return new Map();
  }
}

/** Removes the code of other versions. */
function removeOthers(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (name !== VERSION) rmSync(join(folder, name), { recursive: true, force: true });
  }
}
