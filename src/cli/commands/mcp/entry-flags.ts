import { type Command, InvalidArgumentError, Option } from "commander";

/** The flags of an entry in a host's settings. */
export function addEntryFlags(command: Command): Command {
  return command
    .addOption(
      new Option("--name <name>", "Name of the server in the host's settings (default: from its URL)").argParser(
        serverName,
      ),
    )
    .addOption(
      new Option("--style <style>", "How the host gets the token (default: proxy)").choices([
        "proxy",
        "headers-helper",
      ]),
    )
    .option(
      "--command <path>",
      "Command that starts agentauth (default: agentauth; on Windows and macOS Node and the script, by their paths)",
    )
    .option("--account-hint <account>", "Account to use, if several are logged in at the server");
}

/** A name that every host and every language takes as it is. */
function serverName(value: string): string {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(value) || value === "__proto__") {
    throw new InvalidArgumentError('must be letters, digits, "-" and "_", 64 of them at most');
  }
  return value;
}
