import type { Argument, Command, Option } from "commander";
import { orUndefined, usageError } from "../../../errors.js";
import { suggestionHint } from "../../../http/suggest.js";
import { VERSION } from "../../../http/version.js";
import { quote } from "../../../redact.js";
import { ENVIRONMENT } from "../../runtime/agent-mode.js";
import type { CommandContext } from "../../runtime/context.js";
import { EXIT_CODE_MEANINGS, EXIT_CODES, type Outcome } from "../../runtime/exit-codes.js";
import { describeMore, readHelpText, visibleCommands } from "../../runtime/help.js";

/** The commands as data: the output of `agentauth commands`, and the source of the manual page and docs/cli.md. */

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
    description: string;
  }[];
}

/** Describes every command that the help lists. */
export function describeProgram(root: Command): CommandTree {
  return {
    schema_version: 1,
    name: root.name(),
    version: VERSION,
    summary: root.description(),
    flags: describeFlags(root),
    commands: describeCommands(root, ""),
    exit_codes: Object.entries(EXIT_CODES).map(([name, code]) => ({
      code,
      name: name as Outcome,
      meaning: EXIT_CODE_MEANINGS[name as Outcome],
    })),
    environment: ENVIRONMENT.flatMap(([names, description]) =>
      names.split(", ").map((name) => ({ name, description })),
    ),
  };
}

/** The commands without subcommands, in order. */
export function leafCommands(commands: readonly CommandInfo[]): CommandInfo[] {
  return commands.flatMap((one) => (one.commands.length > 0 ? leafCommands(one.commands) : [one]));
}

function describeCommands(parent: Command, prefix: string): CommandInfo[] {
  return visibleCommands(parent).map((command) => describeCommand(command, `${prefix}${command.name()}`));
}

