import type { Command, Option, OptionValues } from "commander";
import { type AgentAuthError, isAgentAuthError, usageError } from "../errors.js";
import { VERSION } from "../http/version.js";
import type { AuthorizationParams } from "../oauth/model/authorization-params.js";
import type { Env } from "../platform.js";
import { quote } from "../redact.js";
import { createCommandContext } from "./clients/context.js";
import { withAgentDefaults } from "./config/agent-defaults.js";
import { isLoginOption } from "./flags/agent.js";
import { paramFlags } from "./flags/flag-name.js";
import { addGlobalFlags, isConnectionOption } from "./flags/global.js";
import type { Io } from "./io/io.js";
import { WIDEST_HELP } from "./io/terminal.js";
import { type AgentMode, isCi } from "./runtime/agent-mode.js";
import type { RunContext } from "./runtime/context.js";
import { type CommandDeclaration, type CommandRun, GROUPS, type Registry } from "./runtime/declaration.js";
import { HelpedCommand, type HelpLayout } from "./runtime/help.js";
import { cliHint, type HintContext } from "./runtime/hints.js";
import type { ParserError } from "./runtime/usage-error.js";

/** The whole command tree. */
export interface Program {
  root: Command;
  /** @returns the exit code of the command that ran */
  run(argv: readonly string[]): Promise<number>;
}

export interface ProgramOptions {
  commands: readonly CommandDeclaration[];
  /** The AI agent that runs us, if one does. */
  agent?: AgentMode | undefined;
  /** The first word of the command line: where it names commands, only these are declared. */
  word?: string | undefined;
}

/**
 * Builds the command tree. What a command needs to run is loaded when it runs.
 *
 * @param printed collects what the parser prints: help in `text`, errors in `error`
 */
export function buildProgram(
  context: RunContext,
  printed: { text: string; error: string },
  { commands, agent, word }: ProgramOptions,
): Program {
  let exitCode = 0;
  const root = addGlobalFlags(new HelpedCommand("agentauth", chooseLayout(context)))
    .description("Bearer tokens for protected MCP servers, and the pools, domains and devices behind them.")
    .version(VERSION, "-V, --version", "Print the version")
    .helpOption("-h, --help", "Show help for the command")
    .helpCommand(false)
    .configureOutput({
      writeOut: (text) => {
        printed.text += text;
      },
      writeErr: (text) => {
        printed.error += text;
      },
    });
  const runCommand = async <Options>(run: CommandRun<Options>, operands: OptionValues, command: Command) => {
    const parsedFlags: OptionValues = { ...command.optsWithGlobals(), ...logFlags(context.io.env) };
    const options = agent ? withAgentDefaults(command, { ...parsedFlags, ...operands }, agent, context) : parsedFlags;
    checkShowSecrets(options, context.io);
    const hintContext: HintContext = {
      flags: givenLoginFlags(command),
      isForAgent: agent !== undefined,
      server: parseServer(operands["url"], parsedFlags),
      operands,
    };
    const withHint = (error: AgentAuthError, details?: HintContext) => cliHint(error, { ...hintContext, ...details });
    const own = createCommandContext({ ...context, withHint, hintContext }, options);
    try {
      exitCode = (await run({ ...options, ...operands } as Options, own)) ?? 0;
    } catch (error) {
      throw isAgentAuthError(error) ? withHint(error) : error;
    }
  };
  const registry: Registry = {
    root,
    context,
    action(run, ...positional) {
      return (...args) => {
        const operands = Object.fromEntries(positional.map((name, index) => [name, args[index]]));
        return runCommand(run, operands, args.at(-1) as Command);
      };
    },
    run: (load, name, ...positional) =>
      registry.action(
        async (options: object, own) => (await load())[name](options as never, own),
        ...(positional as never[]),
      ),
  };
  declareInOrder(commands, registry, word);
  nameCommandInErrors(root, "agentauth");
  return {
    root,
    async run(argv) {
      await root.parseAsync([...argv], { from: "user" });
      return exitCode;
    },
  };
}

