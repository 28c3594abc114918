import { SETTINGS } from "../commands/all.gen.js";
import type { CommandDeclaration } from "../runtime/declaration.js";
import { BUNDLE_OF_WORD } from "./words.gen.js";

/** Their names are all that is needed of the other commands to say which one an unknown word may stand for. */
const OTHERS = [...BUNDLE_OF_WORD].flatMap(([word, bundle], order): CommandDeclaration[] =>
  bundle === "settings"
    ? []
    : [{ group: "Help:", order, names: [word], declare: ({ root }) => void root.command(word) }],
);

/** The commands of this bundle, which also takes command lines whose first word names no command. */
export const commands: readonly CommandDeclaration[] = [...SETTINGS, ...OTHERS];

export { run } from "../execute.js";
