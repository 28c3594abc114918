import { networkError } from "../../../http/network-error.js";
import { escapeText } from "../../../redact.js";
import type { Io, OutStream } from "../../io/io.js";
import { terminalText } from "./terminal-text.js";

/**
 * Prints an answer as it comes: bytes for a pipe, harmless text for a terminal. A reader that is slow slows the server;
 * one that is gone ends the answer.
 *
 * @param include prints the status line and the headers first
 * @throws `PipeClosed`; `AgentAuthError` where the answer breaks off
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
    // Of no effect on a body that has ended.
    await reader.cancel().catch(() => undefined);
  }
}

/** Whatever the wire had, fetch speaks of it in the terms of HTTP/1.1. */
async function printHead({ status, statusText, headers }: Response, stdout: OutStream): Promise<void> {
  const lines = [
    `HTTP/1.1 ${status} ${statusText}`.trimEnd(),
    ...[...headers].map(([name, value]) => `${name}: ${value}`),
  ];
  if (stdout.isTTY) await stdout.write(`${lines.map(escapeText).join("\n")}\n\n`);
  // Each character of a header stands for one byte.
  else await stdout.write(Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"));
}
