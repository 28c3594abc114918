import type { CommanderError } from "commander";
import { AgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import { nearest } from "./nearest.js";
import { secretFlagError } from "./secret-flags.js";

/** An error of the parser, and the command whose line it was. */
export type ParserError = CommanderError & { command?: string };

const BAD_VALUE = /^option '(?:-\w, )?(--[\w-]+)[^']*' argument '(.*)' is invalid\. (.*)$/s;
// Without the value: whatever it is, it may be a secret.
const UNKNOWN_FLAG = /^unknown option '([^='\s]+)/;
const CHOICES = /^Allowed choices are (.+)\.$/;

/** What the parser complains about, in the words that every other error has. */
export function usageError(error: ParserError): AgentAuthError {
  const [first = "", ...rest] = error.message.replace(/^error: /, "").split("\n");
  const flag = UNKNOWN_FLAG.exec(first)?.[1];
  const secret = flag === undefined ? undefined : secretFlagError(flag);
  if (secret) return secret;
  const meant = /^\(Did you mean (.+)\?\)$/.exec(rest.join(" ").trim())?.[1];
  const value = BAD_VALUE.exec(error.message.replace(/^error: /, ""));
  const message = flag === undefined ? first : `unknown option '${flag}'`;
  const problem = value ? badValue(value[1] ?? "", value[2] ?? "", value[3] ?? "") : { message, meant };
  return new AgentAuthError("usage", problem.message, {
    class: "usage",
    hint: problem.meant === undefined ? seeHelp(error.command) : `did you mean ${problem.meant}?`,
    // Its message repeats what was typed.
    ...(flag === undefined && { cause: error }),
  });
}

/** Where a command's flags are told. */
export function seeHelp(command = "agentauth"): string {
  return `see ${command} --help`;
}

function badValue(flag: string, value: string, rule: string): { message: string; meant: string | undefined } {
  const choices = CHOICES.exec(rule)?.[1];
  return {
    message: `${flag} ${quote(value, 80)} ${choices === undefined ? rule : `must be one of ${choices}`}`,
    meant: choices === undefined ? undefined : nearest(value, choices.split(", ")),
  };
}
