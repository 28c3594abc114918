import { type AgentAuthError, withHint } from "../../errors.js";
import { parseUrl } from "../../http/address.js";
import { LOGIN_HINT } from "../../oauth/grant/grant-requirements.js";
import { NO_RESOURCE } from "../../oauth/model/resource.js";
import { flagFor, loginSettings } from "../../profile/login-settings.js";
import { storingToken } from "../../profile/service-settings.js";
import { quote, shellWord } from "../../redact.js";
import type {
  AllowRemedy,
  ConfigureOption,
  ConfigureRemedy,
  LoginRemedy,
  Remedy,
  UnseenByLogin,
} from "../../remedy.js";
import { flagText, paramFlags } from "../flags/flag-name.js";

/** Placeholder for a client id, which the user replaces. */
const CLIENT_ID = "<client_id>";

/** Placeholder for a URL, which the user replaces. */
const ANY_URL = "<url>";

/** Placeholder for the MCP server, where it is not known. */
const ANY_SERVER = "<mcp_url>";

/** A word for the shell; a placeholder stays readable. */
function formatWord(word: string): string {
  return [CLIENT_ID, ANY_URL, ANY_SERVER].includes(word) ? word : shellWord(word);
}

/** A positional argument for the shell: the parser takes one that begins with a dash for a flag, unless it comes after `--`. */
export function operandToPaste(word: string): string {
  return word.startsWith("-") ? `-- ${shellWord(word)}` : formatWord(word);
}

/** Maximum length of a URL in a command to paste. */
const MAX_PASTED = 500;

/** A URL that a server chose, for a command to paste: a placeholder unless no shell, of Windows either, acts on it. */
export function urlToPaste(url: string): string {
  return url.length <= MAX_PASTED && /^https?:\/\/[\w.:/~@{}[\]-]+$/.test(url) ? url : ANY_URL;
}

/** The value of a flag for a command to paste, where a server may have chosen it. */
function valueToPaste(option: string, value: string): string {
  return ["issuer", "resource"].includes(option) ? urlToPaste(value) : value;
}

/** Context of the command of a login. */
export interface LoginCommandContext {
  /** The flags of a login as they were typed, each with its value. */
  flags?: readonly (readonly string[])[];
  /** Whether an agent is to run the command: it gets the login in two steps. */
  isForAgent?: boolean;
}

/** Whether a flag is about one server: a login at the identity provider has none, or another value. */
function isOfServer(flag: string): boolean {
  return loginSettings().some((row) => row.isOfServer && flagFor(row.name) === flag);
}

/** The command that logs in, with the flags that the remedy names, then those that were given. */
export function loginCommand(
  { server, idp, profile, account, scope, dpop, resourceMetadata, authorizationParams = {} }: LoginRemedy,
  { flags = [], isForAgent = false }: LoginCommandContext = {},
): string {
  const all = [
    ...(profile === undefined ? [] : [["--profile", profile]]),
    ...(account === undefined ? [] : [["--account-hint", account]]),
    ...unseenFlags({ scope, resourceMetadata }),
    ...(dpop === undefined ? [] : [["--dpop", dpop]]),
    ...paramFlags(authorizationParams),
    ...flags.filter(([flag = ""]) => !idp || !isOfServer(flag)),
    ...(isForAgent ? [["--no-wait"], ["--json"]] : []),
  ];
  const names = all.map(nameOfFlag);
  const words = all.filter((_, index) => names.indexOf(names[index] ?? "") === index).flat();
  return ["agentauth login", ...[...(idp ? ["--idp"] : []), server, ...words].map(formatWord)].join(" ");
}

/** What a later flag replaces: one of the same name, or the same parameter of the authorization request. */
function nameOfFlag([flag = "", value = ""]: readonly string[]): string {
  return flag === "--authorize-param" ? `${flag} ${value.slice(0, value.indexOf("="))}` : flag;
}

/** The flags for everything that a remedy names, each with its value. */
function remedyFlags(remedy: Remedy): string[][] {
  const login = "login" in remedy ? remedy.login : undefined;
  const client = remedy.action === "allow" && remedy.clientIssuer ? clientFlags(remedy.clientIssuer) : [];
  return [...client, ...remedyOptions(remedy), ...(login === undefined ? [] : unseenFlags(login))];
}

