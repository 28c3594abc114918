import { AgentAuthError } from "../errors.js";

type Mask = (text: string) => string;

const MAX_DEPTH = 8;

/**
 * The error with the secrets masked that a `fetch` or a peer put into its words, also in what led to it; the same error
 * where there are none.
 */
export function maskError(error: AgentAuthError, mask: Mask): AgentAuthError {
  const cause = maskThrown(error.cause, mask, 0);
  const { code, message, hint, status, requestId, url, response, retryable, retryAfter } = error;
  const words = [code, message, hint ?? "", url ?? ""];
  if (cause === error.cause && words.every((text) => isClean(text, mask))) return error;
  const about = { class: error.class, status, requestId, response, retryable, retryAfter, cause };
  return new AgentAuthError(mask(code), mask(message), { ...about, hint: hint && mask(hint), url: url && mask(url) });
}

/** The very value where nothing in it is secret: a copy lacks what a debugger may want. */
function maskThrown(thrown: unknown, mask: Mask, depth: number): unknown {
  if (typeof thrown === "string") return mask(thrown);
  if (typeof thrown !== "object" || thrown === null || depth === MAX_DEPTH) return thrown;
  if (!(thrown instanceof Error)) return isClean(textOf(thrown), mask) ? thrown : undefined;
  const { message, stack = "" } = thrown;
  const cause = maskThrown(thrown.cause, mask, depth + 1);
  const { code, errors } = thrown as { code?: unknown; errors?: unknown };
  const several: readonly unknown[] = Array.isArray(errors) ? errors : [];
  const isWhole = cause === thrown.cause && several.every((one) => maskThrown(one, mask, depth + 1) === one);
  if (isWhole && isClean(`${stack}\n${message}\n${textOf(thrown)}`, mask)) return thrown;
  const copy = new Error(mask(message), cause === undefined ? undefined : { cause });
  copy.name = mask(thrown.name);
  copy.stack = mask(stack);
  return typeof code === "string" ? Object.assign(copy, { code: mask(code) }) : copy;
}

function isClean(text: string, mask: Mask): boolean {
  return mask(text) === text;
}

/** What its own members say. */
function textOf(value: object): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "";
  }
}