function describeCommand(command: Command, name: string): CommandInfo {
  const { text, examples } = readHelpText(describeMore(command));
  return {
    name,
    group: (command.helpGroup() ?? "").replace(/:$/, ""),
    summary: command.description(),
    description: text,
    usage: `agentauth ${name} ${command.usage()}`.trimEnd(),
    arguments: command.registeredArguments.map(describeArgument),
    flags: describeFlags(command),
    examples,
    commands: describeCommands(command, `${name} `),
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

function describeFlags(command: Command): FlagInfo[] {
  const help = command.createHelp();
  // Every command has --help: it is listed with the root's flags only.
  const flags =
    command.parent === null ? help.visibleOptions(command) : command.options.filter(({ hidden }) => !hidden);
  return flags.map(describeFlag);
}

type FlagType = "boolean" | "string" | "integer" | "number" | "choice";

/** A flag of a command. */
interface FlagInfo {
  /** `--output`, or `--no-color` if that is the only form. */
  name: string;
  /** `-o`. */
  short?: string;
  /** The type of its value. */
  type: FlagType;
  /** The placeholder of the value in the help, such as `format`. */
  value?: string;
  /** Whether the value may be omitted. */
  value_optional?: true;
  /** The allowed values. */
  choices?: readonly string[];
  /** The default, as text. */
  default?: string;
  /** Environment variables with the same effect; the flag takes precedence. */
  env?: readonly string[];
  /** Whether the flag may be repeated. */
  repeatable?: true;
  /** Its heading in the help. */
  group: string;
  /** What it does. */
  description: string;
}

/** The variables of each flag. The parser must not read them: only `io` reads the environment. */
const VARIABLES: Readonly<Record<string, readonly string[]>> = {
  "--profile": ["AGENTAUTH_PROFILE"],
  "--base-url": ["AGENTAUTH_BASE_URL"],
  "--proxy": ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"],
  "--ca-file": ["NODE_EXTRA_CA_CERTS"],
  "--use-system-ca": ["NODE_USE_SYSTEM_CA"],
  "--no-color": ["NO_COLOR"],
  "--no-input": ["AGENTAUTH_NO_INPUT"],
  "--browser": ["BROWSER"],
  "--client-secret-file": ["AGENTAUTH_CLIENT_SECRET"],
  "--subject-token-file": ["AGENTAUTH_SUBJECT_TOKEN"],
};

function describeFlag(option: Option): FlagInfo {
  const name = option.long ?? option.short ?? option.flags;
  const { value, isOptional } = readPlaceholder(option.flags);
  const fallback = /\(default:? ([^()]+)\)/.exec(option.description)?.[1];
  const env = Object.hasOwn(VARIABLES, name) ? VARIABLES[name] : undefined;
  return {
    name,
    ...(option.short !== undefined && { short: option.short }),
    type: flagType(option),
    ...(value !== undefined && { value }),
    ...(isOptional && { value_optional: true }),
    ...(option.argChoices && { choices: option.argChoices }),
    ...(fallback !== undefined && { default: fallback }),
    ...(env && { env }),
    ...(isRepeatable(option) && { repeatable: true }),
    group: (option.helpGroupHeading ?? "Options").replace(/:$/, ""),
    description: option.description,
  };
}

/**
 * The placeholder of the value, between the outermost brackets of the declaration. It may contain brackets itself, such
 * as `<field[:asc|:desc]>`, which commander treats as an optional value.
 */
function readPlaceholder(flags: string): { value?: string; isOptional: boolean } {
  const [, bracket, value] = /\s([<[])(.+?)(?:\.\.\.)?[>\]]$/.exec(flags) ?? [];
  return { ...(value !== undefined && { value }), isOptional: bracket === "[" };
}

function flagType(option: Option): FlagType {
  if (!option.required && !option.optional) return "boolean";
  if (option.argChoices) return "choice";
  if (typeof tryParser(option, "7") !== "number") return "string";
  return typeof tryParser(option, "7.5") === "number" ? "number" : "integer";
}

function isRepeatable(option: Option): boolean {
  return option.variadic || (option.argChoices === undefined && Array.isArray(tryParser(option, "a=b: c")));
}

/** The result of the flag's own parser; undefined if it rejects the value or there is no parser. */
function tryParser(option: Option, value: string): unknown {
  return orUndefined(() => option.parseArg?.(value, undefined));
}

/** A command in the list that an AI agent gets: an item of `commands` without `--json`. */
export interface CommandSummary {
  /** As it is typed after `agentauth`, such as `devices list`. */
  name: string;
  /** What it does, in one line. */
  summary: string;
}

/** `commands`: the tree, or one command of it, as JSON or as an indented list. */
export async function runCommands(root: Command, options: CommandsOptions, { io }: CommandContext): Promise<undefined> {
  const tree = describeProgram(root);
  const { path = [], brief } = options;
  const isJson = options.json === true || options.output === "json";
  const json = (value: object) => `${JSON.stringify(value, null, io.stdout.isTTY ? 2 : 0)}\n`;
  if (brief) {
    const summaries: CommandSummary[] = leafCommands(tree.commands).map(({ name, summary }) => ({ name, summary }));
    await io.stdout.write(json(summaries));
    io.say("agentauth commands <command> has its flags and examples; agentauth commands --json has those of all");
  } else if (path.length > 0) {
    const found = findCommand(tree.commands, path);
    await io.stdout.write(isJson ? json(found) : listText([found]));
  } else {
    await io.stdout.write(isJson ? json(tree) : listText(tree.commands));
  }
}

const LISTED = "agentauth commands lists them";

function findCommand(commands: readonly CommandInfo[], path: readonly string[]): CommandInfo {
  const words = path.flatMap((word) => word.split(" ")).filter((word) => word !== "");
  let [among, found]: [readonly CommandInfo[], CommandInfo | undefined] = [commands, undefined];
  for (const [index, word] of words.entries()) {
    const lastWord = ({ name }: CommandInfo) => name.slice(name.lastIndexOf(" ") + 1);
    found = among.find((one) => lastWord(one) === word);
    if (found === undefined) {
      const hint = suggestionHint(word, among.map(lastWord), LISTED);
      throw usageError(`there is no command ${quote(words.slice(0, index + 1).join(" "))}`, hint);
    }
    among = found.commands;
  }
  if (found === undefined) throw usageError('there is no command ""', LISTED);
  return found;
}

function listText(commands: readonly CommandInfo[]): string {
  const rows = toRows(commands, "");
  const width = Math.max(...rows.map(([term]) => term.length));
  return rows.map(([term, summary]) => `${term.padEnd(width)}  ${summary}\n`).join("");
}

function toRows(commands: readonly CommandInfo[], indent: string): [string, string][] {
  return commands.flatMap((one): [string, string][] => {
    const word = one.name.slice(one.name.lastIndexOf(" ") + 1);
    const term = [word, ...one.arguments.map(formatOperand)].join(" ");
    return [[indent + term, one.summary], ...toRows(one.commands, `${indent}  `)];
  });
}

function formatOperand({ name, required, variadic }: ArgumentInfo): string {
  const word = variadic ? `${name}...` : name;
  return required ? `<${word}>` : `[${word}]`;
}

export interface CommandsOptions {
  /** The words of one command. */
  path?: readonly string[];
  /** Whether an AI agent gets names and summaries alone. */
  brief?: true;
  output?: "text" | "json";
  json?: boolean;
}
