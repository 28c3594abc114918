import type { Command } from "commander";

/** Lines of help, at most as wide as the terminal. The text is ours and ASCII but for single characters. */

/** A term and what it means, such as a flag. */
export type HelpRow = readonly [term: string, about: string];

/** The indentation of a line of a list. */
const INDENT = "  ";
/** The columns that a description needs beside its term; with fewer it goes below. */
const LEAST_ABOUT = 30;
const WIDEST_TERM = 28;

/** The text broken at its blanks, its continued lines indented by `hang` columns. A longer word gets its own line. */
export function fill(text: string, width: number, hang = 0): string[] {
  const lines: string[] = [];
  const start = /^ */.exec(text)?.[0] ?? "";
  let line = start;
  for (const word of text.trimStart().split(" ")) {
    if (line.trim() === "") line += word;
    else if (line.length + 1 + word.length <= width) line += ` ${word}`;
    else {
      lines.push(line);
      line = " ".repeat(hang) + word;
    }
  }
  return [...lines, line];
}

/**
 * Terms and their meanings in two columns, or below each other where there is no room for two.
 *
 * @param aligned the rows that share the columns, of which `list` is a part
 */
export function formatRows(list: readonly HelpRow[], width: number, aligned: readonly HelpRow[] = list): string[] {
  const widest = Math.max(0, ...aligned.map(([term]) => term.length).filter((length) => length <= WIDEST_TERM));
  const column = INDENT.length + widest + 2;
  return list.flatMap(([term, about]) => {
    const head = `${INDENT}${term}`;
    if (width - column < LEAST_ABOUT) return [...fill(head, width, 4), ...fill(`      ${about}`, width, 6)];
    if (term.length > widest) return [head, ...fill(" ".repeat(column) + about, width, column)];
    return fill(`${head.padEnd(column)}${about}`, width, column);
  });
}

/** Prose: paragraphs are filled; a line that is indented or has columns stays a line. */
export function wrapProse(text: string, width: number): string[] {
  const lines: string[] = [];
  let paragraph: string[] = [];
  const flush = () => {
    if (paragraph.length > 0) lines.push(...fill(paragraph.join(" "), width));
    paragraph = [];
  };
  for (const line of text.split("\n")) {
    const isOwnLine = line === "" || line.startsWith(INDENT) || /\S {2,}\S/.test(line);
    if (!isOwnLine) paragraph.push(line);
    if (isOwnLine || line.endsWith(":")) flush();
    if (isOwnLine) lines.push(...ownLine(line, width));
  }
  flush();
  return lines;
}

/** A line such as `  name   meaning` or `  - point`, its continuation below the last column. */
function ownLine(line: string, width: number): string[] {
  const [, head = "", about = ""] = /^( *(?:- |\S.*? {2,}))(.*)$/.exec(line) ?? [];
  if (about === "") return fill(line, width, 4);
  const isNarrow = !head.endsWith("- ") && width - head.length < LEAST_ABOUT;
  if (!isNarrow || line.length <= width) return fill(line, width, head.length);
  return [...fill(head.trimEnd(), width, 4), ...fill(`      ${about}`, width, 6)];
}

/** A command line to paste, continued with a backslash between two words of the shell. */
export function commandLine(command: string, width: number): string[] {
  const [first = "", ...words] = command.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? [];
  const lines: string[] = [];
  let line = `${INDENT}$ ${first}`;
  words.forEach((word, index) => {
    const room = index === words.length - 1 ? width : width - 2;
    if (line.length + 1 + word.length <= room) line += ` ${word}`;
    else {
      lines.push(`${line} \\`);
      line = `      ${word}`;
    }
  });
  return [...lines, line];
}

export interface HelpLayout {
  /** The columns of the terminal. */
  width: number;
  /** Whether every flag is described, as with `--all`. */
  isFull: boolean;
}

/** A command that keeps what `addHelpText` was given. */
export interface HelpedText {
  /** Prose, and examples. */
  more: string;
}

const EXAMPLE = /^ {2}\$ (.*)$/;

/** Splits the text below a summary into its examples and the rest. */
export function readHelpText(help: string): { text: string; examples: string[] } {
  const lines = help.split("\n");
  const examples = lines.flatMap((line) => EXAMPLE.exec(line)?.[1] ?? []);
  const rest = lines.filter((line) => !EXAMPLE.test(line) && !/^Examples?:$/.test(line));
  return {
    text: rest
      .join("\n")
      .replace(/\n{3,}/g, "\n\n")
      .trim(),
    examples,
  };
}

/** The text below the summary of a command, as it was declared. */
export function moreOf(command: Command): string {
  return (command as Partial<HelpedText>).more ?? "";
}
