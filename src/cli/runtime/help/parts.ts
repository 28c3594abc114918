import type { Command } from "commander";

/** How the help is printed. */
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
