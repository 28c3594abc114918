import { TOKENS } from "../commands/all.gen.js";
import { run } from "../execute.js";
import type { Host } from "../runtime/context.js";

/** {@link run} with the commands of this bundle. */
export function runProgram(argv: readonly string[], host: Host): Promise<number> {
  return run(argv, host, TOKENS);
}
