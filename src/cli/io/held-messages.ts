/** Messages that wait while something else uses the terminal. */

import type { Io, OutStream } from "./io.js";
import type { Progress } from "./progress.js";

/** An {@link Io} whose messages can be held back. */
export interface HeldMessages {
  /** The `Io` to print with. */
  readonly io: Io;
  /** Holds back messages from now on, and stops all progress. */
  hold(): void;
  /** Prints the held messages, and prints later ones at once again. */
  release(): void;
  /** Whether messages are held. */
  isWaiting(): boolean;
}

/** Wraps an `Io`; output goes to `stdout`. Nothing is held at first. */
export function heldMessages(io: Io, stdout: OutStream = io.stdout): HeldMessages {
  const held: (() => void)[] = [];
  const shown = new Set<Progress>();
  let isHeld = false;
  const holdable = (print: (text: string) => void) => (text: string) => {
    if (isHeld) held.push(() => print(text));
    else print(text);
  };
  return {
    io: {
      // The first access opens standard input.
      get stdin() {
        return io.stdin;
      },
      stdout,
      stderr: io.stderr,
      env: io.env,
      settings: io.settings,
      isRedirected: io.isRedirected,
      with: (changed) => io.with(changed),
      say: holdable(io.say),
      // What would not be printed need not be held.
      verbose: io.settings.verbose === true ? holdable(io.verbose) : () => {},
      warn: holdable(io.warn),
      progress() {
        if (isHeld) return { update() {}, stop() {} };
        const progress = io.progress();
        shown.add(progress);
        return progress;
      },
    },
    hold() {
      isHeld = true;
      for (const progress of shown) progress.stop();
    },
    release() {
      isHeld = false;
      for (const print of held.splice(0)) print();
    },
    isWaiting: () => held.length > 0,
  };
}
