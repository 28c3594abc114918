import { quote } from "../redact.js";
import type { HttpEvent } from "./buffered-response.js";

/** Receives lines of a log, such as `console`, or a logger of pino or winston. Nothing in a line is secret. */
export interface Logger {
  /** Each request and each response. */
  debug(message: string): void;
  /** What is worth a line in production. */
  info(message: string): void;
  /** A failed attempt, a retry, and an order that the service ignored. */
  warn(message: string): void;
  /** An error that no caller receives. */
  error(message: string): void;
}

/** What receives the events of a transport: the caller's function, and a logger, which gets no query. */
export function eventReceiver(
  logger: Logger | undefined,
  onEvent: ((event: HttpEvent) => void) | undefined,
): ((event: HttpEvent) => void) | undefined {
  if (logger === undefined) return onEvent;
  return (event) => {
    onEvent?.(event);
    const isTrouble = event.type === "failure" || event.type === "retry";
    logger[isTrouble ? "warn" : "debug"](lineOf(event));
  };
}

function lineOf(event: HttpEvent): string {
  switch (event.type) {
    case "request":
      return `${event.method} ${event.url}`;
    case "response": {
      const id = event.requestId === undefined ? "" : `, request id ${quote(event.requestId)}`;
      return `${event.method} ${event.url}: HTTP ${event.status} in ${Math.round(event.ms)} ms${id}`;
    }
    case "failure":
      return `${event.method} ${event.url}: ${event.code} after ${Math.round(event.ms)} ms`;
    case "retry":
      return `${event.url}: attempt ${event.attempt} in ${event.waitMs} ms (${event.reason})`;
  }
}
