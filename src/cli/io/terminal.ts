import type { Env } from "../../platform.js";

/** How large the terminal is, and what it can show, by the variables that it sets. */

/** The width if the terminal's is unknown, and the least width that is accepted. */
export const TERMINAL_COLUMNS = { usual: 80, least: 20 };

/** Lines of help that are longer than this are hard to read, however wide the terminal. */
export const WIDEST_HELP = 100;

/** The size to print for: the environment's, else the terminal's, else the usual one; at most 1000. */
export function terminalSize(
  setting: string | undefined,
  reported: number | undefined,
  { usual, least }: { usual: number; least: number },
): number {
  const wanted = /^\d+$/.test(setting ?? "") ? Number(setting) : 0;
  return Math.min(1000, Math.max(least, wanted || reported || usual));
}

/** Whether the terminal or the locale supports only ASCII; by default it supports more. */
export function isAscii(env: Env): boolean {
  if (env["TERM"] === "dumb") return true;
  const locale = env["LC_ALL"] ?? env["LC_CTYPE"] ?? env["LANG"] ?? "";
  if (/^(?:C|POSIX)$/.test(locale)) return true;
  return /\.(?!utf-?8)/i.test(locale);
}

const LINKING_PROGRAMS = /^(?:iTerm\.app|WezTerm|vscode|ghostty|Hyper|Tabby|rio)$/;
const LINKING_TERMS = /^(?:xterm-kitty|xterm-ghostty|alacritty|foot|contour)/;

/**
 * Whether a terminal is known to have hyperlinks (OSC 8). The older ones ignore them, except for a few that print the
 * sequence, so that an unknown one counts as without. `FORCE_HYPERLINK` decides where it is set.
 */
export function hasHyperlinks(env: Env): boolean {
  const forced = env["FORCE_HYPERLINK"];
  if (forced) return forced !== "0" && forced !== "false";
  if (env["TERM"] === "dumb") return false;
  return (
    LINKING_PROGRAMS.test(env["TERM_PROGRAM"] ?? "") ||
    LINKING_TERMS.test(env["TERM"] ?? "") ||
    // VTE (GNOME Terminal and others) has them since 0.50, without a crash since 0.52.
    Number(env["VTE_VERSION"] ?? 0) >= 5200 ||
    [env["WT_SESSION"], env["KITTY_WINDOW_ID"], env["KONSOLE_VERSION"], env["DOMTERM"]].some(Boolean)
  );
}