/** Declares the commands in the order of the help, each under its heading. */
export function declareInOrder(commands: readonly CommandDeclaration[], registry: Registry, word?: string): void {
  const groups: readonly string[] = GROUPS;
  const place = ({ group, order }: CommandDeclaration) => groups.indexOf(group) * 1000 + order;
  const named = commands.filter(({ names, readsAll }) => word !== undefined && !readsAll && names.includes(word));
  for (const { group, declare } of [...(named.length > 0 ? named : commands)].sort((a, b) => place(a) - place(b))) {
    const declared = registry.root.commands.length;
    declare(registry);
    for (const command of registry.root.commands.slice(declared)) command.helpGroup(group);
  }
}

/** The MCP server of a command line; undefined if no user logs in there. */
function parseServer(url: unknown, { grant }: { grant?: string }): string | undefined {
  return typeof url === "string" && grant === undefined ? url : undefined;
}

/** Makes the parser's errors carry the command that they are about, so that its help can be named. */
function nameCommandInErrors(command: Command, name: string): void {
  command.exitOverride((error) => {
    const { args, registeredArguments } = command;
    const unexpected = args[registeredArguments.length];
    const options = [
      ...command.options,
      ...(command.parent?.options ?? []),
      ...(command.parent?.parent?.options ?? []),
    ];
    const flags = options.flatMap(({ short, long }) => [short, long]);
    const details = {
      command: name,
      args,
      unexpected,
      idFlag: findIdFlag(command),
      flags,
    } satisfies Partial<ParserError>;
    throw Object.assign(error, details);
  });
  for (const child of command.commands) nameCommandInErrors(child, `${name} ${child.name()}`);
}

/** The flag for the id of what a command works on, unless it was given or the command takes operands. */
function findIdFlag(command: Command): string | undefined {
  if (command.registeredArguments.length > 0) return undefined;
  const option = command.options.find(({ flags }) => /<(?:account|domain|pool)_id>$/.test(flags));
  const isGiven = option !== undefined && command.getOptionValueSource(option.attributeName()) === "cli";
  return isGiven ? undefined : option?.long;
}

function chooseLayout({ io, argv }: RunContext): HelpLayout {
  const end = argv.indexOf("--");
  const args = end < 0 ? argv : argv.slice(0, end);
  return { width: Math.min(io.stdout.columns, WIDEST_HELP), isFull: args.includes("--all") };
}

/** What `AGENTAUTH_LOG` sets, as the flags that do the same. */
const LEVELS = { info: { verbose: true }, debug: { verbose: true, debug: true } } as const;

/** The flags that `AGENTAUTH_LOG` stands for. @throws `AgentAuthError` `usage` for an unknown level */
function logFlags(env: Env): { verbose?: true; debug?: true } {
  const level = env["AGENTAUTH_LOG"];
  if (!level) return {};
  if (Object.hasOwn(LEVELS, level)) return LEVELS[level as keyof typeof LEVELS];
  const rule = `must be one of ${Object.keys(LEVELS).join(", ")}`;
  throw usageError(
    `AGENTAUTH_LOG ${quote(level)} ${rule}`,
    "AGENTAUTH_LOG=debug logs as --debug does; unset it for no log",
  );
}

/**
 * Checks that `--show-secrets` is intended: output where `CI` is set stays in a log that others read.
 *
 * @throws `AgentAuthError` `usage`
 */
function checkShowSecrets(options: { showSecrets?: unknown; yes?: unknown }, { env, stdout }: Io): void {
  if (options.showSecrets !== true || options.yes === true || stdout.isTTY || !isCi(env)) return;
  throw usageError(
    "--show-secrets would print secrets into the log of a CI job (CI is set)",
    "leave --show-secrets out; if no log records the output, add --yes",
  );
}

/** The flags of a login as they were typed, each with its value: without them the hint would log in another client. */
export function givenLoginFlags(command: Command): string[][] {
  const own = command.options.flatMap((option) => typedFlags(option, command));
  return command.parent ? [...own, ...givenLoginFlags(command.parent)] : own;
}

function typedFlags(option: Option, command: Command): string[][] {
  const { long } = option;
  // The second step of a login in two steps: another login starts with the first step.
  if (long === "--wait" && typeof command.getOptionValue("wait") === "string") return [["--no-wait"]];
  if (!long || !(isLoginOption(option) || isConnectionOption(option) || long.startsWith("--hand-over"))) return [];
  const name = option.attributeName();
  if (command.getOptionValueSource(name) !== "cli") return [];
  const value: unknown = command.getOptionValue(name);
  if (long === "--authorize-param") return paramFlags(value as AuthorizationParams);
  return [value === true ? [long] : [long, String(value)]];
}
