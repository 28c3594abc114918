import { lstatSync, mkdirSync, readFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { orUndefined } from "../errors.js";
import { VERSION } from "../http/version.js";
import { type Env, system } from "../platform.js";
import { findHome, isWithin, userFolder } from "../profile/settings.js";
import { classifyAccess } from "./config/home-access.js";
import { BUNDLE_OF_WORD, HIDDEN_WORDS } from "./groups/words.gen.js";
import { TERMINAL_COLUMNS, terminalSize, WIDEST_HELP } from "./io/terminal.js";
import { PipeClosed, writeAll } from "./io/write-all.js";
import type { Host } from "./runtime/context.js";
import type { CommandDeclaration } from "./runtime/declaration.js";

/** What `node:module` has since 22.8: the types are those of Node 20, where a named import fails. */
interface CompileCache {
  enableCompileCache?(folder: string): unknown;
}

/**
 * Has Node store the compiled code of the modules that are loaded from here on, and use it at the next start: half of the
 * time of a start is that V8 compiles them. Node compares a checksum of what it reads. Nothing is stored where Node has no
 * such cache, or in a folder that others can get at: what lies there is run.
 */
export function enableCompileCache(
  env: Env,
  node: CompileCache = process.getBuiltinModule("node:module") as CompileCache,
): void {
  // With the first one Node has enabled a folder of the user's choice; with the second one it enables none.
  if (!node.enableCompileCache || env["NODE_COMPILE_CACHE"] || env["NODE_DISABLE_COMPILE_CACHE"]) return;
  try {
    const folder = cacheFolder(env);
    const home = findHome(env)?.value;
    // A relative path leads into the working folder, whose files may belong to another user.
    if (!folder || !isAbsolute(folder) || (home !== undefined && isWithin(home, folder))) return;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const stat = lstatSync(folder);
    const access = classifyAccess(stat);
    if (stat.isDirectory() && (access === "private" || access === "unchecked")) node.enableCompileCache(folder);
  } catch {
    // A start without the cache is slower, and no failure.
  }
}

/** Our folder among the user's caches. On Windows these lie beside the settings. */
function cacheFolder(env: Env): string | undefined {
  const user = userFolder(env);
  const named = env[system.name === "win32" ? "LOCALAPPDATA" : "XDG_CACHE_HOME"];
  if (system.name === "darwin") return user && join(user, "Library", "Caches", "agentauth");
  const [below, name] = system.name === "win32" ? [["AppData", "Local"], "agentauth-cache"] : [[".cache"], "agentauth"];
  const caches = named || (user && join(user, ...below));
  return caches && join(caches, name);
}

/** Runs one command line. */
export async function main(argv: readonly string[], host: Host): Promise<number> {
  // Scripts and installers call this all the time: it is printed before anything is loaded.
  const isVersion = argv.length === 1 && (argv[0] === "--version" || argv[0] === "-V");
  if (isVersion && (await printAtOnce(host.stdout, `${VERSION}\n`))) return 0;
  if (argv[0] === "token") {
    const { printCachedToken } = await import("./fast-path/cached-token.js");
    const exitCode = await printCachedToken(argv, host);
    if (exitCode !== undefined) return exitCode;
  }
  if (argv[0] === "exec") {
    const { execWithCachedToken } = await import("./fast-path/cached-exec.js");
    const exitCode = await execWithCachedToken(argv, host);
    if (exitCode !== undefined) return exitCode;
  }
  const isPrinted = await printRootHelp(argv, host);
  const exitCode = isPrinted ? 0 : await run(argv, host);
  if (argv.length === 0) {
    const { firstSteps } = await import("./config/home-access.js");
    const steps = firstSteps(host.env);
    if (steps !== undefined) host.stderr.write(`\n${steps}\n`);
  }
  return exitCode;
}

async function run(argv: readonly string[], host: Host): Promise<number> {
  // Another program that runs a command line loads its modules as it likes.
  if (host === process) enableCompileCache(host.env);
  const bundle = await load(argv);
  return bundle.run(argv, host, bundle.commands);
}

/** Loads the bundle of the commands that the first word names; an unknown word needs little more than their names. */
async function load(
  argv: readonly string[],
): Promise<{ commands: readonly CommandDeclaration[]; run: typeof import("./execute.js").run }> {
  const [word = "-"] = argv;
  const needsAll = word.startsWith("-") || HIDDEN_WORDS.includes(word) || argv.some(isHelp);
  const name = BUNDLE_OF_WORD.get(word) ?? (needsAll ? "all" : "settings");
  if (name === "lists") return import("./groups/lists.js");
  if (name === "tokens") return import("./groups/tokens.js");
  if (name === "settings") return import("./groups/settings.js");
  return import("./groups/all.js");
}

/** Whether a word asks for help, alone or among other letters. */
function isHelp(word: string): boolean {
  return word === "--help" || /^-\w*h/.test(word);
}

/** The arguments that print the help of the program itself. */
const HELP_WORDS = ["--help", "-h", "help"];

/**
 * Prints the program's own help as the build has written it down, for the widths that it has been written down for: a
 * pipe's and that of a large window.
 *
 * @returns whether it was printed
 */
export async function printRootHelp(argv: readonly string[], host: Host): Promise<boolean> {
  if (argv.length > 1 || !HELP_WORDS.includes(argv[0] ?? "help")) return false;
  const text = writtenHelp(terminalSize(host.env["COLUMNS"], host.stdout.columns, TERMINAL_COLUMNS));
  return text !== undefined && printAtOnce(host.stdout, text);
}

/** Prints a text before the program is loaded. @returns false if the program has to meet the failure, and to report it */
async function printAtOnce(stdout: Host["stdout"], text: string): Promise<boolean> {
  // A failed write also emits "error", which would end the process.
  stdout.on("error", () => {});
  try {
    await writeAll(stdout, text);
  } catch (error) {
    return error instanceof PipeClosed;
  }
  return true;
}

function writtenHelp(columns: number): string | undefined {
  return orUndefined(() =>
    readFileSync(new URL(`help-${Math.min(columns, WIDEST_HELP)}.txt`, import.meta.url), "utf8"),
  );
}
