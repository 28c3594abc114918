import type { IncomingMessage } from "node:http";
import { Refusal } from "./sandbox-response.js";

/** Reads the body of a request. @throws Refusal 413 where it is longer than `max` bytes */
export async function readBody(request: IncomingMessage, max: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  // Leaving the loop must not destroy the connection: the refusal is still to be sent on it.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > max) {
      throw new Refusal(413, "bad_request", `the body must have at most ${max} bytes`, { connection: "close" });
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The parameters of a form. */
export function readForm(body: Buffer | undefined): URLSearchParams {
  return new URLSearchParams(body?.toString("utf8"));
}
