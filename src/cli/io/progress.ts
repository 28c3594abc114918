/** The progress line on a terminal. */

import type { Writable } from "node:stream";
import { escapeText } from "../../redact.js";

/** A temporary progress line on the terminal. */
export interface ProgressText {
  /** Replaces the text. */
  update(text: string): void;
  /** Removes the line. A stopped progress shows nothing more. */
  stop(): void;
}

const ERASE_LINE = "\r\u001b[2K";

/** The line itself: one per terminal. */
export interface ProgressLine {
  /** Removes the line before something else is printed. */
  clear(): void;
  /** Shows it again afterwards. */
  redraw(): void;
  /** Starts a progress, cut to the width that `columns` reports. */
  start(columns: () => number): ProgressText;
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
  const start = (columns: () => number): ProgressText => {
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
 * Cuts the text so that it certainly fits: a non-ASCII character counts as two columns. An exact measure needs a library
 * that takes half the start-up time of the program, for a temporary line.
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
