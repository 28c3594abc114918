import { isAgentAuthError } from "../errors.js";
import { systemClock } from "../http/deadline.js";
import { OneAtATime } from "../http/single-flight.js";
import { type BindingStore, type ClientBinding, isSameBinding } from "../oauth/model/client-binding.js";
import type { ClientRecord, Grant, GrantKey } from "../oauth/model/grant.js";
import { type GrantStore, matchesFilter } from "../oauth/model/grant-store.js";
import { leaseLost, type PreviousAttempt } from "../oauth/model/lease.js";
import { memoryRecords } from "../oauth/model/short-lived.js";
import { Lru } from "./lru.js";

/** The failures that are remembered for the next holder of a lease. */
const MAX_FAILURES = 1000;

/** A store that lives as long as the program. */
export function memoryStore(): GrantStore {
  return {
    location: "memory",
    ...memoryGrants(),
    ...memoryClients(),
    ...memoryBindings(),
    shortLived: memoryRecords(),
    lease: memoryLease(),
  };
}

function memoryGrants(): Pick<GrantStore, "read" | "save" | "reserve" | "remove" | "list"> {
  /** The grants of each server of a profile, by account: finding one takes as long whatever else is stored. */
  const servers = new Map<string, Map<string | undefined, Grant>>();
  const serverOf = ({ profile, server }: Omit<GrantKey, "account">) => JSON.stringify([profile, server]);
  const find = (key: GrantKey) => servers.get(serverOf(key))?.get(key.account);

  const saveOver = (before: Grant | undefined, grant: Grant, expected: number | undefined): boolean => {
    // The grant of another login may have the same generation.
    if (find(grant) !== before || before?.generation !== expected) return false;
    if (grant.generation <= (expected ?? -1))
      throw new RangeError("a generation must be higher than the one it replaces");
    const accounts = servers.get(serverOf(grant)) ?? new Map();
    servers.set(serverOf(grant), accounts.set(grant.account, grant));
    return true;
  };

  return {
    read: async (key) => find(key),
    save: async (grant, expected) => saveOver(find(grant), grant, expected),
    reserve: async (key) => {
      const before = find(key);
      return { save: async (grant, expected) => saveOver(before, grant, expected), release: async () => {} };
    },
    remove: async (key) => {
      const accounts = servers.get(serverOf(key));
      accounts?.delete(key.account);
      if (accounts?.size === 0) servers.delete(serverOf(key));
    },
    list: async (filter = {}) => {
      const { profile, server } = filter;
      const isOfOne = profile !== undefined && server !== undefined;
      const found = isOfOne ? [servers.get(serverOf({ profile, server })) ?? new Map()] : [...servers.values()];
      return found.flatMap((accounts) => [...accounts.values()]).filter((grant) => matchesFilter(grant, filter));
    },
  };
}

function memoryClients(): Pick<GrantStore, "readClient" | "saveClient"> {
  const clients = new Map<string, ClientRecord>();
  return {
    readClient: async (issuer, form) => clients.get(JSON.stringify([issuer, form])),
    saveClient: async (client, form) => void clients.set(JSON.stringify([client.issuer, form]), client),
  };
}

function memoryBindings(): BindingStore {
  const bindings = new Map<string, ClientBinding>();
  const nameOf = ({ profile, clientId }: Pick<ClientBinding, "profile" | "clientId">) =>
    JSON.stringify([profile, clientId]);
  return {
    readBinding: async (key) => bindings.get(nameOf(key)),
    saveBinding: async (binding, expected) => {
      const stored = bindings.get(nameOf(binding));
      if (stored !== undefined && !isSameBinding(stored, expected)) return stored;
      bindings.set(nameOf(binding), binding);
      return binding;
    },
    removeBinding: async (key) => bindings.delete(nameOf(key)),
    listBindings: async () => [...bindings.values()],
  };
}

/** Leases inside one process: those who wait queue up, and no holder dies alone. */
function memoryLease(): GrantStore["lease"] {
  const queues = new OneAtATime();
  /** The newest attempt under each name that failed. */
  const failed = new Lru<PreviousAttempt>(MAX_FAILURES);
  return (name, work, { durationMs, extend = false, signal }) => {
    const requestedAt = systemClock.epoch();
    const hold = async (queued: boolean) => {
      const [start, at, before] = [systemClock.now(), systemClock.epoch(), failed.get(name)];
      const left = () => (extend ? durationMs : Math.max(0, durationMs - (systemClock.now() - start)));
      let committed = false;
      let isRolledBack = false;
      const commit = async () => {
        if (left() === 0) throw leaseLost("the time for this work has passed");
        committed = true;
      };
      const rollback = () => {
        isRolledBack = true;
      };
      // Waiting for an attempt that was rolled back is not waiting for the one before it.
      const waited = queued && (before?.endedAt ?? requestedAt) >= requestedAt;
      try {
        const result = await work({ left, commit, rollback, before, waited });
        failed.delete(name);
        return result;
      } catch (error) {
        const failure = isAgentAuthError(error) ? error.toJSON() : undefined;
        const endedAt = systemClock.epoch();
        if (!isRolledBack) failed.set(name, { at, endedAt, ended: "released", committed, failure });
        throw error;
      }
    };
    return queues.run(name, hold, signal);
  };
}
