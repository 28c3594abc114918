/** The short form of a list: its beginning, in few columns. `--brief` asks for it; an AI agent that names no form gets it. */

import type { Io } from "../io/io.js";
import { escapeJson } from "../output/safe-json.js";

/** The number of items. */
export const BRIEF_ITEMS = 50;

/** What was left out of an output, as the line on stderr says it. */
export interface BriefNotice {
  /** The number of items that were printed. */
  shown: number;
  /** The number of items that there are, if it is known. */
  total?: number | undefined;
  /** The fields that were printed. */
  columns: string;
  /** What prints the items that follow; null if there are none. */
  next: { offset: number; command: string } | null;
  /** What prints more. */
  message: string;
}

/** Prints the notice as one line. An output that leaves items out says so with `--quiet` too: nothing else does. */
export function sayBrief(io: Io, notice: BriefNotice): void {
  const loud = notice.next === null ? io : io.with({ quiet: false });
  loud.say(escapeJson(JSON.stringify(notice)));
}
