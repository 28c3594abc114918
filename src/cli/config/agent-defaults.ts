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
}

interface Silence {
  browser?: "none";
  input?: false;
  isForAgent?: true;
}

/** What a command's flags amount to where an agent runs it: what was given stays, and the rest is for a program. */
export function withAgentDefaults<Options extends object>(
  command: Command,
  options: Options,
  mode: AgentMode,
  context: RunContext,
): Options {
  const added = { ...silence(command, options), ...format(command, options, context) };
  if ("output" in added) mode.tell(context.io);
  return { ...options, ...added };
}

/** Nobody is asked, and no browser is opened, unless a flag asks for a sign-in; with a grant there is none anyway. */
function silence(command: Command, { browser, flow, login, grant }: Given): Silence {
  const isAsked = [browser, flow, grant].some((one) => one !== undefined) || login === true;
  if (isAsked) return {};
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

function profileHasFormat(flags: object, context: RunContext): boolean {
  try {
    return settingsOf(flags, context).output !== undefined;
  } catch {
    // The command itself says what is wrong with its settings.
    return false;
  }
}

function knows(command: Command, flag: string): boolean {
  return command.options.some(({ long }) => long === flag);
}
