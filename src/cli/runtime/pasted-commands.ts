import { flagOf, loginSettings } from "../../profile/login-settings.js";
import { shellWord } from "../../redact.js";
import type { LoginRemedy, Remedy, UnseenByLogin } from "../../remedy.js";
import { flagText, paramFlags } from "../flags/flag-name.js";

/** Placeholder for a client id, which the user replaces. */
const CLIENT_ID = "<client_id>";

/** Placeholder for a URL, which the user replaces. */
const ANY_URL = "<url>";

/** Placeholder for the MCP server, where it is not known. */
export const ANY_SERVER = "<mcp_url>";

/** A word for the shell; a placeholder stays readable. */
export function wordOf(word: string): string {
  return [CLIENT_ID, ANY_URL, ANY_SERVER].includes(word) ? word : shellWord(word);
}

/** A positional argument for the shell: the parser takes one that begins with a dash for a flag, unless it comes after `--`. */
export function operandToPaste(word: string): string {
  return word.startsWith("-") ? `-- ${shellWord(word)}` : wordOf(word);
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

/** What the command of a login depends on beside its remedy. */
export interface LoginCommandContext {
  /** The flags of a login as they were typed, each with its value. */
  flags?: readonly (readonly string[])[];
  /** Whether an agent is to run the command: it gets the login in two steps. */
  isForAgent?: boolean;
}

/** Whether a flag is about one server: a login at the identity provider has none, or another value. */
function isOfServer(flag: string): boolean {
  return loginSettings().some((row) => row.isOfServer && flagOf(row.name) === flag);
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
  return ["agentauth login", ...[...(idp ? ["--idp"] : []), server, ...words].map(wordOf)].join(" ");
}

/** What a later flag replaces: one of the same name, or the same parameter of the authorization request. */
function nameOfFlag([flag = "", value = ""]: readonly string[]): string {
  return flag === "--authorize-param" ? `${flag} ${value.slice(0, value.indexOf("="))}` : flag;
}

/** Whether scopes, which a server may have named, belong in a command to paste: text that reads as a command does not. */
function isHarmless(scope: string): boolean {
  return scope.split(" ").every((one) => /^[\w.:/][\w.:/-]*$/.test(one));
}

/** The flags for everything that a remedy names, each with its value. */
function flagsOf(remedy: Remedy): string[][] {
  const login = "login" in remedy ? remedy.login : undefined;
  const client = remedy.action === "allow" && remedy.clientIssuer ? clientFlags(remedy.clientIssuer) : [];
  return [...client, ...optionsOf(remedy), ...(login === undefined ? [] : unseenFlags(login))];
}

/** The flags for what a login cannot find out. */
function unseenFlags({ scope = "", resourceMetadata }: UnseenByLogin): string[][] {
  return [
    ...(isHarmless(scope) ? [["--scope", scope]] : []),
    ...(resourceMetadata === undefined ? [] : [["--resource-metadata", urlToPaste(resourceMetadata)]]),
  ];
}

export function optionsOf(remedy: Remedy): string[][] {
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
export function redirectToRegister({ flags = [] }: LoginCommandContext): { address: string; flags: string[][] } {
  const given = (name: string) => flags.find(([flag]) => flag === name)?.[1];
  const own = given("--redirect-uri");
  if (own !== undefined) return { address: own, flags: [] };
  const port = given("--redirect-port");
  const host = given("--redirect-host") ?? "127.0.0.1";
  const address = `http://${host}:${port ?? REDIRECT_PORT}${given("--redirect-path") ?? "/callback"}`;
  return { address, flags: port === undefined ? [["--redirect-port", REDIRECT_PORT]] : [] };
}

/** Whether a command with the flags of a remedy can be pasted as it is. */
export function isWhole(remedy: Remedy): boolean {
  return !flagsOf(remedy).flat().includes(ANY_URL);
}

/** The command that logs in at a server with everything that the remedies name, beside the flags that were given. */
export function loginCommandWith(
  server: string,
  remedies: readonly Remedy[],
  context: LoginCommandContext = {},
): string {
  const needsClient = remedies.some((remedy) => "clientIssuer" in remedy && remedy.clientIssuer !== undefined);
  const added = [...remedies.flatMap(flagsOf), ...(needsClient ? redirectToRegister(context).flags : [])];
  const given = (context.flags ?? []).filter(([flag]) => !added.some(([one]) => one === flag));
  const flags = [...given, ...added];
  return loginCommand({ action: "login", server }, { ...context, flags });
}
