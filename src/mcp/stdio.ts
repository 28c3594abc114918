import type { RpcMessage } from "./json-rpc.js";

/** A line without its end; undefined in place of one that is longer than is accepted. */
export type Line = string | undefined;

const NEWLINE = 0x0a;

/**
 * The lines of a stream, as they come. One that is too long is passed over without being kept, and what follows it is
 * read as usual; the last line needs no end.
 *
 * @param maxBytes the longest line that is accepted
 */
export async function* readLines(source: AsyncIterable<Buffer | string>, maxBytes: number): AsyncGenerator<Line> {
  let parts: Buffer[] = [];
  let size = 0;
  const keep = (part: Buffer) => {
    size += part.length;
    if (size > maxBytes) parts = [];
    else if (part.length > 0) parts.push(part);
  };
  const take = (): Line => {
    const line = size > maxBytes ? undefined : Buffer.concat(parts).toString("utf8");
    parts = [];
    size = 0;
    return line;
  };
  for await (const chunk of source) {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    let from = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, from)) {
      keep(bytes.subarray(from, end));
      yield take();
      from = end + 1;
    }
    keep(bytes.subarray(from));
  }
  if (size > 0) yield take();
}

/** Up to this many characters wait for a host that reads slowly before a server has to wait too. */
const MAX_BACKLOG = 1024 * 1024;

/** The way to the host: a message a line, one after the other. */
export interface StdioWriter {
  send(message: RpcMessage): void;
  /** Resolves when the host has read enough for more to be brought to it. */
  ready(): Promise<void>;
  /** Resolves when everything has been read, or the host reads no more. */
  flushed(): Promise<void>;
}

/**
 * @param write resolves when the host has taken the text, and fails when it never will
 * @param onClosed called once when it fails; whatever is sent after that is thrown away
 */
export function createStdioWriter(
  write: (text: string) => Promise<void>,
  onClosed: (error: unknown) => void,
): StdioWriter {
  let backlog = 0;
  let isClosed = false;
  let last = Promise.resolve();
  const pass = async (text: string) => {
    try {
      if (!isClosed) await write(text);
    } catch (error) {
      if (isClosed) return;
      isClosed = true;
      onClosed(error);
    } finally {
      backlog -= text.length;
    }
  };
  return {
    send(message) {
      const text = `${JSON.stringify(message)}\n`;
      backlog += text.length;
      last = last.then(() => pass(text));
    },
    async ready() {
      if (backlog > MAX_BACKLOG) await last;
    },
    flushed: () => last,
  };
}
