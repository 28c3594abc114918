import { AsyncLocalStorage } from "node:async_hooks";
import { isJsonObject } from "../http/strict-json.js";
import { isRequest, isResponse, param, type RpcId, type RpcMessage, type RpcRequest } from "./json-rpc.js";

/** A request of the host that has no answer yet. */
export interface PendingRequest {
  readonly request: RpcRequest;
  /** Ends its exchange with the server. */
  readonly abort: AbortController;
  /** Since the revision 2026-07-28 there are no sessions, and each request says which revision it is of. */
  readonly isSessionless: boolean;
  /** Whether its answer comes by a stream of events. */
  isStreaming: boolean;
  /** What went wrong on the way most recently. */
  trouble: unknown;
}

/** The flight that a request over HTTP is made for; undefined for any other. */
export const currentRequest = new AsyncLocalStorage<PendingRequest | undefined>();

const REVISION = "io.modelcontextprotocol/protocolVersion";

/** The requests that are owed an answer. */
export class PendingRequests {
  readonly #open = new Map<RpcId, { flight: PendingRequest; onEnd: () => void }>();

  /**
   * Begins one.
   *
   * @param onEnd called when it ends, however that comes
   */
  begin(request: RpcRequest, onEnd: () => void): PendingRequest {
    const meta = param(request, "_meta");
    const flight: PendingRequest = {
      request,
      abort: new AbortController(),
      isSessionless: isJsonObject(meta) && typeof meta[REVISION] === "string",
      isStreaming: false,
      trouble: undefined,
    };
    // A host that names two requests alike gets one answer.
    this.end(request.id);
    this.#open.set(request.id, { flight, onEnd });
    return flight;
  }

  /** Ends one; undefined where its answer has been given, or is not wanted any more. */
  end(id: unknown): PendingRequest | undefined {
    const found = this.#open.get(id as RpcId);
    if (!found) return undefined;
    this.#open.delete(id as RpcId);
    found.onEnd();
    return found.flight;
  }

  /** The one with this id that is owed an answer. */
  get(id: unknown): PendingRequest | undefined {
    return this.#open.get(id as RpcId)?.flight;
  }

  /** Whether this very one is still owed an answer. */
  isOpen(flight: PendingRequest): boolean {
    return this.get(flight.request.id) === flight;
  }

  /** Every one that is owed an answer. */
  all(): PendingRequest[] {
    return [...this.#open.values()].map(({ flight }) => flight);
  }
}

/**
 * Keeps the order that a pipe has and separate HTTP requests have not, where it matters: what follows `initialize` and
 * `notifications/initialized` waits until the server has taken those. Answers pass, for the server may wait for them.
 */
export class Handshake {
  readonly #forward: (message: RpcMessage) => void;
  #steps = 0;
  #held: RpcMessage[] = [];

  constructor(forward: (message: RpcMessage) => void) {
    this.#forward = forward;
  }

  /** Forwards a message, at once or when its turn comes. */
  pass(message: RpcMessage): void {
    if (this.#steps > 0 && !isResponse(message)) this.#held.push(message);
    else this.#forward(message);
  }

  /** Begins a step that what follows waits for; what it gives ends the step. */
  begin(): () => void {
    this.#steps += 1;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#steps -= 1;
      this.#release();
    };
  }

  /** Forgets a request that waits; undefined where none does. */
  drop(id: unknown): RpcMessage | undefined {
    const found = this.#held.find((message) => isRequest(message) && message.id === (id as RpcId));
    if (found) this.#held = this.#held.filter((message) => message !== found);
    return found;
  }

  /** Whether nothing waits. */
  get isIdle(): boolean {
    return this.#held.length === 0;
  }

  /** Takes away everything that waits. */
  clear(): RpcMessage[] {
    return this.#held.splice(0);
  }

  #release(): void {
    while (this.#steps === 0) {
      const next = this.#held.shift();
      if (next === undefined) return;
      this.#forward(next);
    }
  }
}
