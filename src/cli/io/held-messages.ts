/** Messages that wait while something else uses the terminal. */

import type { Io, OutStream } from "./io.js";
import type { Progress } from "./progress.js";

/** An {@link Io} whose messages can be held back. */
export interface HeldMessages {
  /** The `Io` to print with. */
  readonly io: Io;
  /** Holds back messages from now on. `everything`: also the steps of `--verbose`, and stops all progress. */
  hold(what: "talk" | "everything"): void;
  /** Prints the held messages, and prints later ones at once again. */
  release(): void;
  /** Whether messages are held. */
  isWaiting(): boolean;
}

/** Wraps an `Io`; output goes to `stdout`. Nothing is held at first. */
export function heldMessages(io: Io, stdout: OutStream = io.stdout): HeldMessages {
  const held: (() => void)[] = [];
  const shown = new Set<Progress>();
  let holds: "nothing" | "talk" | "everything" = "nothing";
  const holdWhile = (isHeld: () => boolean, print: (text: string) => void) => (text: string) => {
    if (isHeld()) held.push(() => print(text));
    else print(text);
  };
  const talkIsHeld = () => holds !== "nothing";
  const allIsHeld = () => holds === "everything";
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
      with: (changed) => io.with(changed),
      say: holdWhile(talkIsHeld, io.say),
      // What would not be printed need not be held.
      verbose: io.settings.verbose === true ? holdWhile(allIsHeld, io.verbose) : () => {},
      warn: holdWhile(talkIsHeld, io.warn),
      progress() {
        if (allIsHeld()) return { update() {}, stop() {} };
        const progress = io.progress();
        shown.add(progress);
        return progress;
      },
    },
    hold(what) {
      holds = what;
      if (what === "everything") for (const progress of shown) progress.stop();
    },
    release() {
      holds = "nothing";
      for (const print of held.splice(0)) print();
    },
    isWaiting: () => held.length > 0,
  };
}
