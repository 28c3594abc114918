/** The line on a terminal that tells how far a command is. */

import type { Writable } from "node:stream";
import { escapeText } from "../../redact.js";

/** A line on the terminal that tells how far a command is, and goes away. */
export interface Progress {
  /** Shows the text in place of the one before. */
  update(text: string): void;
  /** Takes the line away. A stopped progress shows nothing any more. */
  stop(): void;
}

const ERASE_LINE = "\r\u001b[2K";

/** The line itself, of which a terminal has one. */
export interface ProgressLine {
  /** Takes it away before something else is printed. */
  clear(): void;
  /** Puts it back afterwards. */
  redraw(): void;
  /** Begins to show progress, cut to the width that `columns` reports. */
  start(columns: () => number): Progress;
}

/** The progress line of a terminal. */
export function progressLine(stream: Writable): ProgressLine {
  let shown = "";
  let drawn = false;
  const clear = () => {
    if (drawn) stream.write(ERASE_LINE);
    drawn = false;
  };
  const redraw = () => {
    if (shown === "") return;
    stream.write(`${ERASE_LINE}${shown}`);
    drawn = true;
  };
  const start = (columns: () => number): Progress => {
    let stopped = false;
    return {
      update(text) {
        if (stopped) return;
        // One column stays free: a full last column makes some terminals wrap.
        shown = cut(escapeText(text), columns() - 1);
        redraw();
      },
      stop() {
        if (stopped) return;
        stopped = true;
        shown = "";
        clear();
      },
    };
  };
  return { clear, redraw, start };
}

/**
 * Cut so that it surely fits: what is not ASCII counts as two columns. Measuring it exactly takes a library that costs
 * half the start of the whole program, for a line that is gone a moment later.
 */
function cut(text: string, width: number): string {
  const characters = [...text];
  const widths = characters.map((character) => (character >= " " && character <= "~" ? 1 : 2));
  if (widths.reduce((sum, one) => sum + one, 0) <= width) return text;
  let used = 0;
  const kept = characters.filter((_, index) => {
    used += widths[index] ?? 2;
    return used <= width - 1;
  });
  return width < 1 ? "" : `${kept.join("")}…`;
}
