/** The exit codes of the CLI, in one table. */

import type { ErrorClass } from "../../errors.js";

/** The process exit code for each outcome. A reader that closes the pipe early is `ok`. */
export const EXIT_CODES = {
  ok: 0,
  internal: 1,
  usage: 2,
  refused: 3,
  auth: 4,
  unavailable: 5,
  remote: 6,
  partial: 7,
  store: 8,
  /** SIGHUP. */
  hungUp: 129,
  /** SIGINT. */
  aborted: 130,
  /** SIGTERM. */
  terminated: 143,
} as const satisfies Record<ErrorClass | "ok" | "hungUp" | "terminated", number>;

/** One outcome of {@link EXIT_CODES}. */
export type Outcome = keyof typeof EXIT_CODES;

/** What each outcome means, for `help exit-codes`. */
export const EXIT_CODE_MEANINGS: Readonly<Record<Outcome, string>> = {
  ok: "done; also when the reader closed the pipe early",
  internal: "a bug in agentauth",
  usage: "unknown flag, bad value, bad config file",
  refused: "a peer broke a protocol or security rule; its response was not trusted",
  auth: "authentication required, denied or expired",
  unavailable: "DNS, connection, TLS, timeout, or 429/5xx after the retries",
  remote: "the service rejected the request",
  partial: "a list ended incomplete, and stderr has the command that continues it; or some of its items have no id",
  store: "the local store or keychain cannot be used safely, the output cannot be written, or jq failed",
  hungUp: "the terminal was closed, or its connection broke (SIGHUP)",
  aborted: "interrupted (SIGINT)",
  terminated: "terminated (SIGTERM)",
};

/** The exit code for a class of errors; an unknown one, of a newer copy of the package, counts as internal. */
export function exitCodeFor(errorClass: ErrorClass): number {
  return Object.hasOwn(EXIT_CODES, errorClass) ? EXIT_CODES[errorClass] : EXIT_CODES.internal;
}
