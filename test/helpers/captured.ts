import { tmpdir } from "node:os";
import { expect } from "vitest";
import { isAgentAuthError } from "../../src/errors.js";
import type { TraceEntry } from "../../src/oauth/http/http.js";
import { rejection } from "./service.js";
import { ON_LINUX } from "./systems.js";

/**
 * The error that a promise rejects with. A snapshot holds all that it tells, so that no text of an error changes or gets
 * lost unseen.
 */
export async function pendingError(work: unknown): Promise<unknown> {
  return captureError(await rejection(Promise.resolve(work)));
}

/** {@link pendingError} of an error that is there, if there is one. */
export function captureError<T>(error: T): T {
  if (ON_LINUX && error !== undefined) expect(captured(error)).toMatchSnapshot();
  return error;
}

/**
 * Holds the reasons why answers of a trace were not used, and the error that the requests ended with, in a snapshot.
 * It leaves out the misses and the answers that were used.
 */
export function captureTrace(trace: readonly TraceEntry[], error: unknown): void {
  const reasons = trace
    .filter(({ step, used, why }) => !(used || step === "challenge" || why === "no document here"))
    .map(({ step, why }) => stable(`${step}: ${why}`));
  const all = [...reasons, ...(error === undefined ? [] : [captured(error)])];
  // Two addresses may be read at once.
  if (ON_LINUX && all.length > 0) expect(all.sort()).toMatchSnapshot();
}

/** All that an error tells a program, a line each, without what differs from run to run. */
const captured = (error: unknown) => stable(capturedWithPorts(error));

/** A text without what differs from run to run, and between versions of Node. */
function stable(text: string): string {
  return text
    .replace(/(?<=(?:127\.0\.0\.1|localhost|\[::1\])(?::|%3A))\d+/g, "<port>")
    .replace(FOLDER, "<folder>")
    .replace(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
    .replace(/(?<=\bprocess |kill -CONT )\d+/g, "<process>")
    .replace(/\b[\da-f]{12,}\b|(?<=")(?:[\da-f]{8}|[\w-]{43})(?=")|\b[\da-f]{8}-[\da-f-]{27}\b/g, "<id>")
    .replace(/\((?:[A-Z]+_[A-Z_]+|\w+Error): .*\)/g, "(<reason>)");
}

const FOLDER = new RegExp(`${tmpdir()}/[\\w-]+(?:/f-\\w+)?`, "g");

/**
 * The same, with the ports and folders of this run: the code with the class, the status and whether a retry may help, the
 * message, and what else the error says.
 */
export function capturedWithPorts(error: unknown): string {
  if (!isAgentAuthError(error)) return String(error);
  const { code, class: kind, message, retryable, status, url, ...rest } = error.toJSON();
  const kinds = [kind, ...(status === undefined ? [] : [status]), ...(retryable ? ["retryable"] : [])];
  const named = url === undefined || message.includes(url) ? {} : { url };
  const more = Object.entries({ ...rest, ...named }).map(([name, value]) => `${name}: ${shown(value)}`);
  return [`${code} (${kinds.join(", ")}): ${message}`, ...more].join("\n");
}

const shown = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
