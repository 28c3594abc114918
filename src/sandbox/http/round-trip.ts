import type { IncomingMessage, ServerResponse } from "node:http";
import type { ServiceErrorCode } from "../../error-codes.js";
import type { ErrorEnvelope } from "../data/wire-types.js";
import type { Due, FaultTarget } from "../faults/controller.js";

/** One HTTP request and its response. */
export interface RoundTrip {
  method: string;
  /** The path as the client sent it, without the query. */
  path: string;
  query: URLSearchParams;
  /** The faults that strike this request. */
  due: Due;
  /** The whole body, where the part reads it before it selects faults. */
  body?: Buffer;
  /** The grant type of a token request, or the method of an MCP request. */
  operation?: string;
  request: IncomingMessage;
  response: ServerResponse;
}

/** A response to send. */
export interface Answer {
  status: number;
  headers: Readonly<Record<string, string | readonly string[]>>;
  body: string | Buffer;
}

/** One part of the sandbox, such as the management API or the admin API. */
export interface Part {
  /** Whether a path belongs to it. */
  owns(path: string): boolean;
  /** Whether faults may strike it. */
  faulty: boolean;
  /** Whether pages of the option `allowOrigins` may use a path of it. Default: no path. */
  allowsPages?(path: string): boolean;
  /** The request log leaves its requests out. */
  unlogged?: true;
  /** Milliseconds to wait before each of its responses. */
  latency?: number;
  /** The properties beside the path by which faults select the request. It may read the body and set `body` and `operation`. */
  target?(roundTrip: RoundTrip): Omit<FaultTarget, "path"> | Promise<Omit<FaultTarget, "path">>;
  /** Returns the response, or `undefined` when it has sent one on `roundTrip.response` itself. */
  handle(roundTrip: RoundTrip): Answer | undefined | Promise<Answer | undefined>;
}

const JSON_HEADERS = { "content-type": "application/json", "cache-control": "no-store" } as const;

/** A response with a JSON body. */
export function json(body: unknown, status = 200): Answer {
  return { status, headers: JSON_HEADERS, body: JSON.stringify(body) };
}

/** An error response of the service. */
export function failure(
  status: number,
  code: ServiceErrorCode,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  const body: ErrorEnvelope = { status: "error", code, message };
  return { ...json(body, status), headers: { ...JSON_HEADERS, ...headers } };
}

/** Rejects a request: the router sends its `answer`. */
export class Refusal extends Error {
  readonly answer: Answer;

  constructor(status: number, code: ServiceErrorCode, message: string, headers?: Readonly<Record<string, string>>) {
    super(message);
    this.answer = failure(status, code, message, headers);
  }
}
