import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { usageError } from "../../../../errors.js";
import { VERSION } from "../../../../http/version.js";
import { system } from "../../../../platform/system.js";
import { posixWord, quote, Redactor, shellWord } from "../../../../redact.js";
import { isMap, type McpHost } from "../../../clients/mcp-hosts/host.js";
import { MCP_HOSTS } from "../../../clients/mcp-hosts/hosts.js";
import { parseMcpUrlArgument } from "../../../clients/mcp-url.js";
import type { GlobalFlags } from "../../../flags/global.js";
import type { CommandContext } from "../../../runtime/context.js";

/** Options of the commands that make an entry of a host's settings. */
export interface EntryFlags extends GlobalFlags {
  host: string;
  url: string;
  name?: string;
  style?: "proxy" | "headers-helper";
  command?: string;
  accountHint?: string;
  scope?: string;
}

/** A server as an entry of a host's settings. */
export interface HostEntry {
  host: McpHost;
  url: string;
  name: string;
  entry: Record<string, unknown>;
  /** What it is in the other styles of the host: an update removes their keys. */
  otherStyles: Record<string, unknown>;
  /** The variables of this run that decide which store the entry uses. */
  env: Readonly<Record<string, string>>;
}

/** The variables that decide where logins are stored; they are not secret. */
const STORE_VARIABLES = ["AGENTAUTH_HOME", "AGENTAUTH_STORE"];

/**
 * The entry that uses a server through agentauth; it holds no secret.
 *
 * @throws `AgentAuthError` `usage`
 */
export function entryOf(options: EntryFlags, context: CommandContext): HostEntry {
  const { env: all } = context.io;
  const host = hostOf(options.host);
  const url = parseMcpUrlArgument(options.url);
  checkQuery(url);
  checkPlaceholders(url);
  const name = options.name ?? nameFor(url);
  const env = Object.fromEntries(STORE_VARIABLES.flatMap((key) => (all[key] ? [[key, all[key]]] : [])));
  const entry = dataOf(host, { url, name, env }, options, context);
  return { host, url, name, env, entry, otherStyles: otherStylesOf(host, options) };
}

function otherStylesOf(host: McpHost, { style, url }: EntryFlags): Record<string, unknown> {
  if (style !== "headers-helper") return host.helper?.({ url, helper: "" }) ?? {};
  const env = Object.fromEntries(STORE_VARIABLES.map((name) => [name, ""]));
  return host.proxy("", { command: "", args: [], env });
}

/** The host of a name that the parser has accepted. */
export function hostOf(name: string): McpHost {
  const host = MCP_HOSTS[name];
  if (!host) throw new TypeError("the parser accepts only known hosts");
  return host;
}

/** What an entry of a host's settings is for. */
export interface EntryOrigin {
  /** The MCP server, where the entry names one. */
  readonly url: string | undefined;
  /** Whether the entry uses the server through agentauth. */
  readonly isByAgentauth: boolean;
}

const URL_FIELDS = ["url", "serverUrl", "httpUrl", "uri"];

/** What an entry is for, in the shape of any host. */
export function originOf(entry: unknown): EntryOrigin {
  if (!isMap(entry)) return { url: undefined, isByAgentauth: false };
  const words = [entry["command"] ?? entry["cmd"], entry["args"]].flat().filter((word) => typeof word === "string");
  // The command may have any name, which --command sets, or be Node and our script, or npx.
  const verb = [1, 2, 3, 5].find((at) => words[at] === "mcp" && words[at + 1] === "proxy");
  const proxied = verb === undefined ? undefined : words[verb + 2];
  if (proxied !== undefined && URL.canParse(proxied)) return { url: proxied, isByAgentauth: true };
  const url = URL_FIELDS.map((field) => entry[field]).find((value) => typeof value === "string");
  return { url, isByAgentauth: url !== undefined && isOurHelper(entry["headersHelper"]) };
}

function isOurHelper(helper: unknown): boolean {
  if (typeof helper !== "string") return false;
  const [command = ""] = helper.split(" ");
  return / token \S+ --format headers-json/.test(helper) || basename(command) === "agentauth";
}

/** Reports what else a user must do for an entry to work. */
export function sayNextSteps({ url, env }: HostEntry, options: EntryFlags, context: CommandContext): void {
  const { io } = context;
  if (options.style === "headers-helper" && Object.keys(env).length > 0) {
    io.say(`start the host with the same ${Object.keys(env).join(" and ")} as now`);
  }
  if (isInCache(context.program) && options.command === undefined && options.scope !== "project") {
    const way =
      registrySpec(context.program) === undefined ? "from a cache that may be emptied" : "with npx, which is slow";
    io.say(`the host starts agentauth ${way}: install it, and add this again`);
  }
  io.say(
    `log in once, if not done yet: agentauth login ${[shellWord(url), ...loginFlags(options, context)].join(" ")}`,
  );
}

