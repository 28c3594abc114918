import { AgentAuthError } from "../../errors.js";
import { shellWord } from "../../redact.js";

/** The error of what was printed in part: another one ended it. @param resume the offset to continue at */
export function partialError(cause: AgentAuthError, message: string, hint: string, resume?: number): AgentAuthError {
  const { code, status, requestId, url, retryable } = cause;
  const partial = { class: "partial", hint, cause, resume, status, requestId, url, retryable } as const;
  return new AgentAuthError(code, `${message}: ${cause.message}`, partial);
}

/** The command line that continues a list where it stopped. */
export function resumeCommand(argv: readonly string[], offset: number, limit: number | undefined): string {
  const rest = withoutFlag(withoutFlag(argv, "--offset"), "--limit");
  const words = [
    "agentauth",
    ...rest,
    "--offset",
    String(offset),
    ...(limit === undefined ? [] : ["--limit", String(limit)]),
  ];
  return words.map(shellWord).join(" ");
}

function withoutFlag(argv: readonly string[], flag: string): string[] {
  const rest: string[] = [];
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? "";
    if (word === flag) index++;
    else if (!word.startsWith(`${flag}=`)) rest.push(word);
  }
  return rest;
}
