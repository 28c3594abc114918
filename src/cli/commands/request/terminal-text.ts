import { escapeText } from "../../../redact.js";

/** Makes bytes that come piece by piece harmless for a terminal. */
export interface TerminalText {
  /** What can be shown of everything so far, and has not been shown yet. */
  push(bytes: Uint8Array): string;
  /** The rest, and a line break where the text has none at its end. */
  end(): string;
}

// The last character waits for the marks and the line feed that may belong to it; a longer run of marks is cut anyway.
const UNFINISHED = /[^\n\t]\p{M}{0,32}$/u;
const LONGEST_UNFINISHED = 80;

/**
 * Decodes UTF-8 and escapes what a terminal would act on, wherever the pieces are cut. Line breaks and tabs stay; what
 * is no UTF-8 comes out as U+FFFD.
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
