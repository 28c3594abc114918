/** Messages that wait while something else has the terminal. */

import type { Io, OutStream } from "./io.js";
import type { Progress } from "./progress.js";

/** An {@link Io} whose messages can be kept back. */
export interface HeldMessages {
  /** The one to print with. */
  readonly io: Io;
  /** Keeps back what is said from here on. `everything`: the steps of `--verbose` too, and progress is over for good. */
  hold(what: "talk" | "everything"): void;
  /** Says what was kept back, and says at once again. */
  release(): void;
  /** Whether anything waits to be said. */
  isWaiting(): boolean;
}

/** Wraps an `Io`; what is printed goes to `stdout`. Nothing is held at first. */
export function heldMessages(io: Io, stdout: OutStream = io.stdout): HeldMessages {
  const kept: (() => void)[] = [];
  const shown = new Set<Progress>();
  let holds: "nothing" | "talk" | "everything" = "nothing";
  const keptWhile = (isHeld: () => boolean, tell: (text: string) => void) => (text: string) => {
    if (isHeld()) kept.push(() => tell(text));
    else tell(text);
  };
  const talkIsHeld = () => holds !== "nothing";
  const allIsHeld = () => holds === "everything";
  return {
    io: {
      // Standard input is opened by whoever asks for it first.
      get stdin() {
        return io.stdin;
      },
      stdout,
      stderr: io.stderr,
      env: io.env,
      settings: io.settings,
      with: (changed) => io.with(changed),
      say: keptWhile(talkIsHeld, io.say),
      // What would not be printed need not be kept.
      verbose: io.settings.verbose === true ? keptWhile(allIsHeld, io.verbose) : () => {},
      warn: keptWhile(talkIsHeld, io.warn),
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
      for (const tell of kept.splice(0)) tell();
    },
    isWaiting: () => kept.length > 0,
  };
}
