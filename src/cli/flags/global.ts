import { type Command, Option } from "commander";
import type { SettingFlags } from "../../profile/settings.js";
import { seconds, wholeNumber } from "./values.js";

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

/** The flags that every command accepts, before or after its name. */
export function addGlobalFlags(program: Command): Command {
  return program
    .addOption(new Option("--profile <name>", "Profile to use").helpGroup("Service:"))
    .addOption(new Option("--base-url <url>", "Base URL of the service").helpGroup("Service:"))
    .addOption(
      new Option("--timeout <seconds>", "Timeout of each attempt in seconds (default: 30)")
        .argParser(seconds)
        .helpGroup("Network:"),
    )
    .addOption(
      new Option("--retries <n>", "Number of retries of a failed request (default: 2)")
        .argParser(wholeNumber(0, 20))
        .helpGroup("Network:"),
    )
    .addOption(new Option("--proxy <url>", "Send requests through this proxy").helpGroup("Network:"))
    .addOption(
      new Option("--ca-file <file>", "Trust these additional certificate authorities (PEM)").helpGroup("Network:"),
    )
    .addOption(
      new Option(
        "--use-system-ca",
        "Trust the certificate authorities of the system too (Node 22.15 or later)",
      ).helpGroup("Network:"),
    )
    .addOption(
      new Option("--client-cert <file>", "Client certificate for servers that require one (PEM)").helpGroup("Network:"),
    )
    .addOption(
      new Option("--client-key <file>", "Private key of the client certificate, if in another file (PEM)").helpGroup(
        "Network:",
      ),
    )
    .addOption(new Option("-v, --verbose", "Log each step and request to stderr").helpGroup("Messages:"))
    .addOption(
      new Option("--debug", "Like --verbose, plus headers (secrets masked) and stack traces").helpGroup("Messages:"),
    )
    .addOption(new Option("-q, --quiet", "Print only errors and warnings to stderr").helpGroup("Messages:"))
    .addOption(new Option("--no-color", "Print without colours").helpGroup("Messages:"))
    .addOption(new Option("--no-input", "Never prompt and never open a browser").helpGroup("Messages:"));
}
