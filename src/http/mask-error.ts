import { AgentAuthError } from "../errors.js";
import type { Remedy } from "../remedy.js";

type Mask = (text: string) => string;

const MAX_DEPTH = 8;

/**
 * The error with every secret masked that a `fetch` or a peer put into its message, its causes included; the same error
 * where there is none.
 */
export function maskError(error: AgentAuthError, mask: Mask): AgentAuthError {
  const cause = maskThrown(error.cause, mask, 0);
  const { code, message, hint, remedy, status, requestId, url, response, retryable, retryAfter } = error;
  const texts = [code, message, hint ?? "", url ?? "", requestId ?? "", ...Object.values(remedy ?? {}).map(String)];
  if (cause === error.cause && texts.every((text) => isClean(text, mask))) return error;
  const about = { class: error.class, status, response, retryable, retryAfter, cause };
  return new AgentAuthError(mask(code), mask(message), {
    ...about,
    hint: hint && mask(hint),
    remedy: remedy && maskRemedy(remedy, mask),
    url: url && mask(url),
    requestId: requestId && mask(requestId),
  });
}

function maskRemedy(remedy: Remedy, mask: Mask): Remedy {
  const masked = Object.entries(remedy).map(([name, value]) => [name, typeof value === "string" ? mask(value) : value]);
  return Object.fromEntries(masked) as Remedy;
}

/** The same value where it holds no secret: a copy lacks properties that a debugger may need. */
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

/** Its own properties as text. */
function textOf(value: object): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "";
  }
}
