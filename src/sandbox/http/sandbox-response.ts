import type { ServiceErrorCode } from "../../error-codes.js";

export interface SandboxResponse {
  status: number;
  headers: Readonly<Record<string, string | readonly string[]>>;
  body: string | Buffer;
}

/** An error answer of the service. */
export interface ErrorEnvelope {
  status: "error";
  code: string;
  message: string;
}

const JSON_HEADERS = { "content-type": "application/json", "cache-control": "no-store" } as const;

export function jsonResponse(body: unknown, status = 200): SandboxResponse {
  return { status, headers: JSON_HEADERS, body: JSON.stringify(body) };
}

export function errorResponse(
  status: number,
  code: ServiceErrorCode,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): SandboxResponse {
  const body: ErrorEnvelope = { status: "error", code, message };
  return { ...jsonResponse(body, status), headers: { ...JSON_HEADERS, ...headers } };
}

/** Rejects a request: the router sends its `answer`. */
export class Refusal extends Error {
  readonly response: SandboxResponse;

  constructor(status: number, code: ServiceErrorCode, message: string, headers?: Readonly<Record<string, string>>) {
    super(message);
    this.response = errorResponse(status, code, message, headers);
  }
}

/** The methods of a path that can only be read. */
export const READ_METHODS: readonly string[] = ["GET", "HEAD"];

/** Checks the method of a request. @throws Refusal 405 that names the methods of the path */
export function requireMethod(method: string, allowed: readonly string[]): void {
  if (allowed.includes(method)) return;
  const allow = allowed.join(", ");
  throw new Refusal(405, "invalid_action", `this path takes ${allow}`, { allow });
}
