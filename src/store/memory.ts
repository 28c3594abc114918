import { isAgentAuthError } from "../errors.js";
import { systemClock } from "../http/deadline.js";
import { Lru } from "../http/lru.js";
import { OneAtATime } from "../http/single-flight.js";
import type { ClientRecord, Grant, GrantKey } from "../oauth/model/grant.js";
import {
  type ClientBinding,
  type GrantStore,
  isSameBinding,
  matchesFilter,
  memoryRecords,
  type UnrevokedLogins,
} from "../oauth/model/grant-store.js";
import { connectionPages } from "../oauth/model/grant-summary.js";
import { leaseLost, type PreviousAttempt } from "../oauth/model/lease.js";

/** The failures that are remembered for the next holder of a lease. */
const MAX_FAILURES = 1000;

/** A store that lives as long as the program. */
export function memoryStore(): GrantStore {
  /** The grants of each server by account: finding one takes as long whatever else is stored. */
  const servers = new Map<string, Map<string | undefined, Grant>>();
  const clients = new Map<string, ClientRecord>();
  const bindings = new Map<string, ClientBinding>();
  const nameOf = (...parts: readonly string[]) => JSON.stringify(parts);
  const find = ({ profile, server, account }: GrantKey) => servers.get(nameOf(profile, server))?.get(account);

  const saveOver = (before: Grant | undefined, grant: Grant, expected: number | undefined): boolean => {
    // The grant of another login may have the same generation.
    if (find(grant) !== before || before?.generation !== expected) return false;
    if (grant.generation <= (expected ?? -1))
      throw new RangeError("a generation must be higher than the one it replaces");
    const server = nameOf(grant.profile, grant.server);
    servers.set(server, (servers.get(server) ?? new Map()).set(grant.account, grant));
    return true;
  };

  return {
    location: "memory",
    read: async (key) => find(key),
    save: async (grant, expected) => saveOver(find(grant), grant, expected),
    reserve: async (key) => {
      const before = find(key);
      return { save: async (grant, expected) => saveOver(before, grant, expected), release: async () => {} };
    },
    remove: async ({ profile, server, account }) => {
      const accounts = servers.get(nameOf(profile, server));
      accounts?.delete(account);
      if (accounts?.size === 0) servers.delete(nameOf(profile, server));
    },
    list: async (filter = {}) => {
      const { profile, server } = filter;
      const isOfOne = profile !== undefined && server !== undefined;
      const found = isOfOne ? [servers.get(nameOf(profile, server)) ?? new Map()] : [...servers.values()];
      return found.flatMap((accounts) => [...accounts.values()]).filter((grant) => matchesFilter(grant, filter));
    },
    connections: (query = {}) => {
      const { cursor = "" } = query;
      const places = [...servers].flatMap(([server, accounts]) =>
        [...accounts.keys()].map((account) => JSON.stringify([server, account])),
      );
      return connectionPages(query, places.filter((place) => place > cursor).sort(), async (place) => {
        const [server, account] = JSON.parse(place);
        return servers.get(server)?.get(account ?? undefined);
      });
    },
    readClient: async (issuer, form) => clients.get(nameOf(issuer, form)),
    saveClient: async (client, form) => void clients.set(nameOf(client.issuer, form), client),
    readBinding: async ({ profile, clientId }) => bindings.get(nameOf(profile, clientId)),
    saveBinding: async (binding, expected) => {
      const name = nameOf(binding.profile, binding.clientId);
      const stored = bindings.get(name);
      if (stored !== undefined && !isSameBinding(stored, expected)) return stored;
      bindings.set(name, binding);
      return binding;
    },
    removeBinding: async ({ profile, clientId }) => bindings.delete(nameOf(profile, clientId)),
    listBindings: async () => [...bindings.values()],
    shortLived: memoryRecords(),
    unrevoked: memoryUnrevoked(),
    lease: memoryLease(),
  };
}

function memoryUnrevoked(): UnrevokedLogins {
  const grants = new Set<Grant>();
  const removal = (grant: Grant) => async () => void grants.delete(grant);
  return {
    add: async (grant) => {
      grants.add(grant);
      return removal(grant);
    },
    async *list() {
      for (const grant of grants) yield { grant, remove: removal(grant) };
    },
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
      let [committed, isRolledBack] = [false, false];
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
