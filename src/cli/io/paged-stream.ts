/** An output that is buffered until it is longer than the screen, and then goes to another output. */

import { stripVTControlCharacters } from "node:util";
import type { OutStream } from "./stream.js";
import { textWidth } from "./width.js";

/** The target of a long output. */
export interface LongOutput {
  write(text: string | Uint8Array): Promise<void>;
  /** Resolves when the user has closed it. */
  end(): Promise<void>;
}

/** A stream, and its end. */
export interface PagedStream {
  readonly stream: OutStream;
  /** Prints the buffered text, or waits until the user closes the long output. */
  end(): Promise<void>;
}

/**
 * Buffers the output until it fills the screen of the terminal `out`. Then everything goes to the output that `openLong`
 * returns, or to `out` if it returns none.
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

/** Whether the output so far takes more lines than the screen has; the last line is for the prompt. */
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
