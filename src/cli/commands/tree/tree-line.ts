import { escapeText } from "../../../redact.js";
import type { OutStream } from "../../io/io.js";
import { textWidth } from "../../io/width.js";
import { isolate } from "../../output/paint.js";

/** One line of the tree. */
export interface Line {
  depth: number;
  last: boolean;
  kind: string;
  id: string;
  title: string;
  note: string;
}

/** A word, and what is printed for it. */
interface Word {
  text: string;
  painted: string;
  /** Blanks before it. */
  gap: number;
}

/** A line of the tree; on a terminal it continues between two words, beside the branches. */
export function treeLine(line: Line, open: readonly boolean[], { isTTY, columns, colors }: OutStream): string {
  const isRoot = line.depth === 0;
  const words = (text: string, paint: (word: string) => string): Word[] =>
    escapeText(text)
      .split(" ")
      .map((word, index) => ({ text: word, painted: paint(word), gap: index === 0 ? 2 : 1 }));
  const shown = isRoot ? `account ${line.id}` : line.title || line.id;
  const all = [
    ...words(shown, isTTY ? isolate : (word) => word),
    ...(isRoot || line.title === "" ? [] : words(line.id, colors.dim)),
    ...(line.note === "" ? [] : words(`(${line.note})`, colors.dim)),
  ];
  const first = isRoot ? "" : branches(open, line.last);
  const further = isRoot ? "" : `${stems(open)}${line.last ? "    " : "│   "}`;
  const lines: string[] = [];
  let text = first;
  let used = textWidth(first);
  let isStart = true;
  for (const { text: word, painted, gap } of all) {
    const blanks = isStart ? 0 : gap;
    if (isTTY && !isStart && used + blanks + textWidth(word) > columns) {
      lines.push(text);
      text = `${further}  ${painted}`;
      used = textWidth(further) + 2 + textWidth(word);
    } else {
      text += " ".repeat(blanks) + painted;
      used += blanks + textWidth(word);
    }
    isStart = false;
  }
  return `${[...lines, text].join("\n")}\n`;
}

/** The lines to the left of an entry, and the one that leads to it. */
export function branches(open: readonly boolean[], last: boolean): string {
  return `${stems(open)}${last ? "└── " : "├── "}`;
}

function stems(open: readonly boolean[]): string {
  return open.map((more) => (more ? "│   " : "    ")).join("");
}
