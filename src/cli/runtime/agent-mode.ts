import type { Io } from "../io/io.js";

/** An AI agent that runs us, and what that changes where nothing was said. */
export interface AgentMode {
  /** Prints once a session, on stderr, that this mode is on and how to turn it off. */
  announce(io: Io): void;
}

/**
 * The agents by the variables that they set, as std-env lists them, which reads them of the process alone. With a pattern, a
 * value that fits is one of the agent.
 */
const AGENTS: readonly (readonly [name: string, variables: readonly string[], pattern?: RegExp])[] = [
  ["claude", ["CLAUDECODE", "CLAUDE_CODE"]],
  ["replit", ["REPL_ID"]],
  ["gemini", ["GEMINI_CLI"]],
  ["codex", ["CODEX_SANDBOX", "CODEX_THREAD_ID"]],
  ["opencode", ["OPENCODE"]],
  ["pi", ["PATH"], /\.pi[\\/]agent/],
  ["auggie", ["AUGMENT_AGENT"]],
  ["goose", ["GOOSE_PROVIDER"]],
  ["junie", ["JUNIE_DATA", "JUNIE_SHIM_PATH"]],
  ["copilot", ["COPILOT_AGENT", "COPILOT_CLI"]],
  ["devin", ["EDITOR"], /devin/],
  ["cursor", ["CURSOR_AGENT"]],
  ["kiro", ["TERM_PROGRAM"], /kiro/],
];
/** The variables of these agents are also set where a user works at a terminal without them. */
const ALSO_OF_USERS = ["goose", "replit", "pi", "devin", "kiro"];
const OFF = /^(?:0|false|no|off)$/i;

/**
 * Whether an AI agent runs us: by `AGENTAUTH_AGENT`, else by the variables that agents set. CI alone is no agent.
 *
 * @param stdout a terminal where a user may read
 * @param isNew whether the agent of this name has not seen the notice in its session; default: it has not
 */
export function agentMode(
  env: Io["env"],
  stdout: Pick<Io["stdout"], "isTTY">,
  isNew: (name: string) => boolean = () => true,
): AgentMode | undefined {
  const forced = env["AGENTAUTH_AGENT"];
  if (forced && OFF.test(forced)) return undefined;
  const name = forced ? "AGENTAUTH_AGENT is set" : nameOfAgent(env, stdout.isTTY);
  if (name === undefined) return undefined;
  let isAnnounced = false;
  return {
    announce(io) {
      if (!isAnnounced && isNew(name))
        io.say(`for an AI agent (${name}): JSON, no prompt, no browser; AGENTAUTH_AGENT=0 turns that off`);
      isAnnounced = true;
    },
  };
}

function nameOfAgent(env: Io["env"], onTerminal: boolean): string | undefined {
  const named = env["AI_AGENT"]?.toLowerCase();
  const found = AGENTS.find(([, variables, pattern = /./s]) => variables.some((one) => pattern.test(env[one] ?? "")));
  const name = named && /^github_copilot_(?:vscode|cloud)_agent$/.test(named) ? "copilot" : (named ?? found?.[0]);
  return name === undefined || (onTerminal && ALSO_OF_USERS.includes(name)) ? undefined : name;
}
