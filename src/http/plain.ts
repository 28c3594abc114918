import type { AbortSource } from "./deadline.js";

/** A request in plain parts: it can be sent again as often as needed, unless its body is a stream. */
export interface PlainRequest {
  readonly method: string;
  readonly url: string;
  /** Names in small letters, each once. */
  readonly headers: Iterable<readonly [name: string, value: string]>;
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array> | undefined;
  readonly signal?: AbortSource | undefined;
}

/** The head of a response, and its body as it arrives. */
export interface PlainResponse {
  readonly status: number;
  readonly statusText: string;
  /** In the order and number in which they came. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Null where HTTP allows none. */
  readonly body: ArrivingBody | null;
}

/** The parts of a body as they arrive, decompressed; it ends the connection when it is not read to its end. */
export interface ArrivingBody extends AsyncIterable<Uint8Array> {
  destroy(): unknown;
  /**
   * Calls `take` with each part, for less than an iteration costs. It rejects with what `take` throws.
   *
   * @returns the error of a body that broke
   */
  readTo?(take: (part: Uint8Array) => void): Promise<Error | undefined>;
}

/**
 * Sends one request and returns the response, a redirect too.
 *
 * It throws the reason of the signal, an `AgentAuthError` of the address policy, or a `TypeError` with the system's error
 * as its cause, as `fetch` does.
 */
export type PlainSend = (request: PlainRequest) => Promise<PlainResponse>;
