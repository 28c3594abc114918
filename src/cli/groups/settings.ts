import { SETTINGS } from "../commands/all.gen.js";
import { run } from "../execute.js";
import type { Host } from "../runtime/context.js";
import type { CommandDeclaration } from "../runtime/declaration.js";
import { BUNDLE_OF_WORD } from "./words.gen.js";

/** Their names are all that is needed of the other commands to say which one an unknown word may stand for. */
const OTHERS = [...BUNDLE_OF_WORD].flatMap(([word, bundle], order): CommandDeclaration[] =>
  bundle === "settings"
    ? []
    : [{ group: "Help:", order, names: [word], declare: ({ root }) => void root.command(word) }],
);

/** {@link run} with the commands of this bundle, or for a command line whose first word names no command. */
export function runProgram(argv: readonly string[], host: Host): Promise<number> {
  return run(argv, host, [...SETTINGS, ...OTHERS]);
}
