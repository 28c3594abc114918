import { RootCommand } from "@bomb.sh/tab";
import type { Argument, Command, Option } from "commander";
import type { KnownValues } from "./values.js";

/** One thing that may be typed next. */
export interface Candidate {
  value: string;
  description: string;
}

/** What may be typed next. */
export interface Completions {
  candidates: Candidate[];
  /** Whether a file name may follow. */
  files: boolean;
}

/** The shells insert values unquoted: values that a shell would interpret are not offered. */
const SAFE = /^[\w.:/@%+,=][\w.:/@%+,=~-]*$/;

/**
 * What may be typed next on a command line.
 *
 * @param words what comes after the program's name; the last one is the one to complete, and may be empty
 */
export function complete(root: Command, words: readonly string[], known: KnownValues): Completions {
  // What comes after "--" is another program's.
  if (words.slice(0, -1).includes("--")) return { candidates: [], files: true };
  const current = words.at(-1) ?? "";
  const before = words.slice(0, -1).filter((word) => !hasItsValue(word));
  const found: Completions = { candidates: [], files: false };
  // A single dash may start a short or a long flag.
  for (const word of current === "-" ? ["-", "--"] : [current]) {
    const engine = declare(root, known, () => {
      found.files = true;
    });
    engine.parse([...before, word]);
    for (const { value, description = "" } of engine.completions) {
      const start = /^--[\w-]+=/.test(current) ? current.slice(current.indexOf("=") + 1) : current;
      // The engine returns a group once for each of its commands, the group itself first.
      const isNew = found.candidates.every((one) => one.value !== value);
      if (isNew && value.startsWith(start)) found.candidates.push({ value, description });
    }
  }
  return found;
}

/** A flag with its value in the same word: the next word is not its value. */
function hasItsValue(word: string): boolean {
  return /^(?:--[\w-]+=|-\w.)/.test(word);
}

/** The command tree as the engine knows it: the engine does not inherit flags, so each command also gets the root's. */
function declare(root: Command, known: KnownValues, onFile: () => void): RootCommand {
  const engine = new RootCommand();
  // Without this the engine prints its results.
  Object.assign(engine, { complete: () => {} });
  const visit = (command: Command, name: string) => {
    const target = name === "" ? engine : engine.command(name, command.description());
    const help = command.createHelp();
    for (const option of new Set([...help.visibleOptions(command), ...help.visibleOptions(root)])) {
      addOption(target, option, known, onFile);
    }
    for (const argument of command.registeredArguments) {
      const topics =
        name === "help" ? root.commands.map((one) => one.name()).filter((one) => one !== "complete") : undefined;
      const values = argument.argChoices ?? topics ?? operandValues(name, argument, known);
      target.argument(argument.name(), (add) => offer(values, add), argument.variadic);
    }
    for (const child of help.visibleCommands(command)) visit(child, `${name} ${child.name()}`.trim());
  };
  visit(root, "");
  return engine;
}

function addOption(
  target: Pick<RootCommand, "option">,
  { long, short, description, required, argChoices, flags }: Option,
  known: KnownValues,
  onFile: () => void,
): void {
  if (long === undefined) return;
  const name = long.slice(2);
  const alias = short?.slice(1);
  if (!required) {
    target.option(name, description, alias);
    return;
  }
  const takesFile = /<(?:file|path|folder)>/.test(flags);
  const handler = (add: (value: string, description: string) => void) => {
    if (takesFile) onFile();
    offer(argChoices ?? known.flags[name] ?? [], add);
  };
  target.option(name, description, handler, alias);
}

function operandValues(command: string, argument: Argument, known: KnownValues): readonly string[] {
  return known.operands[`${command} ${argument.name()}`] ?? known.operands[argument.name()] ?? [];
}

function offer(values: readonly string[], add: (value: string, description: string) => void): void {
  for (const value of new Set(values)) if (SAFE.test(value)) add(value, "");
}
