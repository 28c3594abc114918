import { detectAgent } from "std-env";
import type { Io } from "../io/io.js";

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
