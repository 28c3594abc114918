import type { CommanderError } from "commander";
import { AgentAuthError, usageError } from "../../errors.js";
import { suggest } from "../../http/suggest.js";
import { flagFor, loginSettings } from "../../profile/login-settings.js";
import { storingToken } from "../../profile/service-settings.js";
import { quote, type Redactor, shellWord } from "../../redact.js";

const giveApiToken = () => `set AGENTAUTH_API_TOKEN, or keep it: ${storingToken()}`;
const GIVE_CLIENT_SECRET = "set AGENTAUTH_CLIENT_SECRET, or give --client-secret-file <file> (- reads stdin)";
const GIVE_ELSEWHERE = "give it in the environment, on stdin or in a private file: agentauth help environment";

// Flags that a user may try, each with what to use instead. The exact name first, then its last word.
const REMEDIES: Readonly<Record<string, string | (() => string)>> = {
  "client-secret": GIVE_CLIENT_SECRET,
  "id-token": "set AGENTAUTH_ID_TOKEN, also to file:<path>",
  "idp-client-secret": "set AGENTAUTH_IDP_CLIENT_SECRET, also to file:<path>",
  "subject-token": "set AGENTAUTH_SUBJECT_TOKEN, or give --subject-token-file <file> (- reads stdin)",
  "refresh-token": "agentauth login stores it, and nothing else needs it",
  token: giveApiToken,
  "api-key": giveApiToken,
  apikey: giveApiToken,
  bearer: giveApiToken,
  authorization: giveApiToken,
  auth: giveApiToken,
  "store-url": "set AGENTAUTH_STORE_URL, or keep it: agentauth config set store_url file:<path>",
  "store-keys": "set AGENTAUTH_STORE_KEYS, or keep them: agentauth config set store_keys file:<path>",
  secret: GIVE_CLIENT_SECRET,
  password: GIVE_ELSEWHERE,
  passwd: GIVE_ELSEWHERE,
  pass: GIVE_ELSEWHERE,
  passphrase: GIVE_ELSEWHERE,
  credential: GIVE_ELSEWHERE,
  credentials: GIVE_ELSEWHERE,
  "client-assertion": "give --assertion <source>, such as file:<path>",
  verifier: GIVE_ELSEWHERE,
  code: "agentauth login <mcp_url> --flow paste reads it without showing it",
  jwt: GIVE_ELSEWHERE,
};

/**
 * The error for an unknown flag that is named like a secret: no flag of ours takes one, since a command line can be read
 * by every program of the user and stays in the shell's history.
 *
 * @param flag as it was typed, with or without `=value`
 * @returns undefined for any other flag
 */
export function secretFlagError(flag: string): AgentAuthError | undefined {
  const name = flagName(flag);
  const words = name
    .slice(2)
    .replace(/([a-z\d])([A-Z])/g, "$1-$2")
    .replaceAll("_", "-")
    .toLowerCase();
  const remedy = ownFlag(words) ?? ownFlag(words.slice(words.lastIndexOf("-") + 1));
  if (!name.startsWith("--") || remedy === undefined) return undefined;
  return usageError(
    `${name}: a secret must not be on the command line, where other programs can read it and the shell stores it`,
    `${remedy}; and revoke the one that was typed here`,
  );
}

/** A flag as it was typed, without its value. */
function flagName(flag: string): string {
  return flag.split("=", 1)[0] ?? "";
}

function ownFlag(name: string): string | undefined {
  const remedy = Object.hasOwn(REMEDIES, name) ? REMEDIES[name] : undefined;
  return typeof remedy === "function" ? remedy() : remedy;
}

// A JSON Web Token, and a token of the sandbox.
const TOKEN_LIKE = /^(?:bearer\s+)?(?:eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|sandbox_[\w-]{20,})$/i;

/** Masks in every message what is on a command line by mistake: words that are tokens, values of secret flags. */
export function hideSecretWords(argv: readonly string[], redactor: Pick<Redactor, "add">): void {
  for (const [index, word] of argv.entries()) {
    const [name, value] = [flagName(word), word.slice(flagName(word).length + 1)];
    if (TOKEN_LIKE.test(word)) redactor.add(word);
    if (name === "--callback-url") hideCode(value || (argv[index + 1] ?? ""), redactor);
    if (!word.startsWith("--") || secretFlagError(name) === undefined) continue;
    redactor.add(value);
    const next = argv[index + 1];
    if (value === "" && next !== undefined && !next.startsWith("-")) redactor.add(next);
  }
}

