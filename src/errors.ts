import type { ErrorCode, KnownErrorCode } from "./error-codes.js";
import type { Remedy } from "./remedy.js";

/**
 * What kind of failure it is, which also decides the CLI's exit code: `internal` 1, `usage` 2, `refused` 3, `auth` 4,
 * `unavailable` 5, `remote` 6, `partial` 7, `store` 8, `aborted` 130.
 */
export type ErrorClass =
  | "internal"
  | "usage"
  | "refused"
  | "auth"
  | "unavailable"
  | "remote"
  | "partial"
  | "store"
  | "aborted";

/** What an {@link AgentAuthError} can carry beside its code and message. */
export interface AgentAuthErrorOptions {
  /** The kind of failure. */
  class: ErrorClass;
  /** The HTTP status, where there was an answer. */
  status?: number | undefined;
  /** The request id that the service sent, if any. */
  requestId?: string | undefined;
  /** Whether the same call may succeed later. Default: only for `unavailable`. */
  retryable?: boolean | undefined;
  /** The offset of the first item that a listing did not yield. */
  resume?: number | undefined;
  /** The items that a listing left out because they have no id. */
  unusable?: UnusableItems | undefined;
  /** Seconds that the server asked to wait before it is asked again. */
  retryAfter?: number | undefined;
  /** The address asked, without credentials. */
  url?: string | undefined;
  /** What to do about it, in words; an option has the name that it has in the SDK. */
  hint?: string | undefined;
  /** What to do about it, as data. */
  remedy?: Remedy | undefined;
  /** The answer as it came; its body has been read. */
  response?: Response | undefined;
  /** What led to it. */
  cause?: unknown;
}

/** Items of a list that have no id. */
export interface UnusableItems {
  /** Their number. */
  readonly count: number;
  /** The offsets of the first 100 of them. */
  readonly positions: readonly number[];
}

export type Advice = Pick<AgentAuthErrorOptions, "hint" | "remedy">;

/** The JSON form of an error: absent fields are left out, and nothing in it is secret. */
export interface AgentAuthErrorJson {
  /** The exact failure. */
  code: ErrorCode;
  /** What kind of failure it is; the CLI's exit code follows from it. */
  class: ErrorClass;
  /** What happened. */
  message: string;
  /** What helps, where something is known to. */
  hint?: string;
  /** What helps, as data. */
  remedy?: Remedy;
  /** Whether the same call can succeed later. */
  retryable: boolean;
  /** The HTTP status, where there was an answer. */
  status?: number;
  /** The request id that the service sent. */
  request_id?: string;
  /** The address asked, without credentials. */
  url?: string;
  /** The offset of the first item that a listing did not yield. */
  resume?: number;
  /** The items that a listing left out because they have no id. */
  unusable?: UnusableItems;
  /** Seconds that the server asked to wait before it is asked again. */
  retry_after?: number;
}

const DATA = ["hint", "remedy", "status", "requestId", "url", "resume", "unusable", "retryAfter"] as const;
const BRAND = Symbol.for("agentauth.error");

/**
 * The only error that this package throws, apart from `TypeError` for an argument that a program got wrong.
 *
 * Switch on {@link AgentAuthError.code} for the exact failure or on {@link AgentAuthError.class} for its kind. Use
 * {@link isAgentAuthError} rather than `instanceof`, which fails between two copies of the package.
 */
export class AgentAuthError extends Error {
  /** Tells it from other errors in traces; to tell it in code use {@link isAgentAuthError}. */
  override readonly name = "AgentAuthError";
  /** The exact failure. */
  readonly code: ErrorCode;
  /** The kind of failure. */
  readonly class: ErrorClass;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** What to do about it, in words. */
  declare readonly hint?: string;
  /** What to do about it, as data. */
  declare readonly remedy?: Remedy;
  /** The HTTP status, where there was an answer. */
  declare readonly status?: number;
  /** The request id that the service sent. */
  declare readonly requestId?: string;
  /** The address asked, without credentials. */
  declare readonly url?: string;
  /** The offset of the first item that a listing did not yield. */
  declare readonly resume?: number;
  /** The items that a listing left out because they have no id. */
  declare readonly unusable?: UnusableItems;
  /** Seconds that the server asked to wait before it is asked again. */
  declare readonly retryAfter?: number;
  /** The answer as it came, not enumerable. */
  declare readonly response?: Response;

  /** @param code a known code, or one that a peer sent */
  constructor(code: KnownErrorCode | (string & {}), message: string, options: AgentAuthErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code as ErrorCode;
    this.class = options.class;
    this.retryable = options.retryable ?? options.class === "unavailable";
    for (const key of DATA) {
      const value = options[key];
      if (value !== undefined) Object.defineProperty(this, key, { value, enumerable: true });
    }
    if (options.response !== undefined) Object.defineProperty(this, "response", { value: options.response });
    Object.defineProperty(this, BRAND, { value: true });
  }

  /** The error as plain data, for logs and for programs. */
  toJSON(): AgentAuthErrorJson {
    const { code, message, hint, remedy, retryable, status, requestId, url, resume, unusable, retryAfter } = this;
    const head = { code, class: this.class, message, hint, remedy, retryable };
    const all = { ...head, status, request_id: requestId, url, resume, unusable, retry_after: retryAfter };
    const known = Object.entries(all).filter(([, value]) => value !== undefined);
    return Object.fromEntries(known) as unknown as AgentAuthErrorJson;
  }
}

/**
 * Whether a value is an {@link AgentAuthError}, also one of another copy of this package.
 *
 * @param code the code that it must have; without it, any
 */
export function isAgentAuthError<Code extends ErrorCode>(
  value: unknown,
  code: Code,
): value is AgentAuthError & { readonly code: Code };
export function isAgentAuthError(value: unknown): value is AgentAuthError;
export function isAgentAuthError(value: unknown, code?: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { [BRAND]: isOurs, code: found } = value as { [BRAND]?: unknown; code?: unknown };
  // `errors.filter(isAgentAuthError)` passes an index.
  return isOurs === true && (typeof code !== "string" || found === code);
}

/** The message of what was thrown, which can be anything. */
export function errorMessage(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** The result of `read`; undefined where it throws. */
export function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** The error for something that the user gave wrongly, with what to give instead. */
export function usageError(message: string, hint?: string, cause?: unknown): AgentAuthError {
  return new AgentAuthError("usage", message, { class: "usage", hint, cause });
}

/** The error for a signal that fired; a signal whose reason is one of our errors gives that error. */
export function abortedError(signal: Pick<AbortSignal, "reason">): AgentAuthError {
  if (isAgentAuthError(signal.reason)) return signal.reason;
  return new AgentAuthError("aborted", "the operation was aborted", { class: "aborted", cause: signal.reason });
}

/** The same error with another hint, and with this remedy or none. */
export function withHint(error: AgentAuthError, hint: string | undefined, remedy?: Remedy): AgentAuthError {
  const { code, message, response, cause, stack } = error;
  const copy = new AgentAuthError(code, message, { ...error, response, cause, hint, remedy });
  // What is to be found is where the error came from, not where its hint was put on.
  if (stack !== undefined) copy.stack = stack;
  return copy;
}
