import { networkError } from "../../../http/network-error.js";
import { escapeText } from "../../../redact.js";
import type { Io, OutStream } from "../../io/io.js";
import { terminalText } from "./terminal-text.js";

/**
 * Prints a response as it arrives: bytes for a pipe, escaped text for a terminal. A slow reader slows the transfer; a
 * closed pipe ends it.
 *
 * @param include prints the status line and the headers first
 * @throws `PipeClosed`; `AgentAuthError` if the response breaks off
 */
export async function printResponse(response: Response, include: boolean, { stdout }: Io): Promise<void> {
  if (include) await printHead(response, stdout);
  if (response.body === null) return;
  const text = stdout.isTTY ? terminalText() : undefined;
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { value } = await reader.read().catch((thrown: unknown) => {
        throw networkError(thrown, response.url);
      });
      if (value === undefined) break;
      await (text ? stdout.write(text.push(value)) : stdout.write(value));
    }
    if (text) await stdout.write(text.end());
  } finally {
    // No effect after the end of the body.
    await reader.cancel().catch(() => undefined);
  }
}

/** Prints the head as HTTP/1.1, since fetch does not report the protocol. */
async function printHead({ status, statusText, headers }: Response, stdout: OutStream): Promise<void> {
  const lines = [
    `HTTP/1.1 ${status} ${statusText}`.trimEnd(),
    ...[...headers].map(([name, value]) => `${name}: ${value}`),
  ];
  if (stdout.isTTY) await stdout.write(`${lines.map(escapeText).join("\n")}\n\n`);
  // Each character of a header stands for one byte.
  else await stdout.write(Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"));
}