function hideCode(callback: string, redactor: Pick<Redactor, "add">): void {
  redactor.add(callback);
  redactor.add(new URLSearchParams(callback.slice(callback.indexOf("?") + 1)).get("code") ?? "");
}

/** An error of the parser, with its command, the first unexpected argument, and the flag that takes an id instead. */
export type ParserError = CommanderError & {
  command?: string;
  /** What was typed after the command and its flags. */
  args?: readonly string[];
  unexpected?: string | undefined;
  idFlag?: string | undefined;
  /** The flags of the command, and those of all commands. */
  flags?: readonly (string | undefined)[];
};

const BAD_VALUE = /^option '(?:-\w, )?(?<name>--[\w-]+)[^']*' argument '(?<value>.*)' is invalid\. (?<rule>.*)$/s;
const BAD_OPERAND = /^command-argument value '(?<value>.*)' is invalid for argument '(?<name>[\w-]+)'\. (?<rule>.*)$/s;
// Without the value, which may be a secret.
const UNKNOWN_COMMAND = /^unknown command '([\w-]+)'/;
const UNKNOWN_FLAG = /^unknown option '([^='\s]+)/;
const CHOICES = /^Allowed choices are (.+)\.$/;

/** Command lines of other programs, and those that do the same here; each begins after `agentauth`. */
const WORDS_OF_OTHERS: Readonly<Record<string, string>> = {
  auth: "agentauth login <mcp_url>",
  "auth logout": "agentauth logout <mcp_url>",
  "auth status": "agentauth status",
  "auth token": "agentauth token <mcp_url>",
  call: "agentauth mcp call <mcp_url> <tool>",
  "config show": "agentauth config list",
  curl: "agentauth request <mcp_url>",
  "devices show": "agentauth devices get <device_id>",
  "domains show": "agentauth domains get <domain_id>",
  init: "agentauth config set base_url <url>, or agentauth demo",
  list: "agentauth devices list",
  ls: "agentauth devices list",
  "mcp install": "agentauth mcp add <host> <mcp_url>",
  "pools show": "agentauth pools get <pool_id>",
  refresh: "agentauth token <mcp_url> --force-refresh",
  "token --json": "--format json",
  "token --output": "--format json",
  "token -o": "--format json",
  tools: "agentauth mcp tools <mcp_url>",
  version: "agentauth --version",
  whoami: "agentauth status",
};

/** Flags of other programs, and those that do the same at a command that has them. */
const FLAGS_OF_OTHERS: Readonly<Record<string, string>> = {
  "--callback-port": "--redirect-port <port>",
  "--device": "--flow device",
  "--format": "-o <format>",
  "--headless": "--flow paste or --flow device",
  "--refresh": "--force-refresh",
  "-p": "--profile <name>",
};

/** Formats of other programs, and those that do the same here. */
const FORMATS_OF_OTHERS: Readonly<Record<string, string>> = {
  excel: "csv",
  jsonl: "ndjson",
  text: "plain",
  tsv: "plain",
  xlsx: "csv",
  yaml: "json",
};

/** What the service has no operation for. */
const NO_OPERATION = /^(?:account|domain|pool|device)s (?:add|create|delete|edit|remove|revoke|rm|update)$/;

/** The parser's error in the form of every other error. */
export function toUsageError(error: ParserError): AgentAuthError {
  const complaint = error.message.replace(/^error: /, "");
  const [first = "", ...rest] = complaint.split("\n");
  const flag = UNKNOWN_FLAG.exec(first)?.[1];
  const secret = flag === undefined ? undefined : secretFlagError(flag);
  if (secret) return secret;
  const word = flag ?? UNKNOWN_COMMAND.exec(first)?.[1];
  const suggestion = word && (wordOfOthers(error, word) ?? nearWord(word, rest.join(" ")));
  const message = flag === undefined ? first : `unknown option '${flag}'`;
  const problem = badValue(complaint) ?? unexpectedArgument(error) ?? { message, suggestion };
  return new AgentAuthError("usage", problem.message, {
    class: "usage",
    hint:
      (flag && loginFlagHint(error, flag)) ??
      (NO_OPERATION.test(`${error.command?.split(" ")[1]} ${word}`)
        ? "the service has no such operation"
        : undefined) ??
      (problem.suggestion === undefined
        ? `${seeHelp(error.command)}${isLikeId(flag) ? "; an argument that begins with - comes after --" : ""}`
        : `did you mean ${problem.suggestion}?`),
    // Its message repeats what was typed.
    ...(flag === undefined && { cause: error }),
  });
}

