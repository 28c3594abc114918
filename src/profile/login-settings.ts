import { secureAddress } from "../http/address.js";
import { isPlainPath, isRedirectUri, REDIRECT_PATH_RULE, REDIRECT_URI_RULE } from "../login/redirect-address.js";
import type { TerminalLoginOptions } from "../login/terminal.js";
import type { AgentClientOptions } from "../oauth/agent-options.js";
import { findDocumentUrlProblem } from "../oauth/client/metadata-document.js";
import type { SecurityPolicy } from "../oauth/discovery/overrides.js";
import type { AuthorizationParams, FlowOption } from "../oauth/model/authorization-params.js";
import { checkAuthorizationParam } from "../oauth/model/authorization-params.js";
import { isAcceptableTokenType, TOKEN_TYPE_RULE } from "../oauth/token/token-checks.js";
import { escapeText } from "../redact.js";

/** What the value of a setting or of a flag must be. Each check throws a `TypeError` with the rule, to be read after the name. */

/** @throws `TypeError` with the rule, where it does not hold */
export function requireRule(holds: boolean, rule: string): void {
  if (!holds) throw new TypeError(rule);
}

/** Anything but nothing. */
export function nonEmpty(value: string): string {
  requireRule(value.trim() !== "", "must not be empty");
  return value;
}

/** An issuer identifier (RFC 8414 section 2), over TLS or on this machine. */
export function issuerAddress(value: string): string {
  const rule = "must be an https address without a query (http to this machine alone), as the issuer has it";
  requireRule(secureAddress(value) !== undefined && !value.includes("?"), rule);
  return value;
}

export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): (value: string) => number {
  return (value) => {
    const number = Number(value);
    const holds = /^\d+$/.test(value) && Number.isSafeInteger(number) && number >= least && number <= most;
    requireRule(holds, `must be a whole number of at least ${least}${most < 1e15 ? ` and at most ${most}` : ""}`);
    return number;
  };
}

/** A positive number of seconds. */
export function parseSeconds(value: string): number {
  const number = Number(value);
  const holds = /^(?:\d+(?:\.\d*)?|\.\d+)$/.test(value) && number > 0 && number <= 86_400;
  requireRule(holds, "must be a number of seconds above 0 and at most 86400");
  return number;
}

/** A text that other programs show: with no control or invisible characters in it. */
export function shortText(most: number): (value: string) => string {
  return (value) => {
    const holds = value.trim() !== "" && value.length <= most && escapeText(value) === value;
    requireRule(holds, `must be a text of 1 to ${most} visible characters`);
    return value;
  };
}

/** The heading of a setting in the help. */
export type LoginSettingGroup = "Login:" | "The client:" | "Security policy:";

/**
 * A command with flags of a login: `token` is also `exec` and `mcp proxy`, `document` is `client document`, and `stored` is
 * each that uses what is stored for a server, or logs in with the defaults.
 */
export type LoginCommand = "login" | "token" | "discover" | "exchange" | "document" | "stored";

/** What a setting of a profile is for, and how it is checked. */
export interface SettingInfo {
  /** What it is for. */
  description: string;
  /** The values that are possible, or what checks one. */
  values: readonly string[] | ((value: string) => unknown);
}

/** One setting of a login. */
export interface LoginSetting {
  /** Its name as an option of the command line: `redirectPort` is the flag `--redirect-port`. */
  readonly name: string;
  /** The value in the help, such as `<port>`; absent for a switch. */
  readonly value?: string;
  /** Its line in the help. */
  readonly description: string;
  readonly group: LoginSettingGroup;
  /** Where it is a flag. */
  readonly on: readonly LoginCommand[];
  /** The values that are possible, or what reads one; it throws a `TypeError` with the rule. Default: any text. */
  readonly values?: readonly string[] | ((value: string, previous: never) => unknown);
  /** The option of `AgentClient` that it is. */
  readonly client?: keyof AgentClientOptions;
  /** The member of `AgentClientOptions.policy` that it is. */
  readonly policy?: keyof SecurityPolicy;
  /** The option of `terminalLogin()` that it is. */
  readonly method?: keyof TerminalLoginOptions;
  /** Whether it shapes an interactive login, so that a machine grant refuses it. */
  readonly isInteractive?: true;
  /** Whether it is about one server, so that a login at an identity provider has none or another. */
  readonly isOfServer?: true;
  /** Whether a stored token can meet it: the fast path reads it. */
  readonly fitsStored?: true;
  /** The parameter of the authorization request that it decides. */
  readonly parameter?: FlowOption;
  /** The environment variable that sets it too. */
  readonly variable?: string;
  /** The setting of a profile that sets it too; its own check, where the text in a profile differs from the flag's. */
  readonly profile?: SettingInfo & { key: string };
}

const EACH_CLIENT = ["login", "token", "exchange"] as const;

/**
 * Every setting of a login, from which come its flag, what a hint repeats, the options of the SDK, the setting of a
 * profile, its help and docs. All but those of the call are remembered with the login (`overridesFor`, the client record).
 */
