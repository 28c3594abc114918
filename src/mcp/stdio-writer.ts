import type { RpcMessage } from "./rpc.js";

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
