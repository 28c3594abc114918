import { readFileSync } from "node:fs";
import { join } from "node:path";
import { usageError } from "../../../../errors.js";
import { VERSION } from "../../../../http/version.js";
import { system } from "../../../../platform/system.js";
import { quote, Redactor, shellWord } from "../../../../redact.js";
import { MCP_HOSTS, type McpHost } from "../../../clients/mcp-hosts/hosts.js";
import { isMap } from "../../../clients/mcp-hosts/json.js";
import { parseMcpUrlArgument } from "../../../clients/mcp-url.js";
import type { GlobalFlags } from "../../../flags/global.js";
import type { CommandContext } from "../../../runtime/context.js";

/** Options of the commands that make an entry of a host's settings. */
export interface EntryFlags extends GlobalFlags {
  host: string;
  url: string;
  name?: string;
  command?: string;
  accountHint?: string;
  scope?: string;
}

/** A server as an entry of a host's settings. */
export interface HostEntry {
  host: McpHost;
  url: string;
  name: string;
  /** The entry as the host wants it written down. */
  entry: Record<string, unknown>;
  /** The words that start the proxy. */
  words: readonly string[];
  /** The variables of this run that decide which store the entry uses; they are not secret. */
  env: Readonly<Record<string, string>>;
}

/**
 * The entry that uses a server through agentauth; it holds no secret.
 *
 * @throws `AgentAuthError` `usage`
 */
export function entryOf(options: EntryFlags, context: CommandContext): HostEntry {
  const host = hostOf(options.host);
  const url = parseMcpUrlArgument(options.url);
  checkUrl(url);
  const name = options.name ?? nameFor(url);
  const all = context.io.env;
  const names = ["AGENTAUTH_HOME", "AGENTAUTH_STORE"];
  const env = Object.fromEntries(names.flatMap((key) => (all[key] ? [[key, all[key]]] : [])));
  const start = startWords(options, context.program);
  // A host on Windows cannot start npx.cmd without a shell.
  const isCmd = (context.machine?.platform ?? system.name) === "win32" && start[0] === "npx";
  const words = [...(isCmd ? ["cmd", "/c"] : []), ...start, "mcp", "proxy", url, ...loginFlags(options, context)];
  const [command = "", ...args] = words;
  return { host, url, name, env, words, entry: host.proxy(name, { command, args, env }) };
}

/** The host of a name that the parser has accepted. */
export function hostOf(name: string): McpHost {
  const host = MCP_HOSTS[name];
  if (!host) throw new TypeError("the parser accepts only known hosts");
  return host;
}

const URL_FIELDS = ["url", "serverUrl", "httpUrl", "uri"];

/** The server that an entry is for, in the shape of any host, and whether it uses it through agentauth. */
export function originOf(entry: unknown): { url?: string; isByAgentauth: boolean } {
  if (!isMap(entry)) return { isByAgentauth: false };
  const words = [entry["command"] ?? entry["cmd"], entry["args"]].flat().filter((word) => typeof word === "string");
  // The command may have any name, which --command sets, or be Node and our script, or npx.
  const verb = [1, 2, 3, 5].find((at) => words[at] === "mcp" && words[at + 1] === "proxy");
  const proxied = verb === undefined ? undefined : words[verb + 2];
  if (proxied !== undefined && URL.canParse(proxied)) return { url: proxied, isByAgentauth: true };
  const url = URL_FIELDS.map((field) => entry[field]).find((value) => typeof value === "string");
  return { ...(url !== undefined && { url }), isByAgentauth: false };
}

/** Reports what else a user must do for an entry to work. */
export function sayNextSteps({ url }: Pick<HostEntry, "url">, options: EntryFlags, context: CommandContext): void {
  const { io, program } = context;
  // Caches of npx, `pnpm dlx`, `yarn dlx` and bunx are emptied at some time.
  const isCached = program !== undefined && /[\\/](?:_npx|dlx|dlx-\d+|bunx-[^\\/]+)[\\/]/.test(program[1]);
  if (isCached && options.command === undefined && options.scope !== "project") {
    const way = registrySpec(program) === undefined ? "from a cache that may be emptied" : "with npx, which is slow";
    io.say(`the host starts agentauth ${way}: install it, and add this again`);
  }
  const words = [url, ...loginFlags(options, context)].map((word) => shellWord(word));
  io.say(`log in once, if not done yet: agentauth login ${words.join(" ")}`);
}

