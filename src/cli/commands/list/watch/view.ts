import type { Io } from "../../../io/io.js";
import type { Poll } from "./poll.js";

/** Where a watched list is shown. */
export interface View {
  /** What messages go through. */
  readonly io: Io;
  /** Shows a reading. */
  show(round: Poll): Promise<void>;
  /** Lets messages appear that were said since the last reading. */
  tell(): Promise<void>;
}
