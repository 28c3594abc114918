import type { Env } from "../../../platform/environment.js";
import type { Colors, OutStream } from "../../io/stream.js";
import { isAscii } from "../../io/terminal-features.js";
import { isolate } from "../../output/paint.js";

/** The style of a report's text. */
export interface TextStyle {
  colors: Colors;
  /** A bar for a share of at most 1, at most `width` columns long; a share above 0 is always visible. */
  bar(share: number, width: number): string;
  /** A column for each count. */
  spark(counts: readonly number[], width: number): string;
  heading(text: string): string;
  /** Text from the service; on a terminal isolated so that its writing direction does not affect its neighbours. */
  isolate(text: string): string;
  /** The text as the terminal can show it. */
  finish(text: string): string;
}

const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
const HEIGHTS = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const ASCII_HEIGHTS = [".", ":", "-", "=", "+", "*", "%", "#"];
const ASCII_SIGNS: Readonly<Record<string, string>> = { "→": "->", "…": "~", "–": "-", "·": "-" };

/** The style for a stream in an environment. */
export function textStyle({ colors, isTTY }: Pick<OutStream, "colors" | "isTTY">, env: Env): TextStyle {
  const ascii = isAscii(env);
  const heights = ascii ? ASCII_HEIGHTS : HEIGHTS;
  return {
    colors,
    bar(share, width) {
      const eighths = share > 0 ? Math.max(1, Math.round(share * width * 8)) : 0;
      if (ascii) return "#".repeat(Math.min(width, Math.ceil(eighths / 8)));
      const whole = Math.min(width, Math.floor(eighths / 8));
      return "█".repeat(whole) + (whole < width ? (EIGHTHS[eighths % 8] ?? "") : "");
    },
    spark(counts, width) {
      const greatest = Math.max(1, ...counts);
      const repeat = Math.max(1, Math.floor(width / counts.length));
      const height = (count: number) => heights[Math.ceil((count / greatest) * heights.length) - 1] ?? "";
      return counts.map((count) => (count > 0 ? height(count) : " ").repeat(repeat)).join("");
    },
    heading: (text) => colors.bold(text.toUpperCase()),
    isolate: isTTY ? isolate : (text) => text,
    finish: (text) => (ascii ? text.replace(/[→…–·]/g, (sign) => ASCII_SIGNS[sign] ?? sign) : text),
  };
}
