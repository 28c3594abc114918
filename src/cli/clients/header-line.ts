import { usageError } from "../../errors.js";
import { TOKEN } from "../../http/http-headers.js";
import { quote } from "../../redact.js";

/**
 * A header as it was typed.
 *
 * @param from the flag that it was typed after, or what else has it
 * @throws `AgentAuthError` `usage`, which shows only the start of the text: the rest may be a secret
 */
export function parseHeaderLine(line: string, from: string): { name: string; value: string } {
  const [, name = "", value = ""] = /^([^:]*):[ \t]*(.*?)[ \t]*$/s.exec(line) ?? [];
  // A line that is one word is all value.
  const shown = /[:\s]/.test(line) ? `${from} ${quote(line.split(/[:\s]/, 1)[0], 40)}` : from;
  if (!TOKEN.test(name)) throw usageError(`${shown} is not "name: value"`, 'for example "Accept: text/plain"');
  checkHeaderValue(value, shown);
  return { name, value };
}

/** @throws `AgentAuthError` `usage` for a value with which a header could have another one in it */
export function checkHeaderValue(value: string, shown: string): void {
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) return;
  throw usageError(
    `${shown} has a character that is not allowed in a header value`,
    "remove line breaks and control characters",
  );
}
