import { VERSION } from "../http/user-agent.js";
import { firstSteps } from "./config/first-steps.js";
import { keepCompiledCode } from "./fast-path/compiled-code.js";
import { printRootHelp } from "./fast-path/root-help.js";
import type { Host } from "./runtime/host.js";

/**
 * Runs one command line.
 *
 * @param argv the arguments, without the program's name
 * @returns the exit code
 */
export async function main(argv: readonly string[], host: Host): Promise<number> {
  // Scripts and installers call this all the time: it is printed before anything is loaded.
  if (argv.length === 1 && (argv[0] === "--version" || argv[0] === "-V")) {
    host.stdout.write(`${VERSION}\n`);
    return 0;
  }
  if (argv[0] === "token") {
    const { printCachedToken } = await import("./fast-path/cached-token.js");
    const exitCode = await printCachedToken(argv, host);
    if (exitCode !== undefined) return exitCode;
  }
  const isPrinted = await printRootHelp(argv, host);
  // Another program that runs a command line loads its own modules as it likes.
  if (!isPrinted && host === process) keepCompiledCode(host.env);
  const exitCode = isPrinted ? 0 : await (await import("./execute.js")).runProgram(argv, host);
  const steps = argv.length === 0 ? firstSteps(host.env) : undefined;
  if (steps !== undefined) host.stderr.write(`\n${steps}\n`);
  return exitCode;
}
