import { type Command, Option } from "commander";
import { FORMATS, type Format } from "../../profile/settings.js";
import { addFlags } from "./values.js";

/** The output flags of a command. */
export interface OutputFlags {
  output?: Format;
  json?: boolean;
  jq?: string;
  showSecrets?: boolean;
}

/** The formats of what is no list: a text to read, or data. */
export const DOCUMENT_FORMATS = ["table", "plain", "json", "ndjson", "yaml"] as const satisfies readonly Format[];

/** `--no-pager`. */
export function pagerOption(): Option {
  return new Option("--no-pager", "Print without a pager (AGENTAUTH_PAGER, PAGER, less)").helpGroup("Output:");
}

/** The flags of a command that prints one object or a list. */
export function addOutputFlags(command: Command): Command {
  return addFlags(command, "Output:", [
    ["-o, --output <format>", "Output format (default: table on a terminal, plain in a pipe)", FORMATS],
    ["--json", "Same as -o json"],
    ["--jq <expression>", "Filter JSON with a jq expression"],
    ["--show-secrets", "Print client secrets unmasked (if CI is set, only with --yes)"],
    ["--yes", "Confirm --show-secrets if CI is set"],
  ]);
}
