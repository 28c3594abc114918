/** A watched list as a table that is redrawn in place. */

import { heldMessages } from "../../../io/held-messages.js";
import type { Io, OutStream } from "../../../io/io.js";
import { cutText } from "../../../io/width.js";
import { createWriter, type OutputOptions } from "../../../output/writer.js";
import type { ProcessSignals } from "../../../runtime/context.js";
import type { WatchFormat } from "./options.js";
import type { Poll } from "./poll.js";
import { createScreen, createScroll } from "./screen.js";
import type { View } from "./view.js";

/** Options of {@link screenView}. */
export interface ScreenOptions {
  format: Exclude<WatchFormat, "ndjson">;
  output: OutputOptions;
  /** The kind of items: `devices`. */
  noun: string;
  /** The poll interval, as text. */
  every: string;
  /** Milliseconds since the epoch. */
  now: () => number;
  signals: ProcessSignals;
}

/** Draws a table with as many rows as fit on the screen, and a status line. */
export function screenView(io: Io, options: ScreenOptions): View & { close(): void } {
  const isDumb = io.env["TERM"] === "dumb";
  const screen = isDumb ? createScroll(io.stdout) : createScreen(io.stdout);
  const messages = heldMessages(io);
  let lines: readonly string[] = [];
  const draw = async () => {
    if (messages.isWaiting()) await screen.erase();
    messages.release();
    await screen.draw(lines);
    messages.hold();
  };
  // The shell has written below the table while the program was stopped.
  const release = process.platform === "win32" ? () => {} : options.signals.on("SIGCONT", () => screen.leave());
  return {
    io: messages.io,
    async show(poll) {
      lines = await frame(poll, io, options);
      await draw();
    },
    async flushMessages() {
      if (messages.isWaiting()) await draw();
    },
    close() {
      messages.release();
      release();
    },
  };
}

async function frame(poll: Poll, io: Io, { format, output, noun, every, now }: ScreenOptions): Promise<string[]> {
  const { rows, columns, colors } = io.stdout;
  const printed: string[] = [];
  const collector: OutStream = {
    isTTY: true,
    columns,
    rows,
    colors,
    async write(text) {
      printed.push(String(text));
    },
  };
  const quiet = heldMessages(io, collector);
  // Messages about the table, such as about cut cells, do not fit a screen that is redrawn.
  quiet.hold();
  const writer = createWriter(format, output, quiet.io);
  // Rows outside the screen need not be measured.
  await writer.write(poll.items.slice(0, rows));
  await writer.end();
  const table = printed.join("").split("\n").slice(0, -1);
  // One line for the cursor, one for the status.
  const room = Math.max(1, rows - 2);
  const isTooLong = table.length > room || poll.items.length > rows;
  const shown = isTooLong ? table.slice(0, room - 1) : table;
  const about = [...(isTooLong ? ["… more rows than fit on the screen"] : []), stateText(poll, { noun, every, now })];
  return [...shown, ...about.map((text) => colors.dim(cutText(text, columns)))];
}

function stateText({ items, others, total }: Poll, about: Pick<ScreenOptions, "noun" | "every" | "now">): string {
  const all = total ?? items.length + others.length;
  const count = items.length === all ? `${all} ${about.noun}` : `${items.length} of ${all} ${about.noun}`;
  return `${count} at ${new Date(about.now()).toTimeString().slice(0, 8)}, every ${about.every}, Ctrl-C to stop`;
}
