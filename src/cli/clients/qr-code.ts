import { encode } from "uqr";

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
