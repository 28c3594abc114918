import type { GrantStore } from "../../../../src/oauth/grant/grant-store.js";
import * as old from "./file-store.gen.js";

/**
 * The file store of an earlier version, which knows only `grants/<id>.<generation>.json`. What the options of a lease
 * are called now, it gets under its own names.
 */
export function oldFileStore(folder: string): GrantStore {
  const store: GrantStore = old.fileStore(folder);
  const lease = store.lease.bind(store);
  return Object.assign(store, {
    lease: ((name, work, options) =>
      lease(name, work, {
        ...options,
        ...{ duration: options.durationMs, patience: options.patienceMs },
      })) satisfies GrantStore["lease"],
  });
}
