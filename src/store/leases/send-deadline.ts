import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";

interface Timed {
  left(): number;
}

const current = new AsyncLocalStorage<Timed>();
const leaseOf = new WeakMap<object, Timed>();
let listening = false;

/**
 * Runs work whose requests must not be sent after its lease has expired. Between the last check of the clock and the first
 * byte, a name is resolved, a connection opened and a handshake made, and the process can be stopped in any of them.
 * Node's fetch publishes an event right before it writes; a connection that is closed then has sent nothing.
 */
export function withSendDeadline<T>(lease: Timed, work: () => Promise<T>): Promise<T> {
  listen();
  return current.run(lease, work);
}

function listen(): void {
  if (listening) return;
  listening = true;
  subscribe("undici:request:create", (message) => {
    const lease = current.getStore();
    if (lease) leaseOf.set((message as { request: object }).request, lease);
  });
  subscribe("undici:client:sendHeaders", (message) => {
    const { request, socket } = message as { request: object; socket: { destroy(): void } };
    if (leaseOf.get(request)?.left() === 0) socket.destroy();
  });
}
