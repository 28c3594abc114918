import { encode } from "#packages/uqr";
import type { LoginDisplay } from "../../login/login-display.js";
import type { Io } from "../io/io.js";
import { hasHyperlinks, isAscii } from "../io/terminal-features.js";

/** A login on the terminal of stderr. */
export function loginDisplay(io: Pick<Io, "stderr" | "env">): LoginDisplay {
  const { stderr, env } = io;
  // A closed stderr is not a failure.
  const print = (text: string) => void stderr.write(text).catch(() => {});
  return {
    link(url) {
      const text = hasHyperlinks(env) ? `\u001b]8;;${url}\u001b\\${url}\u001b]8;;\u001b\\` : url;
      print(`  ${text}\n`);
    },
    async qrCode(text) {
      // Without colours of its own, the code would be inverted on every other terminal.
      if (isAscii(env) || !stderr.colors.isColorSupported) return false;
      const { columns, lines } = qrLines(text);
      if (lines.length >= stderr.rows || columns > stderr.columns) return false;
      print(`${lines.join("\n")}\n\n`);
      return true;
    },
  };
}

/** Black on white, whatever the theme: numbers of the fixed part of the palette. */
const COLORS = "\u001b[38;5;16;48;5;231m";
const RESET = "\u001b[0m";
/** By the dark of the upper and of the lower module. */
const BLOCKS = [
  [" ", "▄"],
  ["▀", "█"],
] as const;
/** Modules of white around the code; scanners read screens with half of the four of the standard. */
const QUIET_ZONE = 2;

/** A QR code in lines of two rows of modules each. */
export function qrLines(text: string): { columns: number; lines: string[] } {
  const { data, size } = encode(text, { ecc: "L", border: QUIET_ZONE });
  const lines = Array.from({ length: Math.ceil(size / 2) }, (_, nth) => {
    const isDark = (row: number, column: number) => (data[row]?.[column] === true ? 1 : 0);
    const blocks = Array.from({ length: size }, (_, column) => {
      return BLOCKS[isDark(2 * nth, column)][isDark(2 * nth + 1, column)];
    });
    return `${COLORS}${blocks.join("")}${RESET}`;
  });
  return { columns: size, lines };
}
