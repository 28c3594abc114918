import type { ServiceErrorCode } from "../../error-codes.js";

/** A response to send. */
export interface Answer {
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

/** A response with a JSON body. */
export function jsonAnswer(body: unknown, status = 200): Answer {
  return { status, headers: JSON_HEADERS, body: JSON.stringify(body) };
}

/** An error response of the service. */
export function errorAnswer(
  status: number,
  code: ServiceErrorCode,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  const body: ErrorEnvelope = { status: "error", code, message };
  return { ...jsonAnswer(body, status), headers: { ...JSON_HEADERS, ...headers } };
}

/** Rejects a request: the router sends its `answer`. */
export class Refusal extends Error {
  readonly answer: Answer;

  constructor(status: number, code: ServiceErrorCode, message: string, headers?: Readonly<Record<string, string>>) {
    super(message);
    this.answer = errorAnswer(status, code, message, headers);
  }
}
