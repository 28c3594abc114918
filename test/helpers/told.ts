import { tmpdir } from "node:os";
import { expect } from "vitest";
import { isAgentAuthError } from "../../src/errors.js";
import { rejection } from "./service.js";
import { ON_LINUX } from "./systems.js";

/**
 * The error that a promise rejects with. A snapshot holds all that it tells, so that no text of an error changes or gets
 * lost unseen.
 */
export async function heldError(work: unknown): Promise<unknown> {
  const error = await rejection(Promise.resolve(work));
  if (ON_LINUX) expect(told(error)).toMatchSnapshot();
  return error;
}

/** All that an error tells a program, a line each, without what differs from run to run. */
export const told = (error: unknown) => stable(toldWithPorts(error));

/** A text without what differs from run to run, and between versions of Node. */
export function stable(text: string): string {
  return text
    .replace(/(?<=(?:127\.0\.0\.1|localhost|\[::1\])(?::|%3A))\d+/g, "<port>")
    .replace(FOLDER, "<folder>")
    .replace(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
    .replace(/(?<=\bprocess |kill -CONT )\d+/g, "<process>")
    .replace(/\b[\da-f]{12,}\b|(?<=")(?:[\da-f]{8}|[\w-]{43})(?=")|\b[\da-f]{8}-[\da-f-]{27}\b/g, "<id>")
    .replace(/\((?:[A-Z]+_[A-Z_]+|\w+Error): .*\)/g, "(<reason>)");
}

const FOLDER = new RegExp(`${tmpdir()}/[\\w-]+(?:/f-\\w+)?`, "g");

/** The same, with the ports and folders of this run. */
export function toldWithPorts(error: unknown): string {
  if (!isAgentAuthError(error)) return String(error);
  const { code, class: kind, message, ...rest } = error.toJSON();
  const more = Object.entries(rest).map(([name, value]) => `${name}: ${shown(value)}`);
  return [`${code} (${kind}): ${message}`, ...more].join("\n");
}

const shown = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
