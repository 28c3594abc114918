import { MASK, Redactor } from "../../redact.js";

/** A request that the sandbox received. The log stores no headers and bodies, and so no credentials. */
export interface LoggedRequest {
  /** The HTTP method. */
  method: string;
  /** The path, without the query. */
  path: string;
  /** The query, decoded; values of parameters that are secret are masked. */
  query: Record<string, string>;
  /** Milliseconds by the sandbox's clock. */
  at: number;
  /** The HTTP status of the response; 0 before it is sent, and where the connection was reset instead. */
  status: number;
  /** The grant type of a token request, or the method of an MCP request. */
  operation?: string;
  /** The kinds of the faults that struck it, joined by commas. */
  fault?: string;
}

/** The last {@link MAX_LOGGED} requests, oldest first. */
export interface RequestLog extends ReadonlyArray<LoggedRequest> {
  /** How many requests there were, including those that the log has dropped. */
  readonly total: number;
}

/** How many requests the log holds. */
export const MAX_LOGGED = 10_000;

export function createRequestLog(): { log: RequestLog; add: (entry: LoggedRequest) => void } {
  const entries: LoggedRequest[] = [];
  let total = 0;
  const log = Object.defineProperty(entries, "total", { get: () => total }) as LoggedRequest[] & { total: number };
  const add = (entry: LoggedRequest) => {
    total += 1;
    entries.push(entry);
    if (entries.length > MAX_LOGGED) entries.shift();
  };
  return { log, add };
}

const redactor = new Redactor();

export function loggedQuery(query: URLSearchParams): Record<string, string> {
  // The redactor recognises secret parameters by their encoded form, name=value.
  const masked = redactor.redact(query.toString()).replace(/(^|&)(user_code=)[^&]+/g, `$1$2${MASK}`);
  return Object.fromEntries(new URLSearchParams(masked));
}
