/** An output that waits until it is longer than the screen, and then goes somewhere else. */

import { stripVTControlCharacters } from "node:util";
import type { OutStream } from "./stream.js";
import { textWidth } from "./width.js";

/** Where a long output goes. */
export interface LongOutput {
  write(text: string | Uint8Array): Promise<void>;
  /** Resolves when the person has left it. */
  end(): Promise<void>;
}

/** A stream, and its end. */
export interface PagedStream {
  readonly stream: OutStream;
  /** Prints what was short enough to wait, or waits until the long output is left. */
  end(): Promise<void>;
}

/**
 * Keeps what is written until it fills the screen of the terminal `out`; then `openLong` decides: what it gives gets
 * everything, and where it gives nothing, `out` does.
 */
export function pagedStream(out: OutStream, openLong: () => Promise<LongOutput | undefined>): PagedStream {
  const waiting: (string | Uint8Array)[] = [];
  const isLong = lineCounter(out);
  let long: LongOutput | undefined;
  let isOpen = false;
  const flush = async (target: Pick<LongOutput, "write">) => {
    for (const text of waiting.splice(0)) await target.write(text);
  };
  return {
    stream: {
      isTTY: out.isTTY,
      get columns() {
        return out.columns;
      },
      get rows() {
        return out.rows;
      },
      colors: out.colors,
      async write(text) {
        if (isOpen) return (long ?? out).write(text);
        waiting.push(text);
        if (!isLong(text)) return;
        long = await openLong();
        isOpen = true;
        await flush(long ?? out);
      },
    },
    async end() {
      if (long) return long.end();
      await flush(out);
    },
  };
}

/** Whether everything so far takes more lines than the screen has; the last one is the prompt's. */
function lineCounter({ columns, rows }: OutStream): (text: string | Uint8Array) => boolean {
  let lines = 0;
  let unfinished = "";
  return (text) => {
    const parts = (unfinished + (typeof text === "string" ? text : Buffer.from(text).toString("utf8"))).split("\n");
    unfinished = parts.pop() ?? "";
    for (const part of parts) {
      lines += Math.max(1, Math.ceil(textWidth(stripVTControlCharacters(part)) / columns));
      if (lines >= rows) return true;
    }
    return false;
  };
}
