import { AgentAuthError } from "../errors.js";
import { quote } from "../redact.js";

/**
 * Splits a command into its words. Blanks separate words, single and double quotes group them, and that is all:
 * nothing is expanded, and a backslash is a backslash, as in `C:\Program Files`.
 *
 * @param isFile whether a path is a file: an absolute path at the beginning may then have blanks without quotes
 * @param fail makes the error for a command that cannot be split, from the end of a sentence about it
 * @returns the words; none for a blank command
 * @throws AgentAuthError `usage` for a quote without its end, or an empty program name
 */
export function commandWords(
  command: string,
  isFile: (path: string) => boolean = () => false,
  fail = (reason: string) => browserCommandError(command, reason),
): string[] {
  const path = unquotedPath(command, isFile);
  if (path !== undefined) return [path, ...commandWords(command.trim().slice(path.length), undefined, fail)];
  const words: string[] = [];
  let word: string | undefined;
  let inside: string | undefined;
  for (const character of command) {
    if (inside !== undefined) {
      if (character === inside) inside = undefined;
      else word += character;
    } else if (character === '"' || character === "'") {
      inside = character;
      word ??= "";
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else {
      word = (word ?? "") + character;
    }
  }
  if (word !== undefined) words.push(word);
  if (inside === undefined && words[0] !== "") return words;
  throw fail(inside === undefined ? "has an empty program name" : `has an unterminated ${inside}`);
}

function browserCommandError(command: string, reason: string): AgentAuthError {
  return new AgentAuthError("usage", `the browser command ${quote(command)} ${reason}`, {
    class: "usage",
    hint: "pass a program and its arguments; the address is added as the last one",
    remedy: { action: "configure", option: "browser" },
  });
}

/** The absolute path with blanks that a command begins with. The longest counts: `C:\Program` may be a file, too. */
function unquotedPath(command: string, isFile: (path: string) => boolean): string | undefined {
  const trimmed = command.trim();
  if (!/^(?:\/|[a-z]:[\\/])/i.test(trimmed)) return undefined;
  const ends = [...trimmed.matchAll(/\s+|$/g)].map(({ index }) => index);
  if (ends.length === 1) return undefined;
  const path = ends.map((end) => trimmed.slice(0, end)).findLast(isFile);
  return path !== undefined && /\s/.test(path) ? path : undefined;
}