/** The flags for what a login cannot find out. */
function unseenFlags({ scope = "", resourceMetadata }: UnseenByLogin): string[][] {
  return [
    ...(scope.split(" ").every((one) => /^[\w.:/][\w.:/-]*$/.test(one)) ? [["--scope", scope]] : []),
    ...(resourceMetadata === undefined ? [] : [["--resource-metadata", urlToPaste(resourceMetadata)]]),
  ];
}

function remedyOptions(remedy: Remedy): string[][] {
  if (remedy.action === "allow") {
    const { option, value = option === "dpop" ? "auto" : undefined, also = [] } = remedy;
    const words = value === undefined ? [] : [valueToPaste(option, value)];
    return [[flagText(option), ...words], ...also.map((one) => [flagText(one)])];
  }
  if (remedy.action !== "configure") return [];
  const { option, value } = remedy;
  if (option === "client") return clientFlags(remedy.clientIssuer ?? value);
  return value === undefined ? [] : [[flagText(option), valueToPaste(option, value)]];
}

/** The flags for a client that the user registers by hand. */
function clientFlags(issuer: string | undefined): string[][] {
  return [["--client-id", CLIENT_ID], ...(issuer === undefined ? [] : [["--issuer", urlToPaste(issuer)]])];
}

/** The port of the redirect address of a client that is registered by hand, where the user names none. */
const REDIRECT_PORT = "28461";

/** The redirect address to register a client with, by the flags of its login, and the flags that fix it beside those. */
function redirectToRegister({ flags = [] }: LoginCommandContext): { address: string; flags: string[][] } {
  const given = (name: string) => flags.find(([flag]) => flag === name)?.[1];
  const own = given("--redirect-uri");
  if (own !== undefined) return { address: own, flags: [] };
  const port = given("--redirect-port");
  const host = given("--redirect-host") ?? "127.0.0.1";
  const address = `http://${host}:${port ?? REDIRECT_PORT}${given("--redirect-path") ?? "/callback"}`;
  return { address, flags: port === undefined ? [["--redirect-port", REDIRECT_PORT]] : [] };
}

/** Whether a command with the flags of a remedy can be pasted as it is. */
function isWhole(remedy: Remedy): boolean {
  return !remedyFlags(remedy).flat().includes(ANY_URL);
}

/** The command that logs in at a server with everything that the remedies name, beside the flags that were given. */
export function loginCommandWith(
  server: string,
  remedies: readonly Remedy[],
  context: LoginCommandContext = {},
): string {
  const needsClient = remedies.some((remedy) => "clientIssuer" in remedy && remedy.clientIssuer !== undefined);
  const added = [...remedies.flatMap(remedyFlags), ...(needsClient ? redirectToRegister(context).flags : [])];
  const given = (context.flags ?? []).filter(([flag]) => !added.some(([one]) => one === flag));
  const flags = [...given, ...added];
  return loginCommand({ action: "login", server }, { ...context, flags });
}

/** Context of a hint. */
export interface HintContext extends LoginCommandContext {
  /** The command that ran: a hint does not name it. */
  command?: string;
  /** The MCP server that a user logs in at, where the command is about one. */
  server?: string | undefined;
  /** The operands of the command line by their names. */
  operands?: Readonly<Record<string, unknown>>;
}

