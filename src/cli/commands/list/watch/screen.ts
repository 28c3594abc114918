/** Lines on a terminal that are drawn again in their own place. */

import type { OutStream } from "../../../io/io.js";

const ESC = "\u001b[";
// Drawn as one picture where the terminal knows how; the cursor is away and long lines are cut at the edge. Each drawing
// gives all of that back, so that whatever ends the program leaves the terminal as it was.
const BEGIN = `${ESC}?2026h${ESC}?25l${ESC}?7l`;
const END = `${ESC}?7h${ESC}?25h${ESC}?2026l`;

/** A part of the screen. */
export interface Screen {
  /** Shows these lines in place of the ones before; at most one less than the screen has. */
  draw(lines: readonly string[]): Promise<void>;
  /** Takes them away, so that something else can be printed there. */
  erase(): Promise<void>;
  /** Leaves what is shown, and draws below it from here on. */
  leave(): void;
}

/** The lines above the cursor. Nothing else on the screen is touched. */
export function createScreen(stdout: OutStream): Screen {
  let height = 0;
  let columns = stdout.columns;
  /** The way back to the first line; none where the terminal has another width, since lines may have been broken anew. */
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

/** For a terminal that knows no escape sequences: lines below lines, where they changed. */
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
