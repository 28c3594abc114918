import type { Command } from "commander";
import type { AgentMode } from "../runtime/agent-mode.js";
import type { RunContext } from "../runtime/context.js";
import { settingsOf } from "./settings.js";

interface Given {
  output?: unknown;
  json?: unknown;
  jq?: unknown;
  html?: unknown;
  brief?: true;
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

/** How a command prints for an agent that names no form. */
interface Form {
  output?: "json" | "ndjson";
  /** At most 50 items in few columns, or a summary. */
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
  const added = { ...unattended(command, options), ...form(command, options, context) };
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

/**
 * JSON, and less of it for the context of an agent: of the lists and the tree, unless a flag says how many items, and of
 * `commands`, unless one is named. What a flag, the profile or a redirect names is the same for everyone: a program that the
 * agent starts may have named it.
 */
function form(command: Command, given: Given, context: RunContext): Form {
  if (!knows(command, "--json") || !knows(command, "--output") || context.io.isRedirected()) return {};
  const { output, json, jq, html, columns } = given;
  if ([output, json, jq, html, columns].some((one) => one !== undefined) || profileHasFormat(given, context)) return {};
  const isWatched = [given.watch, given.until, given.watchTimeout].some((one) => one !== undefined);
  if (isWatched) return { output: "ndjson" };
  const isLong = knows(command, "--brief") ? given.limit === undefined : command.name() === "commands";
  return { output: "json", ...(isLong && !given.path?.length && { brief: true }) };
}

function profileHasFormat(flags: object, context: RunContext): boolean {
  try {
    return settingsOf(flags, context.io.env).output !== undefined;
  } catch {
    // The command itself reports what is wrong with its settings.
    return false;
  }
}

function knows(command: Command, flag: string): boolean {
  return command.options.some(({ long }) => long === flag);
}
