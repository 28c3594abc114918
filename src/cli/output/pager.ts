/** Output to a terminal goes through the user's pager, as in git: less exits by itself if one screen is enough. */

import type { Format } from "../../profile/settings.js";
import { type Io, type OutStream, PipeClosed, type ProgressText } from "../io/io.js";
import type { CommandContext } from "../runtime/context.js";
import { isCi } from "../runtime/environment.js";
import { type Pager, startPager } from "./pager-process.js";

/** The flags that decide whether a pager is used. */
export interface PagerFlags {
  format: Format;
  /** `false` for `--no-pager`. */
  pager?: boolean;
  /** `false` for `--no-input`, and if an AI agent runs us. */
  input?: boolean;
}

/**
 * Runs the work with an output that starts the pager at its first text, and waits until the user quits the pager.
 * Messages are held until then. Without an interactive terminal, the work gets the output unchanged.
 *
 * @throws what the work throws; {@link PipeClosed} if the user quits the pager before it has everything
 */
export async function withPager(
  context: CommandContext,
  flags: PagerFlags,
  work: (context: CommandContext) => Promise<void>,
): Promise<void> {
  if (!isInteractive(context, flags)) return work(context);
  const stop = new AbortController();
  const follow = () => stop.abort(context.signal.reason);
  if (context.signal.aborted) follow();
  else context.signal.addEventListener("abort", follow, { once: true });
  let pager: Promise<Pager | undefined> | undefined;
  const start = async () => {
    // A line of a wide table is cut at the edge, and the arrow keys move it: less has no other way to stay readable.
    const started = await startPager(context, stop, { chops: flags.format === "wide" });
    if (started) messages.hold();
    return started;
  };
  const terminal = context.io.stdout;
  const stdout = inPlaceOf(terminal, {
    async write(text) {
      if (text.length === 0) return;
      pager ??= start();
      await ((await pager) ?? terminal).write(text);
    },
  });
  const messages = heldMessages(context.io, stdout);
  try {
    const [outcome] = await Promise.allSettled([work(context.with({ io: messages.io, signal: stop.signal }))]);
    await (await pager)?.end();
    // Whatever error the work throws after the user quits the pager.
    if (stop.signal.reason instanceof PipeClosed) throw stop.signal.reason;
    if (outcome.status === "rejected") throw outcome.reason;
  } finally {
    context.signal.removeEventListener("abort", follow);
    messages.release();
  }
}

function isInteractive({ io }: CommandContext, { format, pager, input }: PagerFlags): boolean {
  if (!io.stdout.isTTY || format === "ndjson" || pager === false || input === false) return false;
  if (io.env["AGENTAUTH_NO_INPUT"] || io.env["TERM"] === "dumb") return false;
  return !isCi(io.env);
}

/** The same with some other members. It reads the rest when it is used: a copy would open standard input at once. */
function inPlaceOf<T extends object>(original: T, members: Partial<T>): T {
  return Object.assign(Object.create(original) as T, members);
}

/** An {@link Io} whose messages can be held back. */
interface HeldMessages {
  /** The `Io` to print with. */
  readonly io: Io;
  /** Holds back messages from now on, and stops all progress. */
  hold(): void;
  /** Prints the held messages, and prints later ones at once again. */
  release(): void;
}

/** Wraps an `Io`; output goes to `stdout`. Nothing is held at first. */
export function heldMessages(io: Io, stdout: OutStream = io.stdout): HeldMessages {
  const held: (() => void)[] = [];
  const shown = new Set<ProgressText>();
  let isHeld = false;
  const holdable = (print: (text: string) => void) => (text: string) => {
    if (isHeld) held.push(() => print(text));
    else print(text);
  };
  return {
    io: inPlaceOf(io, {
      stdout,
      say: holdable(io.say),
      verbose: holdable(io.verbose),
      warn: holdable(io.warn),
      progress() {
        if (isHeld) return { update() {}, stop() {} };
        const progress = io.progress();
        shown.add(progress);
        return progress;
      },
    }),
    hold() {
      isHeld = true;
      for (const progress of shown) progress.stop();
    },
    release() {
      isHeld = false;
      for (const print of held.splice(0)) print();
    },
  };
}
