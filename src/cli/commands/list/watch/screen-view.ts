/** A watched list as a table that is drawn again. */

import { heldMessages } from "../../../io/held-messages.js";
import type { Io, OutStream } from "../../../io/io.js";
import { cutText } from "../../../io/width.js";
import { createWriter, type OutputOptions } from "../../../output/writer.js";
import type { WatchFormat } from "./options.js";
import type { Poll } from "./poll.js";
import { createScreen, createScroll } from "./screen.js";
import type { View } from "./view.js";

/** What the table looks like. */
export interface ScreenOptions {
  format: Exclude<WatchFormat, "ndjson">;
  output: OutputOptions;
  /** What is listed: `devices`. */
  noun: string;
  /** How often it is read, as text. */
  every: string;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** Draws a table of as many rows as the screen has room for, and a line about it. */
export function screenView(io: Io, options: ScreenOptions): View & { close(): void } {
  const isDumb = io.env["TERM"] === "dumb";
  const screen = isDumb ? createScroll(io.stdout) : createScreen(io.stdout);
  const messages = heldMessages(io);
  let lines: readonly string[] = [];
  const draw = async () => {
    if (messages.isWaiting()) await screen.erase();
    messages.release();
    await screen.draw(lines);
    messages.hold("everything");
  };
  // A shell has written below the table while the program was stopped.
  const onContinue = () => screen.leave();
  if (process.platform !== "win32") process.on("SIGCONT", onContinue);
  return {
    io: messages.io,
    async show(round) {
      lines = await frame(round, io, options);
      await draw();
    },
    async tell() {
      if (messages.isWaiting()) await draw();
    },
    close() {
      messages.release();
      if (process.platform !== "win32") process.off("SIGCONT", onContinue);
    },
  };
}

async function frame(round: Poll, io: Io, { format, output, noun, every, now }: ScreenOptions): Promise<string[]> {
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
  // What the table would say about itself has no place on a screen that is drawn again.
  quiet.hold("everything");
  const writer = createWriter(format, output, quiet.io);
  // Rows that nobody sees need not be measured.
  await writer.write(round.items.slice(0, rows));
  await writer.end();
  const table = printed.join("").split("\n").slice(0, -1);
  // A line for the cursor, one for the state.
  const room = Math.max(1, rows - 2);
  const isTooLong = table.length > room || round.items.length > rows;
  const shown = isTooLong ? table.slice(0, room - 1) : table;
  const about = [
    ...(isTooLong ? ["… the screen has no room for the others"] : []),
    stateText(round, { noun, every, now }),
  ];
  return [...shown, ...about.map((text) => colors.dim(cutText(text, columns)))];
}

function stateText({ items, others, total }: Poll, about: Pick<ScreenOptions, "noun" | "every" | "now">): string {
  const all = total ?? items.length + others.length;
  const count = items.length === all ? `${all} ${about.noun}` : `${items.length} of ${all} ${about.noun}`;
  return `${count} at ${new Date(about.now()).toTimeString().slice(0, 8)}, every ${about.every}, Ctrl-C ends`;
}
