import { type Lease, leaseLost, maySend } from "../model/lease.js";

type Timed = Pick<Lease, "left" | "maySend" | "lost">;

/** Work under a lease, and whether one of its requests was held back. */
interface Guarded {
  readonly lease: Timed;
  isHeldBack: boolean;
}

type Run = <T>(lease: Timed, work: () => Promise<T>) => Promise<T>;

let run: Run | undefined;

/**
 * Runs work whose requests must not be sent after its lease has expired. Between the last check of the clock and the first
 * byte, a name is resolved, a connection opened and a handshake made, and the process can be stopped in any of them.
 * Node's fetch and our transport over `node:http` publish an event right before they write; a connection that is closed
 * then has sent nothing. Other runtimes have no such event, and there the last check of the clock decides.
 *
 * @throws `AgentAuthError` `lease_lost` for a request that was not sent
 */
export function withSendDeadline<T>(lease: Timed, work: () => Promise<T>): Promise<T> {
  run ??= installHooks() ?? ((_lease, pending) => pending());
  return run(lease, work);
}

/** Published when a request is made, and right before its first byte is written. */
const CHANNELS = [
  ["undici:request:create", "undici:client:sendHeaders"],
  ["agentauth:request:create", "agentauth:request:write"],
] as const;

/** Undefined where the runtime is not Node: the library imports no module of it. */
function installHooks(): Run | undefined {
  const { process } = globalThis as { process?: Partial<NodeJS.Process> };
  const hooks = process?.getBuiltinModule?.("node:async_hooks");
  const channels = process?.getBuiltinModule?.("node:diagnostics_channel");
  if (!hooks || !channels) return undefined;
  const current = new hooks.AsyncLocalStorage<Guarded>();
  const guardOf = new WeakMap<object, Guarded>();
  for (const [created, written] of CHANNELS) {
    channels.subscribe(created, (message) => {
      const guard = current.getStore();
      if (guard) guardOf.set((message as { request: object }).request, guard);
    });
    channels.subscribe(written, (message) => {
      const { request, socket } = message as { request: object; socket: { destroy(): void } };
      const guard = guardOf.get(request);
      if (guard === undefined || maySend(guard.lease)) return;
      guard.isHeldBack = true;
      socket.destroy();
    });
  }
  return async (lease, work) => {
    const guard = { lease, isHeldBack: false };
    try {
      return await current.run(guard, work);
    } catch (error) {
      throw guard.isHeldBack ? (lease.lost?.() ?? leaseLost()) : error;
    }
  };
}
