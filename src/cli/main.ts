import { readFileSync } from "node:fs";
import { VERSION } from "../http/version.js";
import { enableCompileCache } from "./fast-path/compile-cache.js";
import { BUNDLE_OF_WORD, HIDDEN_WORDS } from "./groups/words.gen.js";
import { TERMINAL_COLUMNS, terminalSize, WIDEST_HELP } from "./io/terminal.js";
import { PipeClosed, writeAll } from "./io/write-all.js";
import type { Host } from "./runtime/context.js";
import type { CommandDeclaration } from "./runtime/declaration.js";

/**
 * Runs one command line.
 *
 * @param argv the arguments, without the program's name
 * @returns the exit code
 */
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
    const { firstSteps } = await import("./config/first-steps.js");
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

/** What each module of groups/ exports. */
interface Bundle {
  commands: readonly CommandDeclaration[];
  run: typeof import("./execute.js").run;
}

/** Loads the bundle of the commands that the first word names; an unknown word needs little more than their names. */
async function load(argv: readonly string[]): Promise<Bundle> {
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
  try {
    return readFileSync(new URL(`help-${Math.min(columns, WIDEST_HELP)}.txt`, import.meta.url), "utf8");
  } catch {
    return undefined;
  }
}
