/** The commands as data: the output of `agentauth commands`, and the source of the manual page and docs/cli.md. */

import type { Argument, Command } from "commander";
import { VERSION } from "../../../http/user-agent.js";
import { describeFlag, type FlagInfo } from "../../flags/describe.js";
import { ENVIRONMENT } from "../../runtime/environment.js";
import { EXIT_CODE_MEANINGS, EXIT_CODES, type Outcome } from "../../runtime/exit-codes.js";
import { visibleCommands } from "../../runtime/help/page.js";
import { moreOf, readHelpText } from "../../runtime/help/parts.js";

/** An operand of a command. */
export interface ArgumentInfo {
  /** Its name. */
  name: string;
  /** Whether it is required. */
  required: boolean;
  /** Whether it takes all remaining words. */
  variadic: boolean;
  /** What it is. */
  description: string;
  /** The allowed values, if they are known. */
  choices?: readonly string[];
}

/** One command, or a group of them. */
export interface CommandInfo {
  /** As it is typed after `agentauth`, such as `devices list`. */
  name: string;
  /** Its heading in the help. */
  group: string;
  /** What it does, in one line. */
  summary: string;
  /** The text of the help below the summary; may be empty. */
  description: string;
  /** The whole line, such as `agentauth devices list [options]`. */
  usage: string;
  /** In order. */
  arguments: ArgumentInfo[];
  /** The command's own flags; the global flags apply too. */
  flags: FlagInfo[];
  /** Lines for a POSIX shell. */
  examples: string[];
  /** The commands of a group. */
  commands: CommandInfo[];
}

/** The whole command line. */
export interface CommandTree {
  /** Changes when a reader of an older version could misread this one; additions do not change it. */
  schema_version: 1;
  /** The program. */
  name: string;
  /** Its version. */
  version: string;
  /** What it does, in one line. */
  summary: string;
  /** The flags that every command understands. */
  flags: FlagInfo[];
  /** In the order of the help. */
  commands: CommandInfo[];
  /** Every exit code. */
  exit_codes: {
    /** The number. */
    code: number;
    /** Its class of errors. */
    name: Outcome;
    /** When a command ends with it. */
    meaning: string;
  }[];
  /** The environment variables that have an effect. */
  environment: {
    /** The variable. */
    name: string;
    /** What it does. */
    about: string;
  }[];
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

/** The commands without subcommands, in order. */
export function leafCommands(commands: readonly CommandInfo[]): CommandInfo[] {
  return commands.flatMap((one) => (one.commands.length > 0 ? leafCommands(one.commands) : [one]));
}

function commandsOf(parent: Command, prefix: string): CommandInfo[] {
  return visibleCommands(parent).map((command) => describeCommand(command, `${prefix}${command.name()}`));
}

function describeCommand(command: Command, name: string): CommandInfo {
  const { text, examples } = readHelpText(moreOf(command));
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
  // Every command has --help: it is listed with the root's flags only.
  const flags =
    command.parent === null ? help.visibleOptions(command) : command.options.filter(({ hidden }) => !hidden);
  return flags.map(describeFlag);
}
