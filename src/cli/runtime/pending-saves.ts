import { type Clock, systemClock } from "../../http/deadline.js";
import type { GrantStore } from "../../oauth/model/grant-store.js";
import { type Lease, leaseLost } from "../../oauth/model/lease.js";

/** How long a run waits for an engine that has to store what the run could not save. */
const UNSAVED_MS = 30_000;

/** Work of one run that must not happen twice, such as the refresh of a token, and is not saved yet. */
export interface PendingSaves {
  /** The same store, whose leases are counted here from their commit until their work has ended. */
  watch(store: GrantStore): GrantStore;
  isUnderWay(): boolean;
  /** Resolves when none is under way; each has a deadline of its own. */
  settled(): Promise<void>;
}

/** Counts pending saves, from none. */
export function createPendingSaves(clock: Pick<Clock, "sleep"> = systemClock): PendingSaves {
  const committed = new Set<symbol>();
  let waiting: (() => void)[] = [];
  const end = (one: symbol) => {
    committed.delete(one);
    if (committed.size > 0) return;
    for (const resolve of waiting) resolve();
    waiting = [];
  };
  const saves: PendingSaves = {
    watch: (store) => {
      const lease: GrantStore["lease"] = async (name, work, options) => {
        const one = Symbol();
        const unsaved = Symbol();
        const onUnsaved = (ended: Promise<void>) => {
          committed.add(unsaved);
          void inTime(ended, clock).then(() => end(unsaved));
          options.onUnsaved?.(ended);
        };
        try {
          const marked = (held: Lease) => work(markSaves(held, () => committed.add(one)));
          return await store.lease(name, marked, { ...options, onUnsaved });
        } finally {
          end(one);
        }
      };
      const ofTenant = store.for?.bind(store);
      // The rest is inherited: a copy would read the location of a keychain, which opens it.
      return Object.assign(Object.create(store) as GrantStore, {
        lease,
        ...(ofTenant && { for: (place: { tenant: string }) => saves.watch(ofTenant(place)) }),
      });
    },
    isUnderWay: () => committed.size > 0,
    settled: () => (committed.size === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
  };
  return saves;
}

async function inTime(ended: Promise<void>, clock: Pick<Clock, "sleep">): Promise<void> {
  const over = new AbortController();
  await Promise.race([ended, clock.sleep(UNSAVED_MS, over.signal)]);
  over.abort();
}

function markSaves(lease: Lease, mark: () => void): Lease {
  return {
    left: () => lease.left(),
    maySend: () => lease.maySend?.() !== false,
    lost: () => lease.lost?.() ?? leaseLost(),
    commit() {
      mark();
      return lease.commit();
    },
    rollback: () => lease.rollback(),
    markRotated: () => lease.markRotated?.(),
    get rotatedGeneration() {
      return lease.rotatedGeneration;
    },
    get previous() {
      return lease.previous;
    },
    get waited() {
      return lease.waited;
    },
  };
}