export const LOGIN_SETTINGS = [
  {
    name: "clientId",
    value: "<id>",
    description: "OAuth client ID (secret: AGENTAUTH_CLIENT_SECRET or --client-secret-file)",
    group: "The client:",
    on: EACH_CLIENT,
    isOfServer: true,
    parameter: "client",
  },
  {
    name: "clientSecretFile",
    value: "<file>",
    description: "Read the client secret from a file (- for stdin)",
    group: "The client:",
    on: EACH_CLIENT,
    isOfServer: true,
  },
  {
    name: "privateKey",
    value: "<file>",
    description: "Private key for private_key_jwt, PEM, or JWK with the kid that the issuer knows (- for stdin)",
    group: "The client:",
    on: EACH_CLIENT,
    isOfServer: true,
  },
  {
    name: "issuer",
    value: "<url>",
    description:
      "Expected issuer; a login uses it also if the server names another one. Credentials are bound to it (or AGENTAUTH_ISSUER)",
    group: "The client:",
    on: [...EACH_CLIENT, "discover"],
    isOfServer: true,
    variable: "AGENTAUTH_ISSUER",
    profile: {
      key: "issuer",
      description: "the only issuer that clients, secrets and assertions are used with",
      values: issuerAddress,
    },
  },
  {
    name: "trustNamedIssuer",
    description: "Bind --client-id to the issuer that the server names, if it is not bound yet",
    group: "The client:",
    on: ["login"],
    client: "trustNamedIssuer",
    isOfServer: true,
  },
  {
    name: "clientMetadataUrl",
    value: "<url>",
    description: 'URL of this client\'s metadata document, or "none"',
    group: "The client:",
    on: ["login", "token", "document"],
    isInteractive: true,
    profile: {
      key: "client_metadata_url",
      description: "the address of the client's metadata document, used where the issuer supports those",
      values: (value: string) => requireRule(!findDocumentUrlProblem(value), findDocumentUrlProblem(value) ?? ""),
    },
  },
  {
    name: "clientName",
    value: "<name>",
    description: 'Name to register the client with (default: "agentauth")',
    group: "The client:",
    on: ["login", "document"],
    values: shortText(100),
    client: "clientName",
  },
  {
    name: "scope",
    value: "<scopes>",
    description: "Scopes to request (default: the server's)",
    group: "Login:",
    on: ["login", "token"],
    isOfServer: true,
    fitsStored: true,
    parameter: "scope",
  },
  {
    name: "resource",
    value: "<uri>",
    description: 'Resource to request, or "none" (default: the server\'s)',
    group: "Login:",
    on: ["login", "discover"],
    client: "resource",
    isOfServer: true,
    parameter: "resource",
  },
  {
    name: "resourceMetadata",
    value: "<url>",
    description: "URL of the server's resource metadata, as a hint names it",
    group: "Login:",
    on: ["login"],
    client: "resourceMetadata",
    isOfServer: true,
  },
  {
    name: "flow",
    value: "<flow>",
    description: "Login flow",
    group: "Login:",
    on: ["login", "token"],
    values: ["browser", "device", "paste"],
    isInteractive: true,
  },
  {
    name: "browser",
    value: "<command>",
    description: 'Command that opens the browser, or "none"',
    group: "Login:",
    on: ["login", "token", "stored"],
  },
  {
    name: "redirectUri",
    value: "<uri>",
    description:
      "Redirect URI of your own, such as https behind a proxy; the three parts are then those of the address to listen at",
    group: "Login:",
    on: ["login"],
    values: readRedirectUri,
    method: "redirectUri",
    isInteractive: true,
    parameter: "redirectUri",
  },
  {
    name: "redirectHost",
    value: "<host>",
    description: "Host name in the redirect URI",
    group: "Login:",
    on: ["login"],
    values: ["127.0.0.1", "localhost"],
    method: "redirectHost",
    isInteractive: true,
    parameter: "redirectUri",
  },
  {
    name: "redirectPort",
    value: "<port>",
    description: "Port in the redirect URI (default: a free one)",
    group: "Login:",
    on: ["login"],
    values: wholeNumber(1, 65_535),
    method: "redirectPort",
    isInteractive: true,
    parameter: "redirectUri",
  },
  {
    name: "redirectPath",
    value: "<path>",
    description: "Path in the redirect URI (default: /callback)",
    group: "Login:",
    on: ["login"],
    values: readRedirectPath,
    method: "redirectPath",
    isInteractive: true,
    parameter: "redirectUri",
  },
  {
    name: "loginTimeout",
    value: "<seconds>",
    description: "Time limit for the user to log in, in seconds (default: 300)",
    group: "Login:",
    on: ["login", "token"],
    values: parseSeconds,
    method: "loginTimeoutSeconds",
    isInteractive: true,
  },
  {
    name: "accountHint",
    value: "<account>",
    description: "Account to log in with",
    group: "Login:",
    on: ["login", "token"],
    client: "loginHint",
    isInteractive: true,
    isOfServer: true,
    parameter: "loginHint",
  },
  {
    name: "authorizeParam",
    value: "<name=value>",
    description: "Parameter that the issuer wants in the login URL; repeatable, and an empty value leaves one out",
    group: "Login:",
    on: ["login"],
    values: readAuthorizeParam,
    profile: {
      key: "authorize_params",
      description: 'parameters that every login sends, such as "access_type=offline&prompt=consent"',
      values: readAuthorizationParams,
    },
  },
  {
    name: "dpop",
    value: "<policy>",
    description: "Bind tokens to a key of this machine (default: auto, where the server requires it)",
    group: "Login:",
    on: ["login"],
    values: ["off", "auto", "required"],
    client: "dpop",
    isOfServer: true,
    parameter: "dpop",
  },
  ...(
    [
      ["allowMissingPkceMetadata", "Accept an issuer whose metadata does not announce PKCE"],
      ["allowPrivateNetwork", "Allow a public server to name loopback or private addresses"],
      ["allowCrossOriginMetadata", "Follow resource metadata to another origin"],
      ["allowCrossOriginEndpoints", "Accept an issuer that sends the authorization code to another origin"],
      ["legacyDiscovery", "Use the discovery rules of MCP revision 2025-03-26"],
      ["strictResource", "Require the resource to be exactly the requested URL"],
      ["sameOriginEndpoints", "Require all endpoints of the issuer to share its origin"],
    ] as const
  ).map(
    ([name, description]) =>
      ({ name, description, group: "Security policy:", on: ["login", "discover"], policy: name }) as const,
  ),
  {
    name: "acceptTokenType",
    value: "<type>",
    description: "Use tokens of this type as bearer tokens",
    group: "Security policy:",
    on: ["login", "discover"],
    values: readTokenType,
    policy: "acceptTokenType",
  },
] as const satisfies readonly LoginSetting[];

