import { type Command, InvalidArgumentError, Option } from "commander";

/** A flag: as it is typed, its line in the help, and its choices or the parser of its value. */
export type FlagRow = readonly [
  flags: string,
  description: string,
  values?: readonly string[] | ((value: string, previous: never) => unknown),
];

/** Declares flags, under a heading of the help unless they are the command's own. */
export function addFlags(command: Command, heading: string | undefined, rows: readonly FlagRow[]): Command {
  for (const [flags, description, values] of rows) {
    const option = new Option(flags, description);
    if (heading !== undefined) option.helpGroup(heading);
    if (typeof values === "function") option.argParser(toParser(values));
    else if (values !== undefined) option.choices(values);
    command.addOption(option);
  }
  return command;
}

/** A rule that does not hold is an invalid argument for commander, which names the flag and the value. */
function toParser(read: (value: string, previous: never) => unknown): (value: string, previous: unknown) => unknown {
  return (value, previous) => {
    try {
      return read(value, previous as never);
    } catch (error) {
      throw error instanceof TypeError ? new InvalidArgumentError(error.message) : error;
    }
  };
}

/** A parser for a flag that may be repeated. */
export function collectRepeated(value: string, all: string[] = []): string[] {
  return [...all, value];
}
