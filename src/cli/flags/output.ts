import { type Command, Option } from "commander";
import { FORMATS, type Format } from "../../profile/settings.js";

/** The output flags of a command. */
export interface OutputFlags {
  output?: Format;
  json?: boolean;
  jq?: string;
  showSecrets?: boolean;
}

/** `--no-pager`. */
export function pagerOption(): Option {
  return new Option("--no-pager", "Print without a pager (AGENTAUTH_PAGER, PAGER, less)").helpGroup("Output:");
}

/** The flags of a command that prints one object or a list. */
export function addOutputFlags(command: Command): Command {
  return command
    .addOption(
      new Option("-o, --output <format>", "Output format (default: table on a terminal, plain in a pipe)")
        .choices([...FORMATS])
        .helpGroup("Output:"),
    )
    .addOption(new Option("--json", "Same as -o json").helpGroup("Output:"))
    .addOption(new Option("--jq <expression>", "Filter JSON with a jq expression").helpGroup("Output:"))
    .addOption(
      new Option("--show-secrets", "Print client secrets unmasked (if CI is set, only with --yes)").helpGroup(
        "Output:",
      ),
    )
    .addOption(new Option("--yes", "Confirm --show-secrets if CI is set").helpGroup("Output:"));
}
