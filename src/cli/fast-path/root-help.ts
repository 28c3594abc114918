import { readFileSync } from "node:fs";
import { TERMINAL_COLUMNS, terminalSize, WIDEST_HELP } from "../io/terminal.js";
import { PipeClosed, writeAll } from "../io/write-all.js";
import type { Host } from "../runtime/context.js";

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
export async function printAtOnce(stdout: Host["stdout"], text: string): Promise<boolean> {
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
