import { AgentAuthError } from "../../../../errors.js";
import { quote, Redactor, shellWord } from "../../../../redact.js";
import { MCP_HOSTS, type McpHost } from "../../../clients/mcp-hosts.js";
import { parseMcpUrlArgument } from "../../../clients/mcp-url.js";
import type { GlobalFlags } from "../../../flags/global.js";
import type { CommandContext } from "../../../runtime/context.js";
import { snippetText } from "./snippet.js";

/** The variables that decide where logins are stored; they are not secret. */
const STORE_VARIABLES = ["AGENTAUTH_HOME", "AGENTAUTH_STORE"];

/** `mcp config`: prints the host's settings for a server, and on stderr the file that they belong to. */
export async function runMcpConfig(options: McpConfigFlags, context: CommandContext): Promise<undefined> {
  const { io } = context;
  const host = MCP_HOSTS[options.host];
  if (!host) throw new TypeError("the parser accepts only known hosts");
  const url = parseMcpUrlArgument(options.url);
  checkQuery(url);
  const name = options.name ?? nameFor(url);
  const env = Object.fromEntries(STORE_VARIABLES.flatMap((key) => (io.env[key] ? [[key, io.env[key]]] : [])));
  const snippet = snippetOf(host, { url, name, env }, options, context);
  await io.stdout.write(snippetText(host.language, snippet));
  io.say(`merge this into ${host.file}`);
  if (options.style === "headers-helper" && Object.keys(env).length > 0) {
    io.say(`start the host with the same ${Object.keys(env).join(" and ")} as now`);
  }
  io.say(
    `log in once, if not done yet: agentauth login ${[shellWord(url), ...loginFlags(options, context)].join(" ")}`,
  );
  return undefined;
}

interface Server {
  url: string;
  name: string;
  env: Readonly<Record<string, string>>;
}

function snippetOf(
  host: McpHost,
  { url, name, env }: Server,
  options: McpConfigFlags,
  context: CommandContext,
): object {
  const { style = "proxy", command = "agentauth" } = options;
  const rest = loginFlags(options, context);
  if (style === "proxy") return host.proxy(name, { command, args: ["mcp", "proxy", url, ...rest], env });
  if (host.helper === undefined) {
    const supported = Object.keys(MCP_HOSTS).filter((key) => MCP_HOSTS[key]?.helper);
    throw new AgentAuthError("usage", `${options.host} does not support a headers command`, {
      class: "usage",
      hint: `leave --style out; these hosts support it: ${supported.join(", ")}`,
    });
  }
  const words = [command, "token", url, "--format", "headers-json", ...rest];
  return host.helper(name, { url, helper: words.map(shellWord).join(" ") });
}

/** The flags that select the login. */
function loginFlags(options: McpConfigFlags, context: CommandContext): string[] {
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

/** A snippet is stored, copied and shared, and so would be a secret in the URL. */
function checkQuery(url: string): void {
  const shapes = new Redactor();
  for (const [name, value] of new URL(url).searchParams) {
    const isSecret =
      wordsOf(name).some((word) => SECRET_WORDS.has(word)) ||
      SECRET_VALUE.test(value) ||
      shapes.redact(value) !== value;
    if (!isSecret) continue;
    throw new AgentAuthError(
      "usage",
      `the parameter ${quote(name, 40)} of the MCP server's URL looks like a secret, which must not be in a host's settings`,
      {
        class: "usage",
        hint: "leave it out: agentauth sends a token in a header; if it was a secret, replace it",
      },
    );
  }
}

function wordsOf(name: string): string[] {
  const apart = name.replace(/([a-z\d])([A-Z])/g, "$1 $2").toLowerCase();
  return apart.split(/[^a-z\d]+/).map((word) => word.replace(/s$/, ""));
}

/** A name that every host accepts: the server's host name, with hyphens. */
function nameFor(url: string): string {
  const name = new URL(url).hostname
    .replace(/[^A-Za-z0-9]+/g, "-")
    .replace(/^-|-$/g, "")
    .slice(0, 60);
  return /[A-Za-z]/.test(name) ? name : `mcp-${name}`;
}

/** Options of `mcp config`. */
export interface McpConfigFlags extends GlobalFlags {
  host: string;
  url: string;
  name?: string;
  style?: "proxy" | "headers-helper";
  command?: string;
  accountHint?: string;
}
