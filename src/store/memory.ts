import { systemClock } from "../http/deadline.js";
import { Lru } from "../http/lru.js";
import { OneAtATime } from "../http/single-flight.js";
import type { ClientRecord, Grant, GrantKey } from "../oauth/model/grant.js";
import type { ClientBinding, GrantFilter, GrantStore, UnrevokedLogins } from "../oauth/model/grant-store.js";
import { isSameBinding, matchesFilter, memoryRecords } from "../oauth/model/grant-store.js";
import { connectionPages, namesAfter } from "../oauth/model/grant-summary.js";
import { leaseLost, type PreviousAttempt, recordFailure } from "../oauth/model/lease.js";

/** The failures that are remembered for the next holder of a lease. */
const MAX_FAILURES = 1000;

/** A store that lives as long as the program. */
export function memoryStore(): GrantStore {
  const grants = new Map<string, Grant>();
  /** The names of the grants in ascending order: those of a profile are side by side, and in it those of a server. */
  const places: string[] = [];
  const clients = new Map<string, ClientRecord>();
  const bindings = new Map<string, ClientBinding>();
  const joinName = (...parts: readonly (string | undefined)[]) =>
    JSON.stringify(parts.filter((part) => part !== undefined));
  const grantName = ({ profile, server, account }: GrantKey) => joinName(profile, server, account);
  const find = (key: GrantKey) => grants.get(grantName(key));
  /** The places that a filter leaves, and maybe others. */
  const placesFor = ({ profile, server }: GrantFilter, cursor?: string) =>
    namesAfter(places, profile === undefined ? "" : joinName(profile, server).slice(0, -1), cursor);

  const saveOver = (before: Grant | undefined, grant: Grant, expected: number | undefined): boolean => {
    // The grant of another login may have the same generation.
    if (find(grant) !== before || before?.generation !== expected) return false;
    if (grant.generation <= (expected ?? -1))
      throw new RangeError("a generation must be higher than the one it replaces");
    const place = grantName(grant);
    if (before === undefined) places.splice(places.length - namesAfter(places, "", place).length, 0, place);
    grants.set(place, grant);
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
    remove: async (key) => {
      const place = grantName(key);
      if (grants.delete(place)) places.splice(places.indexOf(place), 1);
    },
    list: async (filter = {}) =>
      placesFor(filter).flatMap((place) => {
        const grant = grants.get(place);
        return grant !== undefined && matchesFilter(grant, filter) ? [grant] : [];
      }),
    connections: (query = {}) =>
      connectionPages(query, placesFor(query, query.cursor), async (place) => grants.get(place)),
    readClient: async (issuer, form) => clients.get(joinName(issuer, form)),
    saveClient: async (client, form) => void clients.set(joinName(client.issuer, form), client),
    readBinding: async ({ profile, clientId }) => bindings.get(joinName(profile, clientId)),
    saveBinding: async (binding, expected) => {
      const name = joinName(binding.profile, binding.clientId);
      const stored = bindings.get(name);
      if (stored !== undefined && !isSameBinding(stored, expected)) return stored;
      bindings.set(name, binding);
      return binding;
    },
    removeBinding: async ({ profile, clientId }) => bindings.delete(joinName(profile, clientId)),
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
      const [start, at, previous] = [systemClock.now(), systemClock.epoch(), failed.get(name)];
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
      const waited = queued && (previous?.endedAt ?? requestedAt) >= requestedAt;
      try {
        const result = await work({ left, commit, rollback, previous, waited });
        failed.delete(name);
        return result;
      } catch (error) {
        const failure = recordFailure(error, previous);
        const endedAt = systemClock.epoch();
        if (!isRolledBack) failed.set(name, { at, endedAt, ended: "released", committed, failure });
        throw error;
      }
    };
    return queues.run(name, hold, signal);
  };
}
