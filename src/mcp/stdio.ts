import { type RpcMessage, writeExactJson } from "./json-rpc.js";

const NEWLINE = 0x0a;

/**
 * Yields the lines of a stream without their ends, and undefined for each line longer than `maxBytes`, which is not
 * buffered. The last line needs no end.
 */
export async function* readLines(
  source: AsyncIterable<Buffer | string>,
  maxBytes: number,
): AsyncGenerator<string | undefined> {
  let parts: Buffer[] = [];
  let size = 0;
  const append = (part: Buffer) => {
    size += part.length;
    if (size > maxBytes) parts = [];
    else if (part.length > 0) parts.push(part);
  };
  const endLine = (): string | undefined => {
    const line = size > maxBytes ? undefined : Buffer.concat(parts).toString("utf8");
    parts = [];
    size = 0;
    return line;
  };
  for await (const chunk of source) {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    let from = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, from)) {
      append(bytes.subarray(from, end));
      yield endLine();
      from = end + 1;
    }
    append(bytes.subarray(from));
  }
  if (size > 0) yield endLine();
}

/** Characters that may wait for a slow host before the proxy stops reading from the server. */
const MAX_BACKLOG = 1024 * 1024;

/** How long one that was let on keeps the next waiting, if no message comes of it. */
const MAX_TURN_MS = 100;

export type StdioWriter = ReturnType<typeof createStdioWriter>;

/**
 * Writes messages to the host, one per line.
 *
 * @param write resolves when the host has read the text, and rejects when the pipe is closed
 * @param onClosed called once when `write` rejects; later messages are dropped
 */
export function createStdioWriter(write: (text: string) => Promise<void>, onClosed: (error: unknown) => void) {
  let backlog = 0;
  let isClosed = false;
  let last = Promise.resolve();
  const waiting: (() => void)[] = [];
  let timer: NodeJS.Timeout | undefined;
  // If all that wait read at once, all that they read is in memory at once.
  const wakeNext = () => {
    clearTimeout(timer);
    if (backlog > MAX_BACKLOG) return;
    waiting.shift()?.();
    if (waiting.length > 0) timer = setTimeout(wakeNext, MAX_TURN_MS);
  };
  const writeNext = async (text: string) => {
    try {
      if (!isClosed) await write(text);
    } catch (error) {
      isClosed = true;
      onClosed(error);
    } finally {
      backlog -= text.length;
      wakeNext();
    }
  };
  return {
    send(message: RpcMessage): void {
      const text = `${writeExactJson(message)}\n`;
      backlog += text.length;
      last = last.then(() => writeNext(text));
    },
    /**
     * Resolves when the host has read enough to accept more, for one caller after the other.
     *
     * @param hasBegun whether part of what follows is in memory
     */
    ready: (hasBegun = false): Promise<void> | undefined =>
      backlog > MAX_BACKLOG || (waiting.length > 0 && !hasBegun)
        ? new Promise<void>((resolve) => waiting.push(resolve))
        : undefined,
    /** Resolves when everything is written, or the host has closed the pipe. */
    flushed: (): Promise<void> => last,
  };
}
