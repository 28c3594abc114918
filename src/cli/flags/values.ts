import { type Command, InvalidArgumentError, Option } from "commander";
import { messageOf } from "../../errors.js";
import { checkAuthorizationParam, type FlowOption } from "../../oauth/model/authorization-params.js";
import { escapeText } from "../../redact.js";

/** A flag: as it is typed, its line in the help, and its choices or the parser of its value. */
export type FlagRow = readonly [
  flags: string,
  about: string,
  values?: readonly string[] | ((value: string, previous: never) => unknown),
];

/** Declares flags, under a heading of the help unless they are the command's own. */
export function addFlags(command: Command, heading: string | undefined, rows: readonly FlagRow[]): Command {
  for (const [flags, about, values] of rows) {
    const option = new Option(flags, about);
    if (heading !== undefined) option.helpGroup(heading);
    if (typeof values === "function") option.argParser(values as (value: string) => unknown);
    else if (values !== undefined) option.choices(values);
    command.addOption(option);
  }
  return command;
}

/** A parser for a flag that may be repeated. */
export function collectRepeated(value: string, all: string[] = []): string[] {
  return [...all, value];
}

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

/** A parser for a text that other programs show: with no control or invisible characters in it. */
export function shortText(most: number): (value: string) => string {
  return (value) => {
    if (value.trim() === "" || value.length > most || escapeText(value) !== value) {
      throw new InvalidArgumentError(`must be a text of 1 to ${most} visible characters`);
    }
    return value;
  };
}

/** A parser for a positive number of seconds. */
export function parseSeconds(value: string): number {
  const number = Number(value);
  if (!/^(?:\d+(?:\.\d*)?|\.\d+)$/.test(value) || number <= 0 || number > 86_400) {
    throw new InvalidArgumentError("must be a number of seconds above 0 and at most 86400");
  }
  return number;
}

const FLAG_OF: Readonly<Record<FlowOption, string>> = {
  client: "--client-id",
  dpop: "--dpop",
  loginHint: "--account-hint",
  redirectUri: "--redirect-host and --redirect-port",
  resource: "--resource",
  scope: "--scope",
};

/** A parser for one of several parameters of the authorization request. */
export function authorizeParam(text: string, before: Record<string, string> = {}): Record<string, string> {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("must be name=value, or name= to leave the parameter out");
  const [name, value] = [text.slice(0, at), text.slice(at + 1)];
  try {
    checkAuthorizationParam(name, value, (option) => FLAG_OF[option]);
  } catch (error) {
    throw new InvalidArgumentError(messageOf(error));
  }
  return { ...before, [name]: value };
}
