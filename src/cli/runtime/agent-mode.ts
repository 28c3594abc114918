import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { isJsonObject, parseStrictJson } from "../../http/strict-json.js";
import type { Env } from "../../platform/system.js";
import { findHome } from "../../profile/settings.js";
import { checkTrustedFolder, readPrivateFile, writePrivateFile } from "../../store/private/private-file.js";
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
 * @param now Unix milliseconds
 */
export function agentMode(
  env: Io["env"],
  stdout: Pick<Io["stdout"], "isTTY">,
  now: () => number = Date.now,
): AgentMode | undefined {
  const forced = env["AGENTAUTH_AGENT"];
  if (forced && OFF.test(forced)) return undefined;
  const name = forced ? "AGENTAUTH_AGENT is set" : nameOfAgent(env, stdout.isTTY);
  if (name === undefined) return undefined;
  let isAnnounced = false;
  return {
    announce(io) {
      if (!isAnnounced && isNewSession(name, env, now()))
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

/** The variables by which agents name their session. */
const SESSION_VARIABLES = [
  ...["CLAUDE_CODE_SESSION_ID", "CLAUDE_SESSION_ID", "CODEX_THREAD_ID", "GEMINI_SESSION_ID", "CURSOR_TRACE_ID"],
  ...["COPILOT_AGENT_SESSION_ID", "OPENCODE_SESSION_ID"],
];
const HOUR_MS = 3_600_000;
const MOST_SESSIONS = 20;

/**
 * Whether a notice is new to the session of an agent, which then counts as seen. A session is what the agent names by a
 * variable, for a day; else an hour of that agent: it starts another shell for each command, so that the parent process
 * says nothing. Where our folder is missing or cannot be written, every run is new.
 *
 * @param agent its name
 * @param now Unix milliseconds
 */
export function isNewSession(agent: string, env: Env, now: number): boolean {
  const home = findHome(env)?.value;
  if (home === undefined) return true;
  const path = join(home, "agent-sessions.json");
  const named = SESSION_VARIABLES.find((name) => env[name]);
  const { hash } = process.getBuiltinModule("node:crypto");
  const key = hash("sha256", `${agent} ${named && env[named]}`).slice(0, 16);
  const seen = read(path);
  const age = now - (seen.get(key) ?? Number.NEGATIVE_INFINITY);
  if (age >= 0 && age < (named ? 24 * HOUR_MS : HOUR_MS)) return false;
  try {
    const latest = [...seen.set(key, now)].sort(([, a], [, b]) => b - a).slice(0, MOST_SESSIONS);
    if (existsSync(home)) writePrivateFile(path, `${JSON.stringify(Object.fromEntries(latest))}\n`);
  } catch {
    // The notice comes again.
  }
  return true;
}

function read(path: string): Map<string, number> {
  try {
    checkTrustedFolder(dirname(path));
    const value: unknown = parseStrictJson(readPrivateFile(path) ?? "{}");
    const entries = isJsonObject(value) ? Object.entries(value) : [];
    return new Map(entries.filter((entry): entry is [string, number] => typeof entry[1] === "number"));
  } catch {
    return new Map();
  }
}
