import { isAgentAuthError } from "../../src/errors.js";

/** All that an error tells a program, a line each: complete, to be held by a snapshot. */
export const told = (error: unknown) => toldWithPorts(error).replace(PORT, "<port>");

/** The same, with the ports of this run. */
export function toldWithPorts(error: unknown): string {
  if (!isAgentAuthError(error)) return String(error);
  const { code, class: kind, message, ...rest } = error.toJSON();
  const more = Object.entries(rest).map(([name, value]) => `${name}: ${shown(value)}`);
  return [`${code} (${kind}): ${message}`, ...more].join("\n");
}

const PORT = /(?<=(?:127\.0\.0\.1|localhost|\[::1\])(?::|%3A))\d+/g;

const shown = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
