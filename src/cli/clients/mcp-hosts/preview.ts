import { lineAt } from "./language.js";

/**
 * The change of a text, as lines with "-" and "+" under the file and the line. Only what changes is shown: the lines around
 * it may hold secrets of other servers.
 */
export function previewOf(path: string, before: string, after: string): string {
  const shortest = Math.min(before.length, after.length);
  let start = 0;
  while (start < shortest && before[start] === after[start]) start++;
  let end = 0;
  while (end < shortest - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
  const removed = linesOf(before.slice(start, before.length - end));
  const added = linesOf(after.slice(start, after.length - end));
  const head = [`--- ${path}`, `+++ ${path}`, `@@ line ${lineAt(before, start)} @@`];
  return `${[...head, ...removed.map((line) => `-${line}`), ...added.map((line) => `+${line}`)].join("\n")}\n`;
}

/** Without the comma that separates the change from what is before it, and without empty lines around it. */
function linesOf(text: string): string[] {
  const lines = text.replace(/^,(?=\s)/, "").split(/\r?\n/);
  const isText = (line: string) => /\S/.test(line);
  return lines.slice(lines.findIndex(isText), lines.findLastIndex(isText) + 1);
}
