import { escapeText } from "../../../redact.js";

/** Escapes a stream of bytes for a terminal. */
export interface TerminalText {
  /** The text that can be shown now. */
  push(bytes: Uint8Array): string;
  /** The rest, and a line break if the text does not end with one. */
  end(): string;
}

// The last character waits for marks and a line feed that may belong to it; a longer run of marks is cut anyway.
const UNFINISHED = /[^\n\t]\p{M}{0,32}$/u;
const LONGEST_UNFINISHED = 80;

/**
 * Decodes UTF-8 and escapes control characters, also across chunks. Line breaks and tabs stay; invalid UTF-8 becomes
 * U+FFFD.
 */
export function terminalText(): TerminalText {
  const decoder = new TextDecoder();
  let waiting = "";
  let last = "\n";
  const show = (text: string): string => {
    last = text.at(-1) ?? last;
    return text
      .replaceAll("\r\n", "\n")
      .split(/([\n\t])/)
      .map((part) => (part === "\n" || part === "\t" ? part : escapeText(part)))
      .join("");
  };
  return {
    push(bytes) {
      const text = waiting + decoder.decode(bytes, { stream: true });
      waiting = UNFINISHED.exec(text.slice(-LONGEST_UNFINISHED))?.[0] ?? "";
      return show(text.slice(0, text.length - waiting.length));
    },
    end() {
      const rest = show(waiting + decoder.decode());
      waiting = "";
      return last === "\n" ? rest : `${rest}\n`;
    },
  };
}
