import type { AgentAuthError } from "../errors.js";
import { isJsonObject } from "../http/strict-json.js";
import { isRpcRequest, isRpcResponse, type RpcId, type RpcMessage, type RpcRequest, readParam } from "./json-rpc.js";

/**
 * How far a request of the host is:
 *
 * | state | the server | loses its session | the host cancels it |
 * |---|---|---|---|
 * | `sent` | has the request | the request waits, if a new session is possible; else it fails | it gets a message |
 * | `waiting` | refused it unprocessed with a lost session | it fails, if the new session does | it is dropped |
 * | `resent` | has it in the new session | it fails: it is not sent a third time | it gets a message |
 *
 * A response or a failure ends it in any state.
 */
export type RequestState = "sent" | "waiting" | "resent";

/** A request of the host without a response. */
export interface PendingRequest {
  readonly request: RpcRequest;
  /** Cancels its HTTP request. */
  readonly abort: AbortController;
  /** The revision that the request names, as it must since 2026-07-28, when sessions were removed; undefined before. */
  readonly revision: string | undefined;
  state: RequestState;
}

const PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion";

/** The requests of the host that have no response yet, by id. */
export class PendingRequests {
  readonly #requests = new Map<RpcId, { pending: PendingRequest; onEnd: () => void }>();

  /**
   * Adds a request.
   *
   * @param onEnd called when the request is removed, for whatever reason
   */
  add(request: RpcRequest, onEnd: () => void): PendingRequest {
    const meta = readParam(request, "_meta");
    const revision = isJsonObject(meta) ? meta[PROTOCOL_VERSION] : undefined;
    const pending: PendingRequest = {
      request,
      abort: new AbortController(),
      revision: typeof revision === "string" ? revision : undefined,
      state: "sent",
    };
    // Two requests with the same id get one response.
    this.remove(request.id);
    this.#requests.set(request.id, { pending, onEnd });
    return pending;
  }

  /** Removes a request; undefined if it already has a response or was cancelled. */
  remove(id: unknown): PendingRequest | undefined {
    const found = this.#requests.get(id as RpcId);
    if (!found) return undefined;
    this.#requests.delete(id as RpcId);
    found.onEnd();
    return found.pending;
  }

  get(id: unknown): PendingRequest | undefined {
    return this.#requests.get(id as RpcId)?.pending;
  }

  /** Whether this request, and not another with its id, is still pending. */
  has(pending: PendingRequest): boolean {
    return this.get(pending.request.id) === pending;
  }

  all(): PendingRequest[] {
    return [...this.#requests.values()].map(({ pending }) => pending);
  }
}

/**
 * Delays what follows `initialize` and `notifications/initialized` until the server has accepted them. A pipe keeps the
 * order of messages, separate HTTP requests do not. Responses are not delayed, since the server may wait for them.
 */
export class Handshake {
  readonly #forward: (message: RpcMessage) => void;
  #openSteps = 0;
  #queue: RpcMessage[] = [];

  constructor(forward: (message: RpcMessage) => void) {
    this.#forward = forward;
  }

  /** Forwards a message, at once or after the open steps. */
  pass(message: RpcMessage): void {
    if (this.#openSteps > 0 && !isRpcResponse(message)) this.#queue.push(message);
    else this.#forward(message);
  }

  /** Begins a step that later messages wait for. The function that it returns ends the step. */
  begin(): () => void {
    this.#openSteps += 1;
    let hasEnded = false;
    return () => {
      if (hasEnded) return;
      hasEnded = true;
      this.#openSteps -= 1;
      this.#release();
    };
  }

  /** Removes a delayed request; undefined if there is none with this id. */
  drop(id: unknown): RpcMessage | undefined {
    const found = this.#queue.find((message) => isRpcRequest(message) && message.id === (id as RpcId));
    this.#queue = this.#queue.filter((message) => message !== found);
    return found;
  }

  /** Removes and returns all delayed messages. */
  clear(): RpcMessage[] {
    return this.#queue.splice(0);
  }

  #release(): void {
    while (this.#openSteps === 0) {
      const next = this.#queue.shift();
      if (next === undefined) return;
      this.#forward(next);
    }
  }
}

/** The messages of the host that are not sent yet, with their sizes. */
export class UnsentMessages {
  readonly #sizes = new Map<RpcMessage, number>();
  #bytes = 0;

  /** The size of all of them. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether there is none. */
  get isEmpty(): boolean {
    return this.#sizes.size === 0;
  }

  add(message: RpcMessage, bytes: number): void {
    this.#sizes.set(message, bytes);
    this.#bytes += bytes;
  }

  remove(message: RpcMessage): void {
    this.#bytes -= this.#sizes.get(message) ?? 0;
    this.#sizes.delete(message);
  }
}

/**
 * What the proxy has to report at its end:
 *
 * | state | after a response | after a failed request | after an `initialize` that failed for good |
 * |---|---|---|---|
 * | `starting` | `working` | `failing` | `failed` |
 * | `failing`: no request had a response, and this is the first error | `working` | `failing` | `failed` |
 * | `working` | `working` | `working` | `failed` |
 * | `failed` | `failed` | `failed` | `failed` |
 */
export class ProxyOutcome {
  #state: "starting" | "failing" | "working" | "failed" = "starting";
  #error: AgentAuthError | undefined;

  /** Why the proxy failed; undefined unless it is `failing` or `failed`. */
  get error(): AgentAuthError | undefined {
    return this.#error;
  }

  onResponse(): void {
    if (this.#state !== "failed") this.#become("working", undefined);
  }

  onFailure(error: AgentAuthError): void {
    if (this.#state === "starting") this.#become("failing", error);
  }

  /** `initialize` failed in a way that a retry does not fix. */
  onFatalFailure(error: AgentAuthError): void {
    this.#become("failed", error);
  }

  #become(state: "failing" | "working" | "failed", error: AgentAuthError | undefined): void {
    this.#state = state;
    this.#error = error;
  }
}
