import type { Command } from "commander";
import { FORMATS, type Format } from "../../profile/settings.js";
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
export function textOrJson(about = "Output format"): readonly FlagRow[] {
  return [["-o, --output <format>", about, ["text", "json"]], AS_JSON];
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
