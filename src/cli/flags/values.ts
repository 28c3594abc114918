import { type Command, InvalidArgumentError, Option } from "commander";
import { FORMATS } from "./formats.js";

/** A parser for a whole number; commander names the flag and the value in the error. */
export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): (value: string) => number {
  return (value) => {
    const number = Number(value);
    if (!/^\d+$/.test(value) || !Number.isSafeInteger(number) || number < least || number > most) {
      throw new InvalidArgumentError(
        `must be a whole number of at least ${least}${most < 1e15 ? ` and at most ${most}` : ""}`,
      );
    }
    return number;
  };
}

/** A parser for a positive number of seconds. */
export function seconds(value: string): number {
  const number = Number(value);
  if (!/^(?:\d+(?:\.\d*)?|\.\d+)$/.test(value) || number <= 0 || number > 86_400) {
    throw new InvalidArgumentError("must be a number of seconds above 0 and at most 86400");
  }
  return number;
}

/** The flags that are known before and after every command. */
export function addGlobalFlags(program: Command): Command {
  return program
    .addOption(new Option("--profile <name>", "the profile to use").helpGroup("Which service:"))
    .addOption(new Option("--base-url <url>", "the service's base address").helpGroup("Which service:"))
    .addOption(
      new Option("--timeout <seconds>", "for each attempt of a request (default 30)")
        .argParser(seconds)
        .helpGroup("Network:"),
    )
    .addOption(
      new Option("--retries <n>", "how often a failed request is repeated (default 2)")
        .argParser(wholeNumber(0, 20))
        .helpGroup("Network:"),
    )
    .addOption(new Option("--proxy <url>", "send requests through this proxy").helpGroup("Network:"))
    .addOption(new Option("--ca-file <file>", "trust these certificate authorities too (PEM)").helpGroup("Network:"))
    .addOption(
      new Option("--client-cert <file>", "a client certificate, for servers that ask for one (PEM)").helpGroup(
        "Network:",
      ),
    )
    .addOption(
      new Option("--client-key <file>", "its private key, where it is in another file (PEM)").helpGroup("Network:"),
    )
    .addOption(new Option("-v, --verbose", "tell each step and request on stderr").helpGroup("Messages:"))
    .addOption(
      new Option("--debug", "likewise, with the headers (secrets masked), and where an error came from").helpGroup(
        "Messages:",
      ),
    )
    .addOption(new Option("-q, --quiet", "say nothing on stderr but errors and warnings").helpGroup("Messages:"))
    .addOption(new Option("--no-color", "print without colours").helpGroup("Messages:"))
    .addOption(new Option("--no-input", "never ask, never open a browser").helpGroup("Messages:"));
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

/** The flags of every list. */
export function addListFlags(command: Command): Command {
  return addOutputFlags(command)
    .addOption(new Option("--columns <paths>", "fields to print, such as id,last_seen.city").helpGroup("Output:"))
    .addOption(new Option("--no-header", "leave out the heading line").helpGroup("Output:"))
    .addOption(new Option("--csv-raw", "leave spreadsheet formulas in CSV cells as they are").helpGroup("Output:"))
    .addOption(new Option("--sort <field[:asc|:desc]>", "the order, by the service").helpGroup("List:"))
    .addOption(new Option("--limit <n>", "items at most (default: all)").argParser(wholeNumber(1)).helpGroup("List:"))
    .addOption(
      new Option("--page-size <n>", "items in a page (default: the service's)")
        .argParser(wholeNumber(1))
        .helpGroup("List:"),
    )
    .addOption(
      new Option("--offset <n>", "start here, where an interrupted list said to go on")
        .argParser(wholeNumber(0))
        .helpGroup("List:"),
    )
    .addOption(
      new Option("--concurrency <n>", "pages fetched at once; 1 is one after the other (default 4)")
        .argParser(wholeNumber(1, 64))
        .helpGroup("List:"),
    )
    .addOption(
      new Option("--strict", "fail if the list changes while it is read, or has unknown shapes").helpGroup("List:"),
    )
    .addOption(
      new Option("--status <status>", "only these (filtered here, after reading the whole list)").helpGroup("Filters:"),
    )
    .addOption(
      new Option("--title <glob>", 'only titles like "Build*" (filtered here, likewise)').helpGroup("Filters:"),
    );
}
