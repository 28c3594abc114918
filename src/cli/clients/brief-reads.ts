import type { Clock } from "../../http/deadline.js";
import type { Grant, GrantKey } from "../../oauth/model/grant.js";
import type { GrantStore } from "../../oauth/model/grant-store.js";

/**
 * A store that reads the same grant from its files once in `ms` milliseconds, for a program that sends many requests in a
 * row. Under a lease, and after whatever this program writes, it reads anew: what decides about a refresh is never old.
 * That there is no grant is not remembered, so a login is seen at once.
 */
export function withBriefReads(store: GrantStore, ms: number, clock: Pick<Clock, "now">): GrantStore {
  const found = new Map<string, { grant: Grant; at: number }>();
  let leases = 0;
  let writes = 0;
  const writing = async <T>(work: () => Promise<T>): Promise<T> => {
    leases += 1;
    try {
      return await work();
    } finally {
      leases -= 1;
      writes += 1;
      found.clear();
    }
  };
  return {
    ...store,
    async read(key: GrantKey) {
      const name = JSON.stringify([key.profile, key.server, key.account]);
      const known = found.get(name);
      if (known && leases === 0 && clock.now() - known.at < ms) return known.grant;
      const [at, before] = [clock.now(), writes];
      const grant = await store.read(key);
      if (grant && leases === 0 && writes === before) found.set(name, { grant, at });
      else found.delete(name);
      return grant;
    },
    save: (...args) => writing(() => store.save(...args)),
    remove: (key) => writing(() => store.remove(key)),
    lease: (name, work, options) => writing(() => store.lease(name, work, options)),
  };
}
