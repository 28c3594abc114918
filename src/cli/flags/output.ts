import { type Command, Option } from "commander";
import { FORMATS, type Format } from "./formats.js";

/** What the output flags of a command say. */
export interface OutputFlags {
  output?: Format;
  json?: boolean;
  jq?: string;
  showSecrets?: boolean;
}

/** `--no-pager`. */
export function pagerOption(): Option {
  return new Option("--no-pager", "print on a terminal without a pager (AGENTAUTH_PAGER, PAGER, less)").helpGroup(
    "Output:",
  );
}

/** The flags of a command that prints one thing or a list of them. */
export function addOutputFlags(command: Command): Command {
  return command
    .addOption(
      new Option("-o, --output <format>", "how to print (default: table on a terminal, plain in a pipe)")
        .choices([...FORMATS])
        .helpGroup("Output:"),
    )
    .addOption(new Option("--json", "the same as -o json").helpGroup("Output:"))
    .addOption(new Option("--jq <expression>", "filter JSON with a jq expression").helpGroup("Output:"))
    .addOption(
      new Option(
        "--show-secrets",
        "print client secrets instead of a mask (where CI is set, only with --yes)",
      ).helpGroup("Output:"),
    )
    .addOption(new Option("--yes", "confirm --show-secrets where CI is set").helpGroup("Output:"));
}
