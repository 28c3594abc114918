import { type Command, InvalidArgumentError, Option } from "commander";
import type { AuthorizationParams } from "../../oauth/model/authorization-params.js";
import { flagFor, loginSettings } from "../../profile/login-settings.js";
import { shellWord } from "../../redact.js";

/** An option of the SDK as the command line spells it. */
export function flagText(option: string, value?: string): string {
  return flagWords(option, value).map(shellWord).join(" ");
}

/** The flags for parameters of the authorization request. */
export function paramFlags(params: AuthorizationParams): string[][] {
  return Object.entries(params).map(([name, value]) => flagWords("authorizationParams", `${name}=${value}`));
}

/** The option of the command line for one of the SDK that has another name. */
function toFlagName(option: string): string {
  if (option === "authorizationParams") return "authorizeParam";
  return loginSettings().find(({ client, method }) => client === option || method === option)?.name ?? option;
}

export function flagWords(given: string, value?: string): string[] {
  const flag = flagFor(toFlagName(given));
  return value === undefined ? [flag] : [flag, value];
}

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
