/** Lines on a terminal that are redrawn in place. */

import type { OutStream } from "../../../io/io.js";

const ESC = "\u001b[";
// Synchronized output, hidden cursor, no line wrap. Each drawing restores all three, so that an exit at any time leaves
// the terminal as it was.
const BEGIN = `${ESC}?2026h${ESC}?25l${ESC}?7l`;
const END = `${ESC}?7h${ESC}?25h${ESC}?2026l`;

/** A part of the screen. */
export interface Screen {
  /** Replaces the previous lines by these; at most one less than the height of the screen. */
  draw(lines: readonly string[]): Promise<void>;
  /** Erases the lines, so that something else can be printed there. */
  erase(): Promise<void>;
  /** Leaves the shown lines, and draws below them from now on. */
  leave(): void;
}

/** The lines above the cursor. Nothing else on the screen is touched. */
export function createScreen(stdout: OutStream): Screen {
  let height = 0;
  let columns = stdout.columns;
  /** Moves to the first line; not after a change of width, since the terminal may have wrapped the lines again. */
  const back = () => {
    if (stdout.columns !== columns) height = 0;
    columns = stdout.columns;
    return `\r${height > 0 ? `${ESC}${height}A` : ""}`;
  };
  return {
    async draw(lines) {
      const text = `${BEGIN}${back()}${lines.map((line) => `${ESC}2K${line}\n`).join("")}${ESC}J${END}`;
      height = lines.length;
      await stdout.write(text);
    },
    async erase() {
      if (height === 0) return;
      const text = `${back()}${ESC}J`;
      height = 0;
      await stdout.write(text);
    },
    leave() {
      height = 0;
    },
  };
}

/** For a terminal without escape sequences: prints changed lines below the previous ones. */
export function createScroll(stdout: OutStream): Screen {
  let last = "";
  return {
    async draw(lines) {
      const text = `${lines.join("\n")}\n`;
      if (text === last) return;
      await stdout.write(last === "" ? text : `\n${text}`);
      last = text;
    },
    async erase() {},
    leave() {},
  };
}