/** The hint for a setting of a login at a command that uses what the login stored. */
function loginFlagHint({ command, args = [] }: ParserError, flag: string): string | undefined {
  const setting = loginSettings().find(({ name }) => flagFor(name) === flag);
  const url = urlIn(args);
  if (setting === undefined || url === undefined || command === "agentauth login") return undefined;
  const value = setting.value === undefined ? "" : ` ${setting.value}`;
  return `a login stores it: agentauth login ${shellWord(url)} ${flag}${value}`;
}

/** The URL among the arguments, unless its query or user may have a secret. */
function urlIn(args: readonly string[]): string | undefined {
  return args.find((one) => /^https?:[^?#@]+$/.test(one));
}

function wordOfOthers(error: ParserError, word: string): string | undefined {
  const { command = "", args = [] } = error;
  const typed = [...command.split(" ").slice(1), word].join(" ");
  const name = [`${typed} ${args[1]}`, typed].find((one) => Object.hasOwn(WORDS_OF_OTHERS, one)) ?? "";
  const url = urlIn(args);
  const suggestion = WORDS_OF_OTHERS[name] ?? flagOfOthers(error, word);
  return url === undefined ? suggestion : suggestion?.replace("<mcp_url>", () => shellWord(url));
}

function flagOfOthers({ flags = [], args = [] }: ParserError, word: string): string | undefined {
  const flag = Object.hasOwn(FLAGS_OF_OTHERS, word) ? FLAGS_OF_OTHERS[word] : undefined;
  if (!flags.includes(flag?.split(" ")[0])) return undefined;
  const next = args[args.indexOf(word) + 1] ?? "";
  const value = formatOfOthers(next) ?? next;
  // What else may follow, such as a password, is not repeated.
  return flag?.replace(/<(?:format|port)>/, (placeholder) => (/^\w+$/.test(value) ? value : placeholder));
}

function formatOfOthers(format: string): string | undefined {
  return Object.hasOwn(FORMATS_OF_OTHERS, format) ? FORMATS_OF_OTHERS[format] : undefined;
}

/** The suggestion of the parser, which finds words that are too far away for a mistake in typing. */
function nearWord(word: string, suggested: string): string | undefined {
  const words = /^\(Did you mean (?:one of )?(.+)\?\)$/.exec(suggested.trim())?.[1]?.split(", ") ?? [];
  const candidates = words.map((one) => one.replace(/^-+/, ""));
  const near = suggest(word.replace(/^-+/, ""), candidates);
  return near === undefined ? undefined : words[candidates.indexOf(near)];
}

/** Whether an unknown flag may be an id: some issuers and services draw ids that begin with a dash. */
function isLikeId(flag: string | undefined): boolean {
  return flag !== undefined && /^-[^-]./.test(flag);
}

export function seeHelp(command = "agentauth"): string {
  return `see ${command} --help`;
}

/** The argument that the command does not take, with the flag that does; commander names only their number. */
function unexpectedArgument({ code, unexpected, idFlag }: ParserError): Problem | undefined {
  if (code !== "commander.excessArguments" || unexpected === undefined) return undefined;
  const suggestion = idFlag === undefined ? undefined : `${idFlag} ${shellWord(unexpected)}`;
  return { message: `unexpected argument ${quote(unexpected, 80)}`, suggestion };
}

interface Problem {
  message: string;
  suggestion: string | undefined;
}

/** What is wrong with the value of a flag or with an operand, if that is what the parser complains about. */
function badValue(complaint: string): Problem | undefined {
  const { name, value, rule } = (BAD_VALUE.exec(complaint) ?? BAD_OPERAND.exec(complaint))?.groups ?? {};
  if (name === undefined || value === undefined || rule === undefined) return undefined;
  const choices = CHOICES.exec(rule)?.[1];
  if (choices === undefined) return { message: `${name} ${quote(value, 80)} ${rule}`, suggestion: undefined };
  const all = choices.split(", ");
  const known = formatOfOthers(value) ?? "";
  return {
    message: `${name} ${quote(value, 80)} must be one of ${choices}`,
    suggestion: all.includes(known) ? known : suggest(value, all),
  };
}
