import { AgentAuthError } from "../errors.js";
import { escapeText } from "../redact.js";

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

/** A word as a POSIX shell reads it back. Invisible characters, which no message shows as they are, go through printf. */
export function shellWord(word: string): string {
  if (/^[\w@%+:,./-][\w@%+=:,./-]*$/.test(word)) return word;
  if (escapeText(word) === word) return `'${word.replaceAll("'", "'\\''")}'`;
  const format = word.replace(/./gsu, (character) => {
    if (character === "%") return "%%";
    if (/^[\\'\p{M}]$/u.test(character) || escapeText(character) !== character) return octal(character);
    return character;
  });
  // A leading "-" would be an option of printf's.
  return `"$(printf '${format.replace(/^-|["$`]/g, octal)}')"`;
}

function octal(character: string): string {
  return [...new TextEncoder().encode(character)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
}

/** The same error with another hint. */
export function withHint(error: AgentAuthError, hint: string): AgentAuthError {
  const { status, requestId, url, resume, retryable, response, cause, stack } = error;
  const about = { class: error.class, cause, hint, status, requestId, url, resume, retryable, response };
  const copy = new AgentAuthError(error.code, error.message, about);
  // What is to be found is where the error came from, not where its hint was put on.
  if (stack !== undefined) copy.stack = stack;
  return copy;
}
