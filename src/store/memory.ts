import { isAgentAuthError } from "../errors.js";
import { type BindingKey, type ClientBinding, isSameBinding } from "../oauth/client/client-binding.js";
import type { ClientRecord, Grant } from "../oauth/grant/grant.js";
import type { GrantKey, GrantStore } from "../oauth/grant/grant-store.js";
import type { Lease, PreviousAttempt } from "../oauth/grant/lease.js";
import { MemoryLeases } from "./memory-leases.js";

/** A store that lives as long as the program. */
export function memoryStore(): GrantStore {
  const grants = new Map<string, Grant>();
  const clients = new Map<string, ClientRecord>();
  const bindings = new Map<string, ClientBinding>();
  const bindingId = ({ profile, clientId }: BindingKey) => JSON.stringify([profile, clientId]);
  const leases = new MemoryLeases();
  const failed = new Map<string, PreviousAttempt>();
  const keyOf = ({ profile, server, account }: GrantKey) => JSON.stringify([profile, server, account]);
  const save = async (grant: Grant, expected: number | undefined) => {
    if (grants.get(keyOf(grant))?.generation !== expected) return false;
    grants.set(keyOf(grant), grant);
    return true;
  };
  return {
    location: "memory",
    read: async (key) => grants.get(keyOf(key)),
    save,
    reserve: async (key) => {
      const before = grants.get(keyOf(key));
      return {
        // The grant of another login may have the same generation.
        save: async (grant, expected) => grants.get(keyOf(key)) === before && save(grant, expected),
        release: async () => {},
      };
    },
    remove: async (key) => void grants.delete(keyOf(key)),
    list: async () => [...grants.values()],
    readClient: async (issuer, form) => clients.get(`${issuer} ${form}`),
    saveClient: async (client, form) => void clients.set(`${client.issuer} ${form}`, client),
    readBinding: async (key) => bindings.get(bindingId(key)),
    saveBinding: async (binding, expected) => {
      const id = bindingId(binding);
      const stored = bindings.get(id);
      if (stored !== undefined && !isSameBinding(stored, expected)) return stored;
      bindings.set(id, binding);
      return binding;
    },
    removeBinding: async (key) => bindings.delete(bindingId(key)),
    listBindings: async () => [...bindings.values()],
    lease: (name, work, { signal, duration }) => {
      const requestedAt = Date.now();
      return leases.run(
        name,
        async (queued) => {
          const at = Date.now();
          const before = failed.get(name);
          failed.delete(name);
          let committed = false;
          let isRolledBack = false;
          const lease: Lease = {
            // No other process can wait for it.
            left: () => duration,
            commit: async () => {
              committed = true;
            },
            rollback: () => {
              isRolledBack = true;
            },
            before,
            waited: queued && (before?.endedAt ?? requestedAt) >= requestedAt,
          };
          try {
            return await work(lease);
          } catch (error) {
            const failure = isAgentAuthError(error) ? error.toJSON() : undefined;
            const attempt = { at, endedAt: Date.now(), ended: "released", committed, failure } as const;
            const newest = isRolledBack ? before : attempt;
            if (newest) failed.set(name, newest);
            throw error;
          }
        },
        signal,
      );
    },
  };
}
