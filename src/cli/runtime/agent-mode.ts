import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { isJsonObject, parseStrictJson } from "../../http/strict-json.js";
import type { Env } from "../../platform.js";
import { isReference, noteReference } from "../../profile/secrets.js";
import { findHome } from "../../profile/settings.js";
import type { Redactor } from "../../redact.js";
import { checkTrustedFolder, readPrivateFile, writePrivateFile } from "../../store/private/private-file.js";
import type { Io } from "../io/io.js";

/** The environment variables that are read, each with what it does: for help, documentation and `agentauth commands`. */
export const ENVIRONMENT: readonly (readonly [name: string, description: string])[] = [
  ["AGENTAUTH_BASE_URL", "the service's base address"],
  [
    "AGENTAUTH_API_TOKEN",
    "the API token of the management interface; as each secret here, it may be env:, file: or exec:",
  ],
  ["AGENTAUTH_CLIENT_SECRET", "the secret of the client that --client-id names"],
  ["AGENTAUTH_ISSUER", "the only issuer to use, as --issuer"],
  ["AGENTAUTH_ID_TOKEN", "the ID token of a user, for --grant id-jag"],
  ["AGENTAUTH_IDP_CLIENT_SECRET", "the secret of the client that --idp-client-id names"],
  ["AGENTAUTH_SUBJECT_TOKEN", "the token to exchange, in place of the server's own"],
  ["AGENTAUTH_PROFILE", "the profile to use"],
  ["AGENTAUTH_HOME", "the folder of all files"],
  ["AGENTAUTH_STORE", "the store of logins: file, keyring, memory, redis or postgres"],
  ["AGENTAUTH_STORE_URL", "for redis and postgres, the address of the engine"],
  ["AGENTAUTH_STORE_KEYS", "the key ring that seals logins there: its JSON, or none"],
  [
    "AGENTAUTH_STORE_TAKEOVER",
    "for redis and postgres, when others take over a refresh: patient (default), fast, or one by issuer",
  ],
  ["AGENTAUTH_STORE_TENANT", "for redis and postgres, the tenant whose logins are used"],
  ["AGENTAUTH_NO_INPUT", "never prompt, never open a browser, as --no-input"],
  ["AGENTAUTH_AUDIT", "file:PATH: the file that events are written into, one line of JSON each"],
  ["AGENTAUTH_LOG", "info logs as --verbose, debug as --debug"],
  ["AGENTAUTH_ERRORS", '"json" prints errors as one line of JSON'],
  ["AGENTAUTH_AGENT", "0: no AI agent runs this, 1: one does (default: detected); see help agents"],
  ["BROWSER", "the browser to log in with, or none"],
  ["HTTPS_PROXY, HTTP_PROXY, ALL_PROXY", "the proxy for requests"],
  ["NO_PROXY", "hosts that are reached without it"],
  ["NODE_EXTRA_CA_CERTS", "certificate authorities to trust too"],
  ["NODE_USE_SYSTEM_CA", "1 trusts the certificate authorities of the system too (read by Node 22.19 or later)"],
  ["NODE_COMPILE_CACHE", "the folder of compiled code of the commands (Node 22.8 or later)"],
  ["NODE_DISABLE_COMPILE_CACHE", "1: no compiled code is stored"],
  ["NO_COLOR, FORCE_COLOR", "colours off or on; NO_COLOR wins"],
  ["FORCE_HYPERLINK", "0 or 1: whether the link of a login is a hyperlink"],
  ["COLUMNS", "the width to print tables for"],
  ["LINES", "the height of the screen"],
  ["TERM", "dumb: no colours, no progress"],
  ["CI", "set: --show-secrets needs --yes too"],
];

/** The variables whose values are secrets, or say where secrets are. */
const SECRET_VARIABLES = [
  "AGENTAUTH_API_TOKEN",
  "AGENTAUTH_CLIENT_SECRET",
  "AGENTAUTH_ID_TOKEN",
  "AGENTAUTH_IDP_CLIENT_SECRET",
  "AGENTAUTH_STORE_KEYS",
  "AGENTAUTH_STORE_URL",
  "AGENTAUTH_SUBJECT_TOKEN",
];

/**
 * Masks these secrets, and keeps them from the programs that we start: a browser must not find them in its environment.
 */
export function withholdSecrets(env: Env, inherited: Env, redactor: Redactor): void {
  for (const name of SECRET_VARIABLES) {
    const value = env[name] ?? "";
    // A reference to a secret is none.
    if (isReference(value)) noteReference(value, env);
    else redactor.add(value);
    delete (inherited as Record<string, string | undefined>)[name];
  }
}

/** Whether a CI job runs us: its variable is set, and not to what turns a switch off. */
export function isCi(env: Env): boolean {
  return !/^(?:false|0|no|off)?$/i.test(env["CI"] ?? "");
}

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
