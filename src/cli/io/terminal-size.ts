/** The width if the terminal's is unknown, and the least width that is accepted. */
export const TERMINAL_COLUMNS = { usual: 80, least: 20 };

/** Lines of help that are longer than this are hard to read, however wide the terminal. */
export const WIDEST_HELP = 100;

/**
 * The size to print for: the environment's, else the terminal's, else the usual one; at most 1000.
 *
 * @param setting the value of a variable such as `COLUMNS`
 */
export function terminalSize(
  setting: string | undefined,
  reported: number | undefined,
  { usual, least }: { usual: number; least: number },
): number {
  const wanted = /^\d+$/.test(setting ?? "") ? Number(setting) : 0;
  return Math.min(1000, Math.max(least, wanted || reported || usual));
}
