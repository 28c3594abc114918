import type { Command } from "commander";
import type { AgentMode } from "../runtime/agent-mode.js";
import type { RunContext } from "../runtime/context.js";
import { settingsOf } from "./settings.js";

interface Given {
  output?: unknown;
  json?: unknown;
  jq?: unknown;
  html?: unknown;
  browser?: unknown;
  flow?: unknown;
  login?: unknown;
  grant?: unknown;
  watch?: unknown;
  until?: unknown;
  watchTimeout?: unknown;
  limit?: unknown;
  columns?: unknown;
  path?: readonly string[];
}

/** How a command prints less than it could. */
interface Brief {
  /** At most 50 items in short columns, or a summary. */
  brief?: true;
}

interface Unattended {
  browser?: "none";
  input?: false;
  isForAgent?: true;
}

/** The flags of a command that an agent runs: given flags stay, and the defaults suit a program. */
export function withAgentDefaults<Options extends object>(
  command: Command,
  options: Options,
  mode: AgentMode,
  context: RunContext,
): Options {
  const formatted = format(command, options, context);
  const added = { ...unattended(command, options), ...formatted, ...brief(command, { ...options, ...formatted }) };
  if ("output" in added) mode.announce(context.io);
  return { ...options, ...added };
}

/** No prompt and no browser, unless a flag asks for a login; a machine grant has neither. */
function unattended(command: Command, { browser, flow, login, grant }: Given): Unattended {
  const isLoginGiven = [browser, flow, grant].some((one) => one !== undefined) || login === true;
  if (isLoginGiven) return {};
  return {
    ...(knows(command, "--browser") && { browser: "none" }),
    ...(knows(command, "--wait") && { isForAgent: true }),
    ...((knows(command, "--browser") || knows(command, "--no-pager")) && { input: false }),
  };
}

function format(command: Command, given: Given, context: RunContext): { output?: "json" | "ndjson" } {
  const { output, json, jq, html } = given;
  if (!knows(command, "--json") || !knows(command, "--output")) return {};
  if ([output, json, jq, html].some((one) => one !== undefined) || profileHasFormat(given, context)) return {};
  const isWatched = [given.watch, given.until, given.watchTimeout].some((one) => one !== undefined);
  return { output: isWatched ? "ndjson" : "json" };
}

/**
 * Less output for the context of an agent: of the lists and the tree, unless a flag says how many items or which fields;
 * of `commands`, unless it is asked for JSON or for one command.
 */
function brief(command: Command, given: Given): Brief {
  if (command.name() === "commands") return given.json === undefined && given.path?.length === 0 ? { brief: true } : {};
  if (!knows(command, "--limit") || !knows(command, "--concurrency")) return {};
  const isChosen = [given.limit, given.columns, given.jq, given.watch, given.until].some((one) => one !== undefined);
  const isJson = given.json === true || given.output === "json";
  return isJson && !isChosen ? { brief: true } : {};
}

function profileHasFormat(flags: object, context: RunContext): boolean {
  try {
    return settingsOf(flags, context).output !== undefined;
  } catch {
    // The command itself reports what is wrong with its settings.
    return false;
  }
}

function knows(command: Command, flag: string): boolean {
  return command.options.some(({ long }) => long === flag);
}
