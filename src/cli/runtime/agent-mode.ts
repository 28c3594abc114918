import type { Command } from "commander";
import { detectAgent } from "std-env";
import type { Io } from "../io/io.js";
import { type Deps, settingsOf } from "./context.js";

/** An AI agent that runs us, and what that changes where nothing was said. */
export interface AgentMode {
  /** Says once, on stderr, that this is so, and how to turn it off. */
  tell(io: Io): void;
}

/** Their marks are also found in the settings of people who sit at a terminal themselves. */
const ALSO_OF_PEOPLE = ["goose", "replit", "pi", "devin"];
const OFF = /^(?:0|false|no|off)$/i;

/**
 * Whether an AI agent runs us: `AGENTAUTH_AGENT` says so, else the marks that agents leave in the environment. CI alone
 * is no agent.
 *
 * @param stdout whose terminal a person may be looking at
 */
export function agentMode(env: Io["env"], stdout: Pick<Io["stdout"], "isTTY">): AgentMode | undefined {
  const forced = env["AGENTAUTH_AGENT"];
  if (forced && OFF.test(forced)) return undefined;
  const name = forced ? "AGENTAUTH_AGENT is set" : nameOfAgent(stdout.isTTY);
  if (name === undefined) return undefined;
  let told = false;
  return {
    tell(io) {
      if (!told) io.say(`for an AI agent (${name}): JSON, no prompt, no browser; AGENTAUTH_AGENT=0 turns that off`);
      told = true;
    },
  };
}

function nameOfAgent(onTerminal: boolean): string | undefined {
  const { name } = detectAgent();
  return name === undefined || (onTerminal && ALSO_OF_PEOPLE.includes(name)) ? undefined : name;
}

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

/** What a command's flags amount to where an agent runs it: what was given stays, and the rest is for a program. */
export function withAgentDefaults<Options extends object>(
  command: Command,
  options: Options,
  mode: AgentMode,
  deps: Deps,
): Options {
  const added = { ...silence(command, options), ...format(command, options, deps) };
  if ("output" in added) mode.tell(deps.io);
  return { ...options, ...added };
}

interface Silence {
  browser?: "none";
  input?: false;
  isForAgent?: true;
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

function format(command: Command, given: Given, deps: Deps): { output?: "json" | "ndjson" } {
  const { output, json, jq, html } = given;
  if (!knows(command, "--json") || !knows(command, "--output")) return {};
  if ([output, json, jq, html].some((one) => one !== undefined) || profileHasFormat(given, deps)) return {};
  const isWatched = [given.watch, given.until, given.watchTimeout].some((one) => one !== undefined);
  return { output: isWatched ? "ndjson" : "json" };
}

function profileHasFormat(flags: object, deps: Deps): boolean {
  try {
    return settingsOf(flags, deps).output !== undefined;
  } catch {
    // The command itself says what is wrong with its settings.
    return false;
  }
}

function knows(command: Command, flag: string): boolean {
  return command.options.some(({ long }) => long === flag);
}