/** The operand that a placeholder of a hint stands for, and what it looks like. */
const PLACEHOLDERS: Readonly<Record<string, readonly [operand: string, form: RegExp]>> = {
  // A URL may have a secret in its query, or before its host.
  "<mcp_url>": ["url", /^https?:[^?#@]+$/],
  "<host>": ["host", /^[^?#@]+$/],
};

const giveToken = () => `set AGENTAUTH_API_TOKEN, or store a token: ${storingToken()}`;

/** What helps where a service does not apply an order. */
export const SORTING_HINT =
  "agentauth config set sorting <encoding> sends it in another one: deep, json or field:direction";

/** What helps where the library says nothing. */
const DEFAULT_HINTS: Readonly<Record<string, string>> = {
  timeout: "--timeout <seconds> allows more time, --retries <n> more attempts",
  proxy_failed: "check --proxy, or HTTPS_PROXY in the environment; NO_PROXY names hosts to reach without it",
  store_unavailable: "call again later; agentauth doctor examines the store",
  grant_not_saved: "agentauth tries to store it for half a minute before it exits; then run the command again",
  list_changed: "run the command again; without --strict a list that changes is reported as a warning",
};

const LATER = "call again later, or allow more attempts with --retries <n>";

/**
 * The error with a hint for the command line in place of its remedy. No module but this one and login-command.ts makes
 * commands of remedies.
 */
export function cliHint(error: AgentAuthError, context: HintContext = {}): AgentAuthError {
  // Its report shows the address.
  if (error.remedy?.action === "open") return error;
  const known =
    error.remedy === undefined ? (error.hint ?? missingHint(error)) : buildHint(error.remedy, error, context);
  const hint = known?.replace(/<\w+>/g, (placeholder) => {
    const [operand = "", form] = ownValue(PLACEHOLDERS, placeholder) ?? [];
    const value = context.operands?.[operand];
    return typeof value === "string" && form?.test(value) ? operandToPaste(value) : placeholder;
  });
  return hint === error.hint && error.remedy === undefined ? error : withHint(error, hint);
}

function buildHint(remedy: Remedy, error: AgentAuthError, context: HintContext): string | undefined {
  switch (remedy.action) {
    case "login":
      return loginHint(remedy, error, context);
    case "configure":
      return ownValue(CONFIGURE, remedy.option)?.(error, remedy, context) ?? error.hint;
    case "allow":
      return allowHint(remedy, context);
    case "connect":
      return `${listTools(remedy.server)} works without one`;
    case "token":
      return `a token comes by: agentauth token <mcp_url> --grant ${remedy.grant?.replace("_", "-") ?? "<grant>"}`;
    case "inspect":
      return ownValue(INSPECT, remedy.subject)?.(error, context, context);
    default:
      // The library's hint is for a process that goes on.
      return error.code === "grant_not_saved" ? missingHint(error) : (error.hint ?? missingHint(error));
  }
}

function loginHint(remedy: LoginRemedy, { hint = LOGIN_HINT }: AgentAuthError, context: HintContext): string {
  switch (remedy.option) {
    case "loginTimeoutMs":
      // The first login at an identity provider needs its flags.
      return `run ${loginCommand(remedy, remedy.idp ? context : {})} again; --login-timeout <seconds> gives more time`;
    case "scope":
      return `${loginCommand(remedy)} --scope "<scopes>" asks for others`;
    case "clientId":
      return `name one with --client-id, or log in first: ${loginCommand(remedy, context)}`;
    default:
      return `${hint === LOGIN_HINT ? "" : `${hint}: `}${loginCommand(remedy, context)}`;
  }
}

function allowHint(remedy: AllowRemedy, context: HintContext): string {
  const { option, also = [] } = remedy;
  if (option === "allowNonLoopback") return "use 127.0.0.1, or set allowNonLoopback in the file of --options";
  const { command, server } = context;
  const flags = remedyOptions(remedy).map((words) => words.map(formatWord).join(" "));
  const trust = `if you trust this server, ${flags.join(" and ")} ${also.length > 0 ? "disable these checks" : "disables this check"} for it`;
  const parent = `the token may be valid for every server below ${quote(remedy.value)}: if you trust all of them, ${flags[0]} accepts that`;
  const isLegacy = option === "legacyDiscovery" && also.length === 0;
  const known = isLegacy
    ? "a server of the MCP revision 2025-03-26 is reached with --legacy-discovery"
    : option === "resource"
      ? parent
      : trust;
  const advice = remedy.clientIssuer === undefined ? known : `${known}; ${registerByHand(context)}`;
  if (server !== undefined && isWhole(remedy)) return `${advice}: ${loginCommandWith(server, [remedy], context)}`;
  return `${advice}${isLegacy && command !== "discover" ? "; agentauth discover <mcp_url> shows what was requested" : ""}`;
}

/** How to register a client where the issuer registers none. */
function registerByHand(context: HintContext): string {
  const { address } = redirectToRegister(context);
  const fixed = "--redirect-host, --redirect-port and --redirect-path set another";
  return `register a client with the issuer by hand, with the redirect address ${address} (${fixed}), and log in with it (its secret in AGENTAUTH_CLIENT_SECRET)`;
}

export function listTools(server: string): string {
  return `agentauth mcp tools ${shellWord(server)}`;
}

type HintBuilder<R> = (error: AgentAuthError, details: R, context: HintContext) => string | undefined;

const INSPECT: Readonly<Record<Extract<Remedy, { action: "inspect" }>["subject"], HintBuilder<HintContext>>> = {
  clock: () => "agentauth doctor <mcp_url> shows whether the clock of this machine is right",
  discovery: (_error, { command }) =>
    command === "discover" ? undefined : "agentauth discover <mcp_url> shows every requested address",
  grants: ({ hint }) => `${hint}; agentauth discover <mcp_url> shows which grants it names`,
  logins: () => "agentauth status shows where they should be",
  tables: () => "run the SQL that agentauth store sql prints on this database",
};

/** The flags for an option that is missing or wrong; the code says for which of its uses. */
const CONFIGURE: Readonly<Record<ConfigureOption, HintBuilder<ConfigureRemedy>>> = {
  account: ({ class: kind, hint }) =>
    kind === "store" ? `name the account with --account-hint, or ${hint}` : "name one with --account-hint",
  apiToken: ({ code, hint }) =>
    code === "bad_authtoken" ? `the API token is wrong or has expired; ${giveToken()}` : `${hint}: ${giveToken()}`,
  assertion: ({ hint }) => `${hint}: --assertion <source>`,
  browser: () => "pass --browser a program and its arguments; the address is added as the last one",
  ca: () =>
    "--ca-file <file> trusts a certificate authority of your own, as NODE_EXTRA_CA_CERTS does; --use-system-ca trusts those of this system (Node 22.15 or later)",
  client: (_error, remedy, context) => {
    if (remedy.value !== undefined)
      return `name it: agentauth token <mcp_url> ${remedyOptions(remedy).flat().map(formatWord).join(" ")}`;
    const more: Readonly<Record<string, string>> = {
      clientMetadataUrl: "; or log in with --client-metadata-url <url>",
      clientName: "; where the issuer registers only clients with certain names, --client-name <name>",
    };
    const { server = ANY_SERVER } = context;
    const login = loginCommandWith(server, [remedy], context);
    return `${registerByHand(context)}: ${login}${more[remedy.also ?? ""] ?? ""}`;
  },
  clientCertificate: () =>
    "--client-cert <file> gives a client certificate, --client-key <file> its key where that is in another file",
  clientId: ({ code, hint }, remedy) => {
    switch (code) {
      case "invalid_client":
        if (remedy.clientId === undefined)
          return "name the client of the workload with --client-id: the issuer requires one";
        return checkHint(remedy, "; the issuer may want it to prove itself, by a secret or a key");
      case "issuer_changed":
        return `use a client of the other authorization server with --client-id; if the client has moved, log out where it is used, or name its issuer with --issuer <issuer>`;
      default:
        return `${hint}; --client-id names another one`;
    }
  },
  clientName: (_error, _remedy, { server }) =>
    `${loginAt(server)} --client-name <name> registers under a name that the issuer allows, or --client-id names a client that it registered by hand; claim the name of another product only where its owner allows that`,
  clientSecret: ({ code }, remedy) => {
    if (code === "invalid_client")
      return checkHint(remedy, ", and its secret in AGENTAUTH_CLIENT_SECRET or --client-secret-file");
    return remedy.also === "privateKey"
      ? "give its secret in AGENTAUTH_CLIENT_SECRET, or its key with --private-key <file>"
      : "--client-id, and give it in AGENTAUTH_CLIENT_SECRET or with --client-secret-file <file>";
  },
  flow: ({ code }) => {
    if (code === "login_required") return "run the command in a terminal, or in two steps: --no-wait";
    return code === "no_device_flow"
      ? "use --flow browser, or --flow paste where no browser can reach this machine"
      : "log in without a listener: --flow paste";
  },
  idToken: ({ hint }) => `${hint} in AGENTAUTH_ID_TOKEN`,
  idpTokenEndpoint: () => "--idp-token-endpoint <url>",
  issuer: issuerHint,
  maxPages: () => "begin further on with --offset <n>, or take larger pages with --page-size <n>",
  pageSize: ({ hint }) => `${hint} with --page-size <n>`,
  privateKey: ({ code }, remedy) =>
    code === "invalid_client"
      ? checkHint(remedy, ", and that the issuer knows the public half of --private-key, with its kid if it has one")
      : "--client-id, and give it with --private-key <file>",
  redirectHost: (_error, { value }, { server }) =>
    `the issuer may accept another redirect host: ${loginAt(server)} ${flagText("redirectHost", value)}`,
  redirectPort: ({ hint }, _remedy, { server }) => `${hint}: ${loginAt(server)} --redirect-port <port>`,
  resource: (_error, { value }, { server }) =>
    value === NO_RESOURCE
      ? `the issuer needs a resource: ${loginAt(server)} --resource <uri>`
      : `if you trust this server, ${loginAt(server)} --resource none sends no resource, or --resource <uri> names another one`,
  scope: ({ hint }) => `${hint}: --scope <scopes>`,
  sorting: () => SORTING_HINT,
};

/** The login that a flag of no other command is for. */
function loginAt(server: string | undefined): string {
  return `agentauth login ${server === undefined ? "<mcp_url>" : shellWord(server)}`;
}

/** What to check if an issuer rejects a client; with an identity provider, the client there may be the wrong one. */
function checkHint({ clientId, also }: ConfigureRemedy, proof: string): string {
  const client = `--client-id ${quote(clientId)}${proof}`;
  return also === "idp"
    ? `check both clients: ${client}; and --idp-client-id with AGENTAUTH_IDP_CLIENT_SECRET`
    : `check ${client}`;
}

function issuerHint(
  { code, url }: AgentAuthError,
  { value = "", profile = "default" }: ConfigureRemedy,
  context: HintContext,
): string {
  if (code === "wrong_audience")
    return "have it issued for this issuer; if it is for another one, check the MCP server and --issuer";
  if (code === "issuer_mismatch" || code === "issuer_changed") return expectHint(value, url, context);
  const word = formatWord(urlToPaste(value));
  const set = `agentauth config set issuer ${word}${profile === "default" ? "" : ` --profile ${shellWord(profile)}`}`;
  return `if this is the issuer of the client, add --issuer ${word} (or set it for the profile: ${set}); --trust-named-issuer takes whatever the server names, once`;
}

/**
 * The flag that expects the issuer of a server's metadata in place of the one that the server names.
 *
 * @param claim the address of the document that claims the issuer
 */
function expectHint(value: string, claim: string | undefined, { server, ...context }: HintContext): string {
  if (value === "") return "check --issuer, AGENTAUTH_ISSUER or the issuer of the profile";
  const [placeholder] = /\{\w*\}/.exec(value) ?? [];
  const how = placeholder === undefined ? "" : `, with the id of your own tenant in place of ${placeholder},`;
  const remedy = { action: "configure", option: "issuer", value } as const;
  const command = server === undefined || !isWhole(remedy) ? "" : `: ${loginCommandWith(server, [remedy], context)}`;
  const word = formatWord(urlToPaste(value));
  return `if you trust this server, and its issuer is the right one, add --issuer ${word}${how} to expect that issuer for it${describeClaimant(value, claim)}${command}`;
}

/** Where a login goes if the document that claims the issuer is at another host. */
function describeClaimant(issuer: string, claim: string | undefined): string {
  const host = claim === undefined ? undefined : parseUrl(claim)?.host;
  if (host === undefined || host === parseUrl(issuer)?.host) return "";
  return `; the login and its tokens then go to ${host}, which says that it is this issuer, unless the issuer publishes its own metadata`;
}

function missingHint({ code, class: kind }: AgentAuthError): string | undefined {
  return ownValue(DEFAULT_HINTS, code) ?? (kind === "unavailable" ? LATER : undefined);
}

/** A code may come from a server and a remedy from a file: neither may name what every object has. */
function ownValue<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}
