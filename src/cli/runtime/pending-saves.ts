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
  const watchEach = (open: NonNullable<GrantStore["for"]>): typeof open => {
    return (place) => saves.watch(open(place));
  };
  const saves: PendingSaves = {
    watch: (store) => ({
      ...(store.listClients && { listClients: store.listClients.bind(store) }),
      ...(store.shortLived && { shortLived: store.shortLived }),
      ...(store.unrevoked && { unrevoked: store.unrevoked }),
      ...(store.for && { for: watchEach(store.for.bind(store)) }),
      read: (...given) => store.read(...given),
      save: (...given) => store.save(...given),
      reserve: (...given) => store.reserve(...given),
      remove: (...given) => store.remove(...given),
      list: (...given) => store.list(...given),
      connections: (...given) => store.connections(...given),
      readClient: (...given) => store.readClient(...given),
      saveClient: (...given) => store.saveClient(...given),
      readBinding: (...given) => store.readBinding(...given),
      saveBinding: (...given) => store.saveBinding(...given),
      removeBinding: (...given) => store.removeBinding(...given),
      listBindings: (...given) => store.listBindings(...given),
      async lease(name, work, options) {
        const one = Symbol();
        const unsaved = Symbol();
        const onUnsaved = (ended: Promise<void>) => {
          committed.add(unsaved);
          void inTime(ended, clock).then(() => end(unsaved));
          options.onUnsaved?.(ended);
        };
        try {
          const marked = (lease: Lease) => work(marking(lease, () => committed.add(one)));
          return await store.lease(name, marked, { ...options, onUnsaved });
        } finally {
          end(one);
        }
      },
      get location() {
        return store.location;
      },
    }),
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

function marking(lease: Lease, mark: () => void): Lease {
  return {
    left: () => lease.left(),
    maySend: () => lease.maySend?.() !== false,
    lost: () => lease.lost?.() ?? leaseLost(),
    commit() {
      mark();
      return lease.commit();
    },
    rollback: () => lease.rollback(),
    get before() {
      return lease.before;
    },
    get waited() {
      return lease.waited;
    },
  };
}
