import type { Io } from "../../../io/io.js";
import type { Poll } from "./poll.js";

/** Shows a watched list. */
export interface View {
  /** The `Io` for messages. */
  readonly io: Io;
  /** Shows the result of a poll. */
  show(poll: Poll): Promise<void>;
  /** Prints the messages since the last poll. */
  flushMessages(): Promise<void>;
}