function dataOf(
  host: McpHost,
  { url, name, env }: Pick<HostEntry, "url" | "name" | "env">,
  options: EntryFlags,
  context: CommandContext,
): Record<string, unknown> {
  const { style = "proxy" } = options;
  const isWindows = (context.machine?.platform ?? system.name) === "win32";
  const start = startWords(options, context.program);
  const rest = loginFlags(options, context);
  if (style === "proxy") {
    // A host on Windows cannot start npx.cmd without a shell.
    const [command, ...before] = isWindows && start[0] === "npx" ? ["cmd", "/c", ...start] : start;
    return host.proxy(name, { command, args: [...before, "mcp", "proxy", url, ...rest], env });
  }
  if (host.helper === undefined) {
    const supported = Object.keys(MCP_HOSTS).filter((key) => MCP_HOSTS[key]?.helper);
    throw usageError(
      `${options.host} does not support a headers command`,
      `leave --style out; these hosts support it: ${supported.join(", ")}`,
    );
  }
  const words = ["token", url, "--format", "headers-json", ...rest];
  return host.helper({
    url,
    helper: isWindows ? windowsLine(start, words) : [...start, ...words].map(posixWord).join(" "),
  });
}

/** The words that start this program. The settings of a project are shared: paths of this machine would be wrong for others. */
function startWords(
  { command, scope }: Pick<EntryFlags, "command" | "scope">,
  program: Program,
): [string, ...string[]] {
  if (command !== undefined) return [command];
  if (program === undefined || scope === "project") return ["agentauth"];
  const spec = registrySpec(program);
  return spec === undefined ? [...program] : ["npx", "--yes", spec];
}

type Program = CommandContext["program"];

/** Whether npx, `pnpm dlx`, `yarn dlx` or bunx started this run, from a cache that is emptied at some time. */
function isInCache(program: Program): program is NonNullable<Program> {
  return program !== undefined && /[\\/](?:_npx|dlx|dlx-\d+|bunx-[^\\/]+)[\\/]/.test(program[1]);
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

/**
 * On Windows the host's shell may be cmd.exe or an sh. Both read a path with slashes in double quotes; cmd.exe knows no other
 * quotes, and reads more characters than sh.
 */
function windowsLine(start: readonly string[], rest: readonly string[]): string {
  const unsafe =
    start.find((word) => /["%$`\p{Cc}]/u.test(word)) ?? rest.find((word) => !/^[\w@+=:,./?-]+$/.test(word));
  if (unsafe === undefined) {
    const first = start.map((word) => (/^[\w@.-]+$/.test(word) ? word : `"${word.replaceAll("\\", "/")}"`));
    return [...first, ...rest].join(" ");
  }
  throw usageError(
    `${quote(unsafe, 80)} has characters that cmd.exe may interpret, so it cannot be in a headers command on Windows`,
    "use --style proxy: its entry is not read by a shell",
  );
}

/** The flags that select the login. */
function loginFlags(options: EntryFlags, context: CommandContext): string[] {
  const { value, source } = context.settings().profile;
  const isNamed = value !== "default" || source === "--profile";
  return [
    ...(isNamed ? ["--profile", value] : []),
    ...(options.accountHint === undefined ? [] : ["--account-hint", options.accountHint]),
  ];
}

const SECRET_WORDS = new Set(
  "token key apikey secret password passwd pass pwd auth authorization bearer credential signature sig code jwt session".split(
    " ",
  ),
);
/** Longer than a word, with digits among its letters. */
const SECRET_VALUE = /^(?=.*\d)(?=.*[a-z])[\w\-.~+/=]{20,}$/i;

/** Settings are stored, copied and shared, and so would be a secret in the URL. */
function checkQuery(url: string): void {
  const shapes = new Redactor();
  for (const [name, value] of new URL(url).searchParams) {
    const isSecret =
      wordsOf(name).some((word) => SECRET_WORDS.has(word)) ||
      SECRET_VALUE.test(value) ||
      shapes.redact(value) !== value;
    if (!isSecret) continue;
    throw usageError(
      `the parameter ${quote(name, 40)} of the MCP server's URL looks like a secret, which must not be in a host's settings`,
      "leave it out: agentauth sends a token in a header; if it was a secret, replace it",
    );
  }
}

/** What hosts replace in their settings: a variable of the environment, a file, or the output of a command. */
const PLACEHOLDERS: Readonly<Record<string, string>> = { $: "%24", "{": "%7B", "`": "%60" };

/** A host would replace a placeholder, and send a secret of its environment or of a file to the server. */
function checkPlaceholders(url: string): void {
  const found = Object.keys(PLACEHOLDERS).find((character) => url.includes(character));
  if (found === undefined) return;
  throw usageError(
    `the MCP server's URL ${quote(url, 80)} has a ${quote(found)}, with which hosts mark what they replace in their settings`,
    `write ${PLACEHOLDERS[found]} for it`,
  );
}

function wordsOf(name: string): string[] {
  const apart = name.replace(/([a-z\d])([A-Z])/g, "$1 $2").toLowerCase();
  return apart.split(/[^a-z\d]+/).flatMap((word) => [word, word.replace(/s$/, "")]);
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
  const name = new URL(url).hostname
    .replace(/[^A-Za-z0-9]+/g, "-")
    .replace(/^-|-$/g, "")
    .slice(0, 60);
  return /[A-Za-z]/.test(name) ? name : `mcp-${name}`;
}
