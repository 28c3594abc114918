import { AgentAuthError } from "../errors.js";
import { quote } from "../redact.js";

/**
 * Splits a command into its words. Blanks separate words, single and double quotes group them, and that is all:
 * nothing is expanded, and a backslash is a backslash, as in `C:\Program Files`.
 *
 * @returns the words; none for a blank command
 * @throws AgentAuthError `usage` for a quote without its end, or an empty program name
 */
export function commandWords(command: string): string[] {
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
  const reason = inside === undefined ? "has an empty program name" : `has an unterminated ${inside}`;
  throw new AgentAuthError("usage", `the browser command ${quote(command)} ${reason}`, {
    class: "usage",
    hint: "pass a program and its arguments; the address is added as the last one",
    remedy: { action: "configure", option: "browser" },
  });
}
