import type { IncomingMessage, ServerResponse } from "node:http";
import type { SandboxResponse } from "../http/sandbox-response.js";
import type { FaultTarget } from "./controller.js";
import type { Fault } from "./faults.js";

/** One HTTP request and its response. */
export interface RoundTrip {
  method: string;
  /** The path as the client sent it, without the query. */
  path: string;
  query: URLSearchParams;
  /** The faults that strike this request. */
  faults: readonly Fault[];
  /** The whole body, where the part reads it before it selects faults. */
  body?: Buffer;
  /** The grant type of a token request, or the method of an MCP request. */
  operation?: string;
  request: IncomingMessage;
  response: ServerResponse;
}

/** One part of the sandbox, such as the management API or the admin API. */
export interface SandboxPart {
  owns(path: string): boolean;
  faulty: boolean;
  /** Whether pages of the option `allowOrigins` may use a path of it. Default: no path. */
  allowsPages?(path: string): boolean;
  /** The request log leaves its requests out. */
  unlogged?: true;
  /**
   * The properties beside the path by which faults select the request. It may read the body, and set `body` and
   * `operation`.
   */
  target?(roundTrip: RoundTrip): Omit<FaultTarget, "path"> | Promise<Omit<FaultTarget, "path">>;
  /** Returns the response, or `undefined` when it has sent one on `roundTrip.response` itself. */
  handle(roundTrip: RoundTrip): SandboxResponse | undefined | Promise<SandboxResponse | undefined>;
}
