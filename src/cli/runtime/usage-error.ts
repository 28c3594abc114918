import type { CommanderError } from "commander";
import { AgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import { secretFlagError } from "./secret-flags.js";
import { suggest } from "./suggest.js";

/** An error of the parser, and the command whose line it was. */
export type ParserError = CommanderError & { command?: string };

const BAD_VALUE = /^option '(?:-\w, )?(?<name>--[\w-]+)[^']*' argument '(?<value>.*)' is invalid\. (?<rule>.*)$/s;
const BAD_OPERAND = /^command-argument value '(?<value>.*)' is invalid for argument '(?<name>[\w-]+)'\. (?<rule>.*)$/s;
// Without the value, which may be a secret.
const UNKNOWN_FLAG = /^unknown option '([^='\s]+)/;
const CHOICES = /^Allowed choices are (.+)\.$/;

/** The parser's error, in the words of every other error. */
export function usageError(error: ParserError): AgentAuthError {
  const complaint = error.message.replace(/^error: /, "");
  const [first = "", ...rest] = complaint.split("\n");
  const flag = UNKNOWN_FLAG.exec(first)?.[1];
  const secret = flag === undefined ? undefined : secretFlagError(flag);
  if (secret) return secret;
  const suggestion = /^\(Did you mean (.+)\?\)$/.exec(rest.join(" ").trim())?.[1];
  const message = flag === undefined ? first : `unknown option '${flag}'`;
  const problem = badValue(complaint) ?? { message, suggestion };
  return new AgentAuthError("usage", problem.message, {
    class: "usage",
    hint: problem.suggestion === undefined ? seeHelp(error.command) : `did you mean ${problem.suggestion}?`,
    // Its message repeats what was typed.
    ...(flag === undefined && { cause: error }),
  });
}

/** The hint that names a command's help. */
export function seeHelp(command = "agentauth"): string {
  return `see ${command} --help`;
}

/** What is wrong with the value of a flag or with an operand, if that is what the parser complains about. */
function badValue(complaint: string): { message: string; suggestion: string | undefined } | undefined {
  const { name, value, rule } = (BAD_VALUE.exec(complaint) ?? BAD_OPERAND.exec(complaint))?.groups ?? {};
  if (name === undefined || value === undefined || rule === undefined) return undefined;
  const choices = CHOICES.exec(rule)?.[1];
  return {
    message: `${name} ${quote(value, 80)} ${choices === undefined ? rule : `must be one of ${choices}`}`,
    suggestion: choices === undefined ? undefined : suggest(value, choices.split(", ")),
  };
}
