import { detectAgent } from "std-env";
import type { Io } from "../io/io.js";

/** An AI agent that runs us, and what that changes where nothing was said. */
export interface AgentMode {
  /** Prints once, on stderr, that this mode is on and how to turn it off. */
  announce(io: Io): void;
}

/** The variables of these agents are also set where a user works at a terminal without them. */
const ALSO_OF_USERS = ["goose", "replit", "pi", "devin"];
const OFF = /^(?:0|false|no|off)$/i;

/**
 * Whether an AI agent runs us: by `AGENTAUTH_AGENT`, else by the variables that agents set. CI alone is no agent.
 *
 * @param stdout a terminal where a user may read
 */
export function agentMode(env: Io["env"], stdout: Pick<Io["stdout"], "isTTY">): AgentMode | undefined {
  const forced = env["AGENTAUTH_AGENT"];
  if (forced && OFF.test(forced)) return undefined;
  const name = forced ? "AGENTAUTH_AGENT is set" : nameOfAgent(stdout.isTTY);
  if (name === undefined) return undefined;
  let isAnnounced = false;
  return {
    announce(io) {
      if (!isAnnounced)
        io.say(`for an AI agent (${name}): JSON, no prompt, no browser; AGENTAUTH_AGENT=0 turns that off`);
      isAnnounced = true;
    },
  };
}

function nameOfAgent(onTerminal: boolean): string | undefined {
  const { name } = detectAgent();
  return name === undefined || (onTerminal && ALSO_OF_USERS.includes(name)) ? undefined : name;
}