type Program = CommandContext["program"];

/** The words that start this program. The settings of a project are shared: paths of this machine would be wrong for others. */
function startWords({ command, scope }: Pick<EntryFlags, "command" | "scope">, program: Program): readonly string[] {
  if (command !== undefined) return [command];
  if (program === undefined || scope === "project") return ["agentauth"];
  const spec = registrySpec(program);
  return spec === undefined ? program : ["npx", "--yes", spec];
}

/**
 * What npx gets this version by; undefined unless it got this run from a registry. For a tarball or a folder, the name could
 * belong to another package there.
 */
function registrySpec(program: NonNullable<Program>): string | undefined {
  const cache = /^.*[\\/]_npx[\\/][^\\/]+(?=[\\/])/.exec(program[1])?.[0];
  if (cache === undefined) return undefined;
  try {
    const { dependencies } = JSON.parse(readFileSync(join(cache, "package.json"), "utf8"));
    return /^\^?\d/.test(dependencies.agentauth) ? `agentauth@${VERSION}` : undefined;
  } catch {
    return undefined;
  }
}

/** The flags that select the login. The profile is always named: which one is selected may change. */
function loginFlags({ accountHint }: EntryFlags, context: CommandContext): string[] {
  const account = accountHint === undefined ? [] : ["--account-hint", accountHint];
  return ["--profile", context.settings().profile.value, ...account];
}

const SECRET_NAME =
  /^(?:token|key|apikey|secret|password|passwd|pass|pwd|auth|authorization|bearer|credential|signature|sig|code|jwt|session)s?$/;
/** Longer than a word, with digits among its letters. */
const SECRET_VALUE = /^(?=.*\d)(?=.*[a-z])[\w\-.~+/=]{20,}$/i;
/** What hosts replace in their settings: a variable of the environment, a file, or the output of a command. */
const PLACEHOLDER = /[${`]/;

/** Settings are stored, copied and shared, and so would be a secret in the URL. */
function checkUrl(url: string): void {
  const shapes = new Redactor();
  for (const [name, value] of new URL(url).searchParams) {
    const words = name
      .replace(/([a-z\d])([A-Z])/g, "$1 $2")
      .toLowerCase()
      .split(/[^a-z\d]+/);
    if (!words.some((word) => SECRET_NAME.test(word)) && !SECRET_VALUE.test(value) && shapes.redact(value) === value)
      continue;
    throw usageError(
      `the parameter ${quote(name, 40)} of the MCP server's URL looks like a secret, which must not be in a host's settings`,
      "leave it out: agentauth sends a token in a header; if it was a secret, replace it",
    );
  }
  // A host would send a secret of its environment or of a file to the server.
  const [found] = PLACEHOLDER.exec(url) ?? [];
  if (found === undefined) return;
  throw usageError(
    `the MCP server's URL ${quote(url, 80)} has a ${quote(found)}, with which hosts mark what they replace in their settings`,
    `write %${found.charCodeAt(0).toString(16).toUpperCase()} for it`,
  );
}

/** The URL as it may be printed: a part that may be a secret is masked. */
export function printableUrl(value: string): string {
  if (!URL.canParse(value)) return "***";
  const url = new URL(value);
  const path = url.pathname.split("/").map((part) => (SECRET_VALUE.test(part) ? "***" : part));
  const query = [...url.searchParams.keys()].map((name) => `${encodeURIComponent(name)}=***`).join("&");
  return new Redactor().redact(`${url.protocol}//${url.host}${path.join("/")}${query === "" ? "" : `?${query}`}`);
}

/** A name that every host accepts: the server's host name, with hyphens. */
function nameFor(url: string): string {
  const words = new URL(url).hostname.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "");
  const name = words.slice(0, 60);
  return /[A-Za-z]/.test(name) ? name : `mcp-${name}`;
}