type Row = (typeof LOGIN_SETTINGS)[number];
type ValueOf<R> = R extends { values: readonly (infer Choice)[] }
  ? Choice
  : R extends { values: (value: string, previous: never) => infer Read }
    ? Read
    : R extends { value: string }
      ? string
      : boolean;

/** The settings of a login as a command line gives them. */
export type LoginFlags = { [R in Row as R["name"]]?: ValueOf<R> | undefined };

type ProfileRow = Extract<Row, { profile: unknown }>;

/** The settings of a profile that are settings of a login. */
export type LoginProfileKey = ProfileRow["profile"]["key"];

/** Those that a profile or the environment can set. */
export type ProfileLoginSetting = ProfileRow["name"];

/** The settings of a login that a profile can set, each with its rule. */
export const LOGIN_PROFILE_KEYS = Object.fromEntries(
  loginSettings().flatMap(({ profile }) => (profile === undefined ? [] : [[profile.key, profile]])),
) as unknown as Readonly<Record<LoginProfileKey, SettingInfo>>;

/** The rows of the table. */
export function loginSettings(): readonly LoginSetting[] {
  return LOGIN_SETTINGS;
}

/** The options of `AgentClient` that flags of a login name. */
export function toClientOptions(flags: LoginFlags): Partial<AgentClientOptions> {
  return { ...pick(flags, "client"), policy: pick(flags, "policy") };
}

/** The options of `terminalLogin()` that flags of a login name. */
export function loginMethodOptions(flags: LoginFlags): Partial<TerminalLoginOptions> {
  return pick(flags, "method");
}

function pick(flags: LoginFlags, target: "client" | "policy" | "method"): object {
  const given: Readonly<Record<string, unknown>> = flags;
  return Object.fromEntries(
    loginSettings().flatMap(({ name, [target]: option }) =>
      option === undefined || given[name] === undefined ? [] : [[option, given[name]]],
    ),
  );
}

/** One of several parameters of the authorization request, beside those that were read before. */
export function readAuthorizeParam(text: string, previous: AuthorizationParams = {}): AuthorizationParams {
  const at = text.indexOf("=");
  requireRule(at >= 1, "must be name=value, or name= to leave the parameter out");
  const [name, value] = [text.slice(0, at), text.slice(at + 1)];
  checkAuthorizationParam(name, value, flagsOfParameter);
  return { ...previous, [name]: value };
}

/** The parameters of the setting `authorize_params`. @throws `TypeError` with the rule */
export function readAuthorizationParams(text: string): AuthorizationParams {
  const pairs = [...new URLSearchParams(text)];
  requireRule(pairs.length > 0, "must be name=value, with & between several");
  for (const [name, value] of pairs) checkAuthorizationParam(name, value);
  return Object.fromEntries(pairs);
}

function flagsOfParameter(parameter: FlowOption): string {
  return loginSettings()
    .filter((row) => row.parameter === parameter)
    .map(({ name }) => flagFor(name))
    .join(", ");
}

/** The flag of an option as it is typed: `--page-size` for `pageSize`. */
export function flagFor(option: string): string {
  return `--${option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function readRedirectUri(value: string): string {
  requireRule(isRedirectUri(value), REDIRECT_URI_RULE);
  return value;
}

function readRedirectPath(value: string): string {
  requireRule(isPlainPath(value), REDIRECT_PATH_RULE);
  return value;
}

function readTokenType(value: string): string {
  requireRule(isAcceptableTokenType(value), TOKEN_TYPE_RULE);
  return value;
}
