import type { IncomingMessage, ServerResponse } from "node:http";
import type { ServiceErrorCode } from "../../errors.js";
import type { Due, FaultTarget } from "../faults/controller.js";
import type { ErrorEnvelope } from "../wire-types.js";

/** One request on its way through the sandbox. */
export interface RoundTrip {
  method: string;
  /** The path as it was sent, without the query. */
  path: string;
  query: URLSearchParams;
  /** The faults that strike this request. */
  due: Due;
  /** The whole body, where the part reads it before faults are looked for. */
  body?: Buffer;
  /** What is asked for where the path does not say it: the grant type of a token request, the method of an MCP one. */
  operation?: string;
  request: IncomingMessage;
  response: ServerResponse;
}

/** What is to be sent back. */
export interface Answer {
  status: number;
  headers: Readonly<Record<string, string | readonly string[]>>;
  body: string | Buffer;
}

/** One of the things that the sandbox is: the management interface, the control endpoints. */
export interface Part {
  /** Whether a path belongs to it. */
  owns(path: string): boolean;
  /** Whether faults may strike it. */
  faulty: boolean;
  /** Whether its requests are kept out of the request log. */
  unlogged: boolean;
  /** Milliseconds to wait before each of its answers. */
  latency: number;
  /** What faults can select the request by, beside its path. It may read the body, and says what it found in it. */
  target?(exchange: RoundTrip): Omit<FaultTarget, "path"> | Promise<Omit<FaultTarget, "path">>;
  /** Answers, or returns `undefined` when it has answered on `exchange.response` itself. */
  handle(exchange: RoundTrip): Answer | undefined | Promise<Answer | undefined>;
}

const JSON_HEADERS = { "content-type": "application/json", "cache-control": "no-store" } as const;

/** An answer with a JSON body. */
export function json(body: unknown, status = 200): Answer {
  return { status, headers: JSON_HEADERS, body: JSON.stringify(body) };
}

/** The service's error answer. */
export function failure(
  status: number,
  code: ServiceErrorCode,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  const body: ErrorEnvelope = { status: "error", code, message };
  return { status, headers: { ...JSON_HEADERS, ...headers }, body: JSON.stringify(body) };
}

/** A request that cannot be done; whoever catches it sends its answer. */
export class Refusal extends Error {
  readonly answer: Answer;

  constructor(status: number, code: ServiceErrorCode, message: string, headers?: Readonly<Record<string, string>>) {
    super(message);
    this.answer = failure(status, code, message, headers);
  }
}
