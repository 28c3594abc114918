/** The report of a failure: lines of text, or one line of JSON for programs. */

import type { ErrorCode } from "../../error-codes.js";
import { AgentAuthError, type AgentAuthErrorJson, isAgentAuthError, usageError } from "../../errors.js";
import { escapeText, quote, type Redactor } from "../../redact.js";
import type { Io } from "../io/io.js";
import type { Colors } from "../io/stream.js";
import { exitCodeFor } from "../runtime/exit-codes.js";
import { escapeJson } from "./value.js";

/** The JSON that a failed command prints on stderr; absent fields are omitted. */
export interface ErrorReport {
  /** The failure. */
  error: Omit<AgentAuthErrorJson, "remedy"> & {
    /** The exit code of the command. */
    exit_code: number;
  };
}

export interface ErrorStyle {
  /** One line of JSON instead of text. */
  json: boolean;
  /** The formatting functions of the stream. */
  colors: Colors;
  /** The exit code, if a signal decides it instead of the error. */
  exitCode?: number | undefined;
  /** Masks the secrets of this run. */
  redactor: Pick<Redactor, "redact" | "redactKnown">;
  /** Adds the stack and the causes of the error, in text only. */
  debug?: boolean;
}

/** Prints a failure on stderr, and returns the error that decides the exit code. */
export function reportError(
  thrown: unknown,
  { io, ...style }: Omit<ErrorStyle, "colors"> & { io: Io },
): AgentAuthError {
  // If stderr is closed, the exit code alone reports the failure.
  io.stderr.write(formatError(thrown, { ...style, colors: io.stderr.colors })).catch(() => {});
  return toAgentAuthError(thrown);
}

/** The text for stderr, ending in a line break. */
export function formatError(thrown: unknown, style: ErrorStyle): string {
  const { json, colors, redactor } = style;
  if (json) return `${escapeJson(JSON.stringify(errorReport(thrown, style)))}\n`;
  const { code, message, hint, url, request_id: requestId } = errorReport(thrown, style).error;
  const lines = [`${colors.red("error:")} ${message}${requestId === undefined ? "" : ` (request ${requestId})`}`];
  if (code === "user_action_required") lines.push("", `  ${url}`, "");
  if (hint !== undefined) lines.push(`${colors.cyan("hint:")} ${hintParts(hint).join("\n      ")}`);
  if (style.debug) lines.push(...stackLines(thrown, redactor).map((line) => colors.dim(line)));
  return `${lines.join("\n")}\n`;
}

/** Three lines of a terminal. */
const LONG_HINT = 240;
// Not inside of what is quoted for a shell.
const PART = /(?:(?<![^\s=])'[^']*'|"[^"]*"|(?!; ).)+/gs;

/** What a long hint or one of several steps says, one thing a line. */
function hintParts(hint: string): string[] {
  if (hint.length <= LONG_HINT && !hint.startsWith("1. ")) return [hint];
  return hint.match(PART)?.map((part) => part.replace(/^ /, "")) ?? [hint];
}

/** The error as data, every text of it redacted and escaped. */
function errorReport(thrown: unknown, { redactor, exitCode }: ErrorStyle): ErrorReport {
  const error = toAgentAuthError(thrown);
  const shown = (value: unknown) => escapeText(redactor.redact(String(value)));
  const { remedy, url } = error;
  // In the address that the user has to open, the shape of a secret is no reason to mask a part.
  const target = remedy?.action === "open" ? escapeText(redactor.redactKnown(remedy.url)) : url && shown(url);
  return {
    error: {
      code: shown(error.code) as ErrorCode,
      class: error.class,
      message: shown(error.message),
      ...(error.hint !== undefined && { hint: shown(error.hint) }),
      retryable: error.retryable,
      exit_code: exitCode ?? exitCodeFor(error.class),
      ...(error.status !== undefined && { status: error.status }),
      ...(error.requestId !== undefined && { request_id: shown(error.requestId) }),
      ...(target !== undefined && { url: target }),
      ...(error.resume !== undefined && { resume: error.resume }),
      ...(error.unusable !== undefined && { unusable: error.unusable }),
    },
  };
}

/** The thrown value as an {@link AgentAuthError}; any other value but a missing working folder is a bug in this program. */
function toAgentAuthError(thrown: unknown): AgentAuthError {
  if (isAgentAuthError(thrown)) return thrown;
  if ((thrown as NodeJS.ErrnoException | undefined)?.syscall === "uv_cwd")
    return usageError("the working folder does not exist any more", "change to another folder", thrown);
  return new AgentAuthError("internal_error", `a bug in agentauth: ${describe(thrown)}`, {
    class: "internal",
    hint: "run the command again with --debug to see where it happened",
    cause: thrown,
  });
}

function describe(thrown: unknown): string {
  if (thrown instanceof Error) return `${thrown.name}: ${thrown.message}`;
  return typeof thrown === "string" ? thrown : quote(thrown);
}

/** The depth of the cause chain, which may be circular. */
const DEEPEST = 10;

function stackLines(thrown: unknown, redactor: Pick<Redactor, "redact">): string[] {
  const lines: string[] = [];
  let error = thrown;
  for (let depth = 0; error instanceof Error && depth < DEEPEST; depth += 1) {
    lines.push(...`${depth === 0 ? "" : "caused by "}${error.stack ?? describe(error)}`.split("\n"));
    error = error.cause;
  }
  return redactor.redact(lines.join("\n")).split("\n").map(escapeText);
}
