/** The endpoints of the authorization servers and MCP servers that a fault can select by name. */
export const FAULT_ENDPOINTS = [
  "metadata",
  "authorize",
  "token",
  "register",
  "introspect",
  "jwks",
  "end_session",
  "device_authorization",
  "prm",
  "mcp",
] as const;

/** An endpoint of an authorization server or of an MCP server; `prm` is the metadata of the protected resource. */
export type FaultEndpoint = (typeof FAULT_ENDPOINTS)[number];

/** Which requests a fault strikes: those that match all given fields. */
export interface FaultSelector {
  /**
   * A resource (`pool`, `domain`, `device`), an endpoint ({@link FaultEndpoint}) or the beginning of a path
   * (`/api/v1/`). Default: every path that the fault applies to.
   */
  path?: string;
  /** Skips the first n requests that match. Default 0. */
  after?: number;
  /** Strikes at most n times; 0 is without limit. Default 1, with `every` or `probability` and for `step-up` 0. */
  times?: number;
  /** Strikes every n-th request that matches. */
  every?: number;
  /** Strikes with this probability, 0 to 1, drawn from the sandbox's seed. */
  probability?: number;
  /**
   * Strikes only requests with this `pagination[offset]`, or with the one before it, from which a reader sees that the list did
   * not move; for `empty-page` the offset of the empty page.
   */
  offset?: number;
}

/** What goes wrong. Times are in milliseconds. */
export type FaultEffect =
  | { kind: "status"; status: number; retryAfter?: string; body?: "service" | "html" | "empty" }
  | { kind: "reset-before" }
  | { kind: "reset-mid-body" }
  | { kind: "reset-after" }
  | { kind: "truncated-json" }
  | { kind: "html" }
  | { kind: "slow-headers"; ms: number }
  | { kind: "slow-body"; bytes?: number; ms?: number }
  | { kind: "stuck-offset" }
  | { kind: "cycling-offset" }
  | { kind: "bad-offset"; value: unknown }
  | { kind: "omit-pagination" }
  | { kind: "insert"; count?: number; position?: number }
  | { kind: "delete"; count?: number; position?: number }
  | { kind: "page-size"; size: number }
  | { kind: "unknown-enum" }
  | { kind: "extra-fields" }
  | { kind: "missing-fields"; fields?: string[] }
  | { kind: "wrong-envelope"; body: unknown }
  | { kind: "redirect"; location: string; status?: number }
  | { kind: "empty-page"; pages?: number }
  | { kind: "hostile-text"; text?: string }
  | { kind: "refuse-refresh" }
  | { kind: "step-up"; scope: string };

/** A fault that the sandbox injects: plain data that survives JSON. */
export type Fault = FaultSelector & FaultEffect;

/** The name of a fault. */
export type FaultKind = FaultEffect["kind"];

export type FaultOf<K extends FaultKind> = FaultSelector & Extract<FaultEffect, { kind: K }>;

/** Every kind of fault with a description of one line. */
export const FAULT_KINDS: Readonly<Record<FaultKind, string>> = {
  status: "answer with an HTTP status (status=503), Retry-After (retry-after=2) and body (body=service|html|empty)",
  "reset-before": "reset the connection before any byte of the answer",
  "reset-mid-body": "reset the connection in the middle of the body",
  "reset-after": "handle the request, then reset the connection before any byte of the answer",
  "truncated-json": "end the answer properly, with its JSON cut in half",
  html: "answer 200 with an HTML login page",
  "slow-headers": "wait before the answer begins (ms=2000)",
  "slow-body": "drip the body (bytes=16, every ms=100)",
  "stuck-offset": "name the page's own offset as the next one",
  "cycling-offset": "send the reader back to the page before, once it has left the first",
  "bad-offset": 'put any JSON into next_page_offset (value="10")',
  "omit-pagination": "answer a list without its pagination object",
  insert: "insert devices while a list is read (count=1, position=0 of the requested order)",
  delete: "delete devices while a list is read (count=1, position=0 of the requested order)",
  "page-size": "use another page size than requested (size=7)",
  "unknown-enum": "send values that are not documented: session_type quantum, status paused",
  "extra-fields": "add fields that are not documented, everywhere",
  "missing-fields": "leave fields out of the summaries (fields=title+last_seen)",
  "wrong-envelope": "answer 200 with any other JSON (body=[])",
  redirect: "redirect (location=https://…, status=302)",
  "empty-page":
    "put empty pages into the middle of a list (pages=1, offset= where; times=0 never ends); no item is lost",
  "hostile-text": "put control characters, escape sequences and bidi controls into titles (text= your own)",
  "refuse-refresh": "refuse a refresh as invalid_grant; the refresh token stays good",
  "step-up": "refuse MCP tool calls whose token lacks a scope (scope=reports:read)",
};
