import { type Command, InvalidArgumentError } from "commander";
import { usageError } from "../../errors.js";
import type { SecurityPolicy } from "../../oauth/discovery/overrides.js";
import type { DpopPolicy } from "../../oauth/dpop/dpop.js";
import { isAcceptableTokenType, TOKEN_TYPE_RULE } from "../../oauth/token/token-checks.js";
import type { GlobalFlags } from "./global.js";
import { addMachineGrantFlags, type MachineGrantFlags } from "./grant.js";
import type { OutputFlags } from "./output.js";
import { addFlags, authorizeParam, type FlagRow, parseSeconds, shortText, wholeNumber } from "./values.js";

/** The flags of every command that may log in. */
export interface AgentFlags extends GlobalFlags, MachineGrantFlags, SecurityPolicy {
  scope?: string;
  clientMetadataUrl?: string;
  clientName?: string;
  flow?: "browser" | "device" | "paste";
  browser?: string;
  redirectHost?: "127.0.0.1" | "localhost";
  redirectPort?: number;
  loginTimeout?: number;
  resource?: string;
  resourceMetadata?: string;
  authorizeParam?: Record<string, string>;
  dpop?: DpopPolicy;
  accountHint?: string;
  trustNamedIssuer?: boolean;
  login?: boolean;
}

/** The heading of the flags of a login. */
export const LOGIN = "Login:";

/**
 * Adds the flags of {@link AgentFlags} except `--login`.
 *
 * @param which `login` omits `--scope` and `--resource`, for a command where they have another meaning
 */
export function addAgentFlags(command: Command, which: "all" | "login" = "all"): Command {
  addFlags(addMachineGrantFlags(addPolicyFlags(command)), "The client:", [
    ["--trust-named-issuer", "Bind --client-id to the issuer that the server names, if it is not bound yet"],
  ]);
  refuseLoginConflict(command);
  return which === "all" ? addTargetFlags(addLoginFlags(command)) : addLoginFlags(command);
}

/** For commander, `--login` and `--no-login` are one option, and the last one wins. */
function refuseLoginConflict(command: Command): void {
  const given = new Set<string>();
  for (const name of ["login", "no-login"]) {
    command.on(`option:${name}`, () => {
      if (given.add(name).size === 1) return;
      throw usageError("--login and --no-login do not go together", "leave out one of the two");
    });
  }
}

/** The flags that decide whether a command may log in. */
export const LOGIN_SWITCH: readonly FlagRow[] = [
  ["--login", "Log in if needed, even without a terminal"],
  ["--no-login", "Never log in"],
];

/** The flag of the account, for commands that use a stored login. */
export const ACCOUNT_HINT = [
  "--account-hint <account>",
  "Account to use, if several are logged in at the server",
] as const;

/** The flag `--min-ttl`. */
export const MIN_TTL: FlagRow = [
  "--min-ttl <seconds>",
  "Minimum remaining lifetime in seconds, at most 90 % of the token's lifetime (default: 60)",
  wholeNumber(0),
];

function addTargetFlags(command: Command): Command {
  return addFlags(command, LOGIN, [
    ["--scope <scopes>", "Scopes to request (default: the server's)"],
    RESOURCE,
    ["--resource-metadata <url>", "URL of the server's resource metadata, as a hint names it"],
  ]);
}

/** The flag `--resource`. */
export const RESOURCE: FlagRow = ["--resource <uri>", 'Resource to request, or "none" (default: the server\'s)'];

/** The flag `--client-metadata-url`. */
export const DOCUMENT_URL: FlagRow = [
  "--client-metadata-url <url>",
  'URL of this client\'s metadata document, or "none"',
];

/** The flag `--client-name`. */
export const CLIENT_NAME: FlagRow = [
  "--client-name <name>",
  'Name to register the client with (default: "agentauth")',
  shortText(100),
];

function addLoginFlags(command: Command): Command {
  const param = "Parameter that the issuer wants in the login URL; repeatable, and an empty value leaves one out";
  const dpop = "Bind tokens to a key of this machine (default: auto, where the server requires it)";
  return addFlags(command, LOGIN, [
    DOCUMENT_URL,
    CLIENT_NAME,
    ["--flow <flow>", "Login flow", ["browser", "device", "paste"]],
    ["--browser <command>", 'Command that opens the browser, or "none"'],
    ["--redirect-host <host>", "Host name in the redirect URI", ["127.0.0.1", "localhost"]],
    ["--redirect-port <port>", "Port in the redirect URI (default: a free one)", wholeNumber(1, 65_535)],
    ["--login-timeout <seconds>", "Time limit for the user to log in, in seconds (default: 300)", parseSeconds],
    ["--account-hint <account>", "Account to log in with"],
    ["--authorize-param <name=value>", param, authorizeParam],
    ["--dpop <policy>", dpop, ["off", "auto", "required"] satisfies DpopPolicy[]],
  ]);
}

/** The values of `token --format`. */
export const TOKEN_FORMATS = [
  "raw",
  "header",
  "headers-json",
  "json",
  "env",
  "powershell",
  "cmd",
  "k8s",
  "git",
  "bazel",
] as const;

/** The hidden command of the process that waits for a callback between the two steps of a login. */
export const RECEIVE_CALLBACK = "receive-callback";

/** Options of `token`. */
export interface TokenFlags extends Omit<AgentFlags, "output"> {
  url: string;
  /** The operation that git or bazel appends. */
  operation?: string;
  format?: (typeof TOKEN_FORMATS)[number];
  minTtl?: number;
  forceRefresh?: boolean;
  /** Whether an AI agent runs the command without a flag that reaches the user: login starts, but does not wait. */
  isForAgent?: boolean;
  /** `--no-wait` gives false; `--wait <id>` gives the id. */
  wait?: boolean | string;
  /** The callback of a login that is finished; `-` reads it from stdin. */
  callbackUrl?: string;
  output?: "text" | "json";
  json?: boolean;
}

/** Options of the commands about stored logins. */
export interface StoredLoginFlags extends AgentFlags, OutputFlags {
  url?: string;
  all?: boolean;
}

/** Adds the flags that change the security policy of discovery. */
export function addPolicyFlags(command: Command): Command {
  return addFlags(command, "Security policy:", [
    ["--allow-missing-pkce-metadata", "Accept an issuer whose metadata does not announce PKCE"],
    ["--allow-private-network", "Allow a public server to name loopback or private addresses"],
    ["--allow-cross-origin-metadata", "Follow resource metadata to another origin"],
    ["--allow-cross-origin-endpoints", "Accept an issuer that sends the authorization code to another origin"],
    ["--legacy-discovery", "Use the discovery rules of MCP revision 2025-03-26"],
    ["--accept-token-type <type>", "Use tokens of this type as bearer tokens", tokenType],
    ["--strict-resource", "Require the resource to be exactly the requested URL"],
    ["--same-origin-endpoints", "Require all endpoints of the issuer to share its origin"],
  ]);
}

function tokenType(value: string): string {
  if (!isAcceptableTokenType(value)) throw new InvalidArgumentError(TOKEN_TYPE_RULE);
  return value;
}
