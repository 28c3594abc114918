import { existsSync } from "node:fs";
import { join } from "node:path";
import { isJsonObject, parseStrictJson } from "../../http/strict-json.js";
import type { Env } from "../../platform/system.js";
import { homeFolder } from "../../profile/home.js";
import { readPrivateFile, writePrivateFile } from "../../store/private/private-file.js";

/** The variables by which agents name their session. */
const SESSION_VARIABLES = [
  ...["CLAUDE_CODE_SESSION_ID", "CLAUDE_SESSION_ID", "CODEX_THREAD_ID", "GEMINI_SESSION_ID", "CURSOR_TRACE_ID"],
  ...["COPILOT_AGENT_SESSION_ID", "OPENCODE_SESSION_ID"],
];
const HOUR_MS = 3_600_000;
/** Sessions that are remembered. */
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
  const home = homeFolder(env);
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
    const value: unknown = parseStrictJson(readPrivateFile(path) ?? "{}");
    const entries = isJsonObject(value) ? Object.entries(value) : [];
    return new Map(entries.filter((entry): entry is [string, number] => typeof entry[1] === "number"));
  } catch {
    return new Map();
  }
}
