import { AgentAuthError } from "../../../../errors.js";
import { quote, Redactor, shellWord } from "../../../../redact.js";
import { MCP_HOSTS, type McpHost } from "../../../clients/mcp-hosts.js";
import { parseMcpUrlArgument } from "../../../clients/mcp-url.js";
import type { GlobalFlags } from "../../../flags/global.js";
import type { CommandContext } from "../../../runtime/context.js";
import { snippetText } from "./snippet.js";

/** What decides where logins are kept, and is no secret. */
const PLACES = ["AGENTAUTH_HOME", "AGENTAUTH_STORE"];

/** `mcp config`: prints what a host needs to be told of a server, and on stderr where it belongs. */
export async function runMcpConfig(options: McpConfigFlags, context: CommandContext): Promise<undefined> {
  const { io } = context;
  const host = MCP_HOSTS[options.host];
  if (!host) throw new TypeError("the parser lets only hosts through that are known");
  const url = parseMcpUrlArgument(options.url);
  checkQuery(url);
  const name = options.name ?? nameFor(url);
  const env = Object.fromEntries(PLACES.flatMap((key) => (io.env[key] ? [[key, io.env[key]]] : [])));
  const snippet = snippetOf(host, { url, name, env }, options, context);
  await io.stdout.write(snippetText(host.language, snippet));
  io.say(`merge this into ${host.file}`);
  if (options.style === "headers-helper" && Object.keys(env).length > 0) {
    io.say(`start the host with the same ${Object.keys(env).join(" and ")} as here`);
  }
  io.say(
    `sign in once, if that has not been done: agentauth login ${[shellWord(url), ...which(options, context)].join(" ")}`,
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
  const rest = which(options, context);
  if (style === "proxy") return host.proxy(name, { command, args: ["mcp", "proxy", url, ...rest], env });
  if (host.helper === undefined) {
    const able = Object.keys(MCP_HOSTS).filter((key) => MCP_HOSTS[key]?.helper);
    throw new AgentAuthError("usage", `${options.host} knows no command for headers`, {
      class: "usage",
      hint: `leave --style out; it is for ${able.join(", ")}`,
    });
  }
  const words = [command, "token", url, "--format", "headers-json", ...rest];
  return host.helper(name, { url, helper: words.map(shellWord).join(" ") });
}

/** The flags that say which login is meant. */
function which(options: McpConfigFlags, context: CommandContext): string[] {
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
/** Longer than words are, with digits among its letters. */
const SECRET_VALUE = /^(?=.*\d)(?=.*[a-z])[\w\-.~+/=]{20,}$/i;

/** A snippet is kept, copied and shared: a secret in the address would be too. */
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
      `the parameter ${quote(name, 40)} of the MCP server's address looks like a secret, which must not stand in a host's settings`,
      {
        class: "usage",
        hint: "leave it out: agentauth sends a token in a header; have the secret replaced if it was one",
      },
    );
  }
}

function wordsOf(name: string): string[] {
  const apart = name.replace(/([a-z\d])([A-Z])/g, "$1 $2").toLowerCase();
  return apart.split(/[^a-z\d]+/).map((word) => word.replace(/s$/, ""));
}

/** A name that every host takes: the server's, with hyphens. */
function nameFor(url: string): string {
  const name = new URL(url).hostname
    .replace(/[^A-Za-z0-9]+/g, "-")
    .replace(/^-|-$/g, "")
    .slice(0, 60);
  return /[A-Za-z]/.test(name) ? name : `mcp-${name}`;
}

/** What `mcp config` was told. */
export interface McpConfigFlags extends GlobalFlags {
  host: string;
  url: string;
  name?: string;
  style?: "proxy" | "headers-helper";
  command?: string;
  accountHint?: string;
}
