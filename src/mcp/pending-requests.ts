import { AsyncLocalStorage } from "node:async_hooks";
import { isJsonObject } from "../http/strict-json.js";
import { param, type RpcId, type RpcRequest } from "./rpc.js";

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
