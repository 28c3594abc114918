import { AgentAuthError } from "../errors.js";
import { shellWord } from "../redact.js";

/** The command line that goes on where a list stopped. */
export function continuationCommand(argv: readonly string[], offset: number, limit: number | undefined): string {
  const kept = withoutFlag(withoutFlag(argv, "--offset"), "--limit");
  const words = [
    "agentauth",
    ...kept,
    "--offset",
    String(offset),
    ...(limit === undefined ? [] : ["--limit", String(limit)]),
  ];
  return words.map(shellWord).join(" ");
}

function withoutFlag(argv: readonly string[], flag: string): string[] {
  const kept: string[] = [];
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? "";
    if (word === flag) index++;
    else if (!word.startsWith(`${flag}=`)) kept.push(word);
  }
  return kept;
}

/** The same error with another hint. */
export function withHint(error: AgentAuthError, hint: string | undefined): AgentAuthError {
  const { status, requestId, url, resume, retryable, response, cause, stack } = error;
  const about = { class: error.class, cause, hint, status, requestId, url, resume, retryable, response };
  const copy = new AgentAuthError(error.code, error.message, about);
  // What is to be found is where the error came from, not where its hint was put on.
  if (stack !== undefined) copy.stack = stack;
  return copy;
}
