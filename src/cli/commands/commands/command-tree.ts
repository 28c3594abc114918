/** The commands as data: what `agentauth commands` prints, and what the manual page and docs/cli.md are made of. */

import type { EventEmitter } from "node:events";
import type { Argument, Command } from "commander";
import { VERSION } from "../../../http/user-agent.js";
import { describeFlag, type FlagInfo } from "../../flags/describe.js";
import { ENVIRONMENT } from "../../runtime/environment.js";
import { EXIT_CODE_MEANINGS, EXIT_CODES, type Outcome } from "../../runtime/exit-codes.js";

/** An operand of a command. */
export interface ArgumentInfo {
  name: string;
  required: boolean;
  /** Takes every word that is left. */
  variadic: boolean;
  description: string;
  /** The values that are possible, where they are known. */
  choices?: readonly string[];
}

/** One command, or a group of them. */
export interface CommandInfo {
  /** As it is typed after `agentauth`, such as `devices list`. */
  name: string;
  /** The heading that it stands under in the help. */
  group: string;
  summary: string;
  /** What the help says beyond the summary; empty where it says no more. */
  description: string;
  /** The whole line, such as `agentauth devices list [options]`. */
  usage: string;
  arguments: ArgumentInfo[];
  /** The command's own flags; those of the root are understood too. */
  flags: FlagInfo[];
  /** Lines for a POSIX shell. */
  examples: string[];
  /** The commands of a group. */
  commands: CommandInfo[];
}

/** The whole command line. */
export interface CommandTree {
  /** Changes when a reader of an older form could misread this one; what is added does not change it. */
  schema_version: 1;
  name: string;
  version: string;
  summary: string;
  /** The flags that every command understands. */
  flags: FlagInfo[];
  commands: CommandInfo[];
  exit_codes: { code: number; name: Outcome; meaning: string }[];
  environment: { name: string; about: string }[];
}

/** Describes every command that the help lists. */
export function describeProgram(root: Command): CommandTree {
  return {
    schema_version: 1,
    name: root.name(),
    version: VERSION,
    summary: root.description(),
    flags: flagsOf(root),
    commands: commandsOf(root, ""),
    exit_codes: Object.entries(EXIT_CODES).map(([name, code]) => ({
      code,
      name: name as Outcome,
      meaning: EXIT_CODE_MEANINGS[name as Outcome],
    })),
    environment: ENVIRONMENT.flatMap(([names, about]) => names.split(", ").map((name) => ({ name, about }))),
  };
}

/** The commands of a tree that do something themselves, in order. */
export function leafCommands(commands: readonly CommandInfo[]): CommandInfo[] {
  return commands.flatMap((one) => (one.commands.length > 0 ? leafCommands(one.commands) : [one]));
}

function commandsOf(parent: Command, prefix: string): CommandInfo[] {
  return (
    parent
      .createHelp()
      .visibleCommands(parent)
      // The parser gives each group a command "help" that was not declared.
      .filter((command) => parent.commands.includes(command))
      .map((command) => describeCommand(command, `${prefix}${command.name()}`))
  );
}

function describeCommand(command: Command, name: string): CommandInfo {
  const { text, examples } = readHelpText(helpTextOf(command));
  return {
    name,
    group: (command.helpGroup() ?? "").replace(/:$/, ""),
    summary: command.description(),
    description: text,
    usage: `agentauth ${name} ${command.usage()}`.trimEnd(),
    arguments: command.registeredArguments.map(describeArgument),
    flags: flagsOf(command),
    examples,
    commands: commandsOf(command, `${name} `),
  };
}

function describeArgument(argument: Argument): ArgumentInfo {
  return {
    name: argument.name(),
    required: argument.required,
    variadic: argument.variadic,
    description: argument.description,
    ...(argument.argChoices && { choices: argument.argChoices }),
  };
}

function flagsOf(command: Command): FlagInfo[] {
  const help = command.createHelp();
  // Every command has --help, so it is told with the root's alone.
  const flags =
    command.parent === null ? help.visibleOptions(command) : command.options.filter(({ hidden }) => !hidden);
  return flags.map(describeFlag);
}

/** What `addHelpText` was given: the parser keeps it in listeners alone, and its types do not say that it has any. */
function helpTextOf(command: Command): string {
  let text = "";
  const write = (part: string) => {
    text += part;
  };
  (command as Command & Pick<EventEmitter, "emit">).emit("afterHelp", { error: false, command, write });
  return text;
}

const EXAMPLE = /^ {2}\$ (.*)$/;

/** Takes a help text apart: its examples, and the rest. */
function readHelpText(help: string): { text: string; examples: string[] } {
  const lines = help.split("\n");
  const examples = lines.flatMap((line) => EXAMPLE.exec(line)?.[1] ?? []);
  const rest = lines.filter((line) => !EXAMPLE.test(line) && !/^Examples?:$/.test(line));
  return {
    text: rest
      .join("\n")
      .replace(/\n{3,}/g, "\n\n")
      .trim(),
    examples,
  };
}
