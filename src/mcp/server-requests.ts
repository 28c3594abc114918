import { CANCELLED, isRpcRequest, type RpcId, type RpcMessage, type RpcResponse, readParam } from "./json-rpc.js";

/**
 * The requests of the server that the host has not answered. A new session may repeat the ids of a lost one: its request
 * gets another id at the host where a late response to the old one could still come.
 */
export class ServerRequests {
  /** The ids at the server, by those at the host. */
  readonly #open = new Map<RpcId, RpcId>();
  /** Ids at the host of requests of lost sessions. */
  readonly #lost = new Set<RpcId>();
  #renamed = 0;

  /** A message of the server as the host gets it. */
  toHost(message: RpcMessage): RpcMessage {
    if (isRpcRequest(message)) {
      const id = this.#lost.has(message.id) ? `agentauth-${++this.#renamed}` : message.id;
      this.#open.set(id, message.id);
      return { ...message, id };
    }
    if (message.method !== CANCELLED) return message;
    const requestId = readParam(message, "requestId");
    const [renamed] = [...this.#open].find(([id, serverId]) => id !== serverId && serverId === requestId) ?? [];
    if (renamed === undefined) return message;
    return { ...message, params: { ...(message.params as object), requestId: renamed } };
  }

  /** A response of the host as the server gets it; undefined if it belongs to a lost session. */
  toServer(response: RpcResponse): RpcResponse | undefined {
    const id = response.id as RpcId;
    const serverId = this.#open.get(id);
    if (serverId === undefined) return this.#lost.delete(id) ? undefined : response;
    this.#open.delete(id);
    return { ...response, id: serverId };
  }

  /** Called when the session is lost. @returns the ids at the host of the requests that it leaves open */
  lose(): RpcId[] {
    const ids = [...this.#open.keys()];
    this.#open.clear();
    for (const id of ids) this.#lost.add(id);
    return ids;
  }
}
