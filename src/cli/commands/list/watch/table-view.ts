/** A watched list as a table that is redrawn in place, with a status line below it. */

import type { Io } from "../../../io/io.js";
import { cutText } from "../../../io/width.js";
import { createWriter, type OutputOptions } from "../../../output/writer.js";
import type { WatchFormat } from "./options.js";
import type { Poll, View } from "./poll.js";

/** Options of {@link tableView}. */
export interface TableOptions {
  format: Exclude<WatchFormat, "ndjson">;
  output: OutputOptions;
  /** The kind of items: `devices`. */
  noun: string;
  /** The poll interval, as text. */
  every: string;
  /** Milliseconds since the epoch. */
  now: () => number;
}

const ESC = "\u001b[";
// Synchronized output, hidden cursor, no line wrap. Each drawing restores all three, so that an exit at any time leaves
// the terminal as it was.
const BEGIN = `${ESC}?2026h${ESC}?25l${ESC}?7l`;
const END = `${ESC}?7h${ESC}?25h${ESC}?2026l`;

/** Draws a table with as many rows as fit on the screen, and a status line; below a message if there was one since. */
export function tableView(io: Io, options: TableOptions): View {
  const { stdout, env, settings } = io;
  /** The lines above the cursor that the next table replaces. */
  let height = 0;
  let columns = stdout.columns;
  const leaving = (print: (text: string) => void) => (text: string) => {
    height = 0;
    print(text);
  };
  const messages = {
    say: leaving(io.say),
    warn: leaving(io.warn),
    verbose: settings.verbose === true ? leaving(io.verbose) : io.verbose,
  };
  return {
    io: override(io, messages),
    async show(poll) {
      const lines = await tableLines(poll, io, options);
      // After a change of width, the terminal may have wrapped the lines again.
      const up = height > 0 && columns === stdout.columns ? `${ESC}${height}A` : "";
      [height, columns] = [lines.length, stdout.columns];
      const drawn = `${BEGIN}\r${up}${lines.map((line) => `${ESC}2K${line}\n`).join("")}${ESC}J${END}`;
      await stdout.write(env["TERM"] === "dumb" ? `${lines.join("\n")}\n\n` : drawn);
    },
  };
}

/** The `Io` with some parts exchanged; a copy would open standard input. */
function override(io: Io, parts: Partial<Io>): Io {
  return Object.assign(Object.create(io) as Io, parts);
}

async function tableLines(poll: Poll, io: Io, options: TableOptions): Promise<string[]> {
  const { rows, columns, colors } = io.stdout;
  const printed: string[] = [];
  const write = async (text: string | Uint8Array) => {
    printed.push(String(text));
  };
  // Messages about the table, such as about cut cells, do not fit a table that is redrawn.
  const quiet = { say() {}, warn() {}, verbose() {} };
  const stdout = { isTTY: true, columns, rows, colors, write };
  const writer = createWriter(options.format, options.output, override(io, { ...quiet, stdout }));
  // Rows outside the screen need not be measured.
  await writer.write(poll.items.slice(0, rows));
  await writer.end();
  const table = printed.join("").split("\n").slice(0, -1);
  // One line for the cursor, one for the status.
  const room = Math.max(1, rows - 2);
  return [...table.slice(0, room), colors.dim(cutText(statusText(poll, table.length > room, options), columns))];
}

function statusText({ items, others, total }: Poll, isCut: boolean, { noun, every, now }: TableOptions): string {
  const all = total ?? items.length + others.length;
  const count = items.length === all ? `${all} ${noun}` : `${items.length} of ${all} ${noun}`;
  const more = isCut ? " (more than fit on the screen)" : "";
  return `${count}${more} at ${new Date(now()).toTimeString().slice(0, 8)}, every ${every}, Ctrl-C to stop`;
}
