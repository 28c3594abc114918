import type { Command, Option } from "commander";
import { parseSeconds, wholeNumber } from "../../profile/login-settings.js";
import { FORMATS, type Format, type SettingFlags } from "../../profile/settings.js";
import { addFlags, type FlagRow } from "./values.js";

export interface OutputFlags {
  output?: Format;
  json?: boolean;
  jq?: string;
  showSecrets?: boolean;
}

/** The formats of what is no list: a text to read, or data. */
export const DOCUMENT_FORMATS = ["table", "plain", "json", "ndjson"] as const satisfies readonly Format[];

const OUTPUT = "Output:";

const AS_JSON: FlagRow = ["--json", "Same as -o json"];
const JQ: FlagRow = ["--jq <expression>", "Filter JSON with a jq expression"];

/** The flags of a command that prints a text to read, or JSON; a few that are no list. */
export function textOrJson(description = "Output format"): readonly FlagRow[] {
  return [["-o, --output <format>", description, ["text", "json"]], AS_JSON];
}

/** The flags of a command that prints a text to read, or data. It has no `--show-secrets`: its output is made to be shared. */
export function addDocumentFlags(command: Command, formats: readonly Format[]): Command {
  const output: FlagRow = ["-o, --output <format>", "Output format (default: text for reading)", formats];
  return addFlags(command, OUTPUT, [output, AS_JSON, JQ]);
}

/** The flags of a command that prints one object or a list. */
export function addOutputFlags(command: Command): Command {
  return addFlags(command, OUTPUT, [
    ["-o, --output <format>", "Output format (default: table on a terminal, plain in a pipe)", FORMATS],
    AS_JSON,
    JQ,
    ["--show-secrets", "Print client secrets unmasked (if CI is set, only with --yes)"],
    ["--yes", "Confirm --show-secrets if CI is set"],
  ]);
}

/** The flags that every command knows, as commander names them. */
export interface GlobalFlags extends SettingFlags {
  timeout?: number;
  retries?: number;
  proxy?: string;
  caFile?: string;
  clientCert?: string;
  clientKey?: string;
  verbose?: boolean;
  debug?: boolean;
  quiet?: boolean;
  color?: boolean;
  input?: boolean;
}

const CONNECTION = new Set(["profile", "proxy", "caFile", "useSystemCa", "clientCert", "clientKey"]);

/** Whether a flag decides how a login reaches its servers, and where it is stored: a hint repeats it. */
export function isConnectionOption(option: Option): boolean {
  return CONNECTION.has(option.attributeName());
}

/** The flags that every command accepts, before or after its name. */
export function addGlobalFlags(program: Command): Command {
  addFlags(program, "Service:", [
    ["--profile <name>", "Profile to use"],
    ["--base-url <url>", "Base URL of the service"],
  ]);
  addFlags(program, "Network:", [
    ["--timeout <seconds>", "Timeout of each attempt in seconds (default: 30)", parseSeconds],
    ["--retries <n>", "Number of retries of a failed request (default: 2)", wholeNumber(0, 20)],
    ["--proxy <url>", "Send requests through this proxy"],
    ["--ca-file <file>", "Trust these additional certificate authorities (PEM)"],
    ["--use-system-ca", "Trust the certificate authorities of the system too (Node 22.15 or later)"],
    ["--client-cert <file>", "Client certificate for servers that require one (PEM)"],
    ["--client-key <file>", "Private key of the client certificate, if in another file (PEM)"],
  ]);
  return addFlags(program, "Messages:", [
    ["-v, --verbose", "Log each step and request to stderr"],
    ["--debug", "Like --verbose, plus headers (secrets masked) and stack traces"],
    ["-q, --quiet", "Print only errors and warnings to stderr"],
    ["--no-color", "Print without colours"],
    ["--no-input", "Never prompt and never open a browser"],
  ]);
}
