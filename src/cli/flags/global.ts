import { type Command, Option } from "commander";
import type { Format } from "./formats.js";
import { seconds, wholeNumber } from "./values.js";

/** What flags can set, by the names they have on the command line. */
export interface SettingFlags {
  profile?: string;
  baseUrl?: string;
  account?: string;
  domain?: string;
  pool?: string;
  issuer?: string;
  output?: Format;
  clientCert?: string;
  clientKey?: string;
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
