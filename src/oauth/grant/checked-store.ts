import { AgentAuthError } from "../../errors.js";
import { SECRET_MASK, Secret } from "../../redact.js";
import { type Events, elapsedMs, observe, readKnownCode } from "../../telemetry/emit.js";
import type { EventFields } from "../../telemetry/events.js";
import type { Grant } from "../model/grant.js";
import type { GrantStore } from "../model/grant-store.js";
import type { Lease, LeaseOptions } from "../model/lease.js";

/**
 * A store whose grants have usable tokens, and whose operations and leases are events. `JSON.stringify` masks a `Secret`, so
 * a store that uses it for grants loses their tokens: that must show before a refresh token is sent, and at the first login,
 * which reads what it has saved.
 *
 * @throws `AgentAuthError` `store_failed` for a grant whose tokens are not secrets
 */
export function checkedStore(store: GrantStore, events: Events): GrantStore {
  const { shortLived, unrevoked } = store;
  const ofTenant = store.for?.bind(store);
  const observed = <T>(operation: EventFields<"store">["operation"], work: () => Promise<T>): Promise<T> => {
    if (!events.wants("store")) return work();
    return observe(events, "store", work, (ended) => {
      if ("error" in ended) return { operation, outcome: "failed", code: readKnownCode(ended.error) };
      return { operation, outcome: ended.result === false ? "conflict" : "ok" };
    });
  };
  return {
    // It may depend on what was read.
    get location() {
      return store.location;
    },
    tenant: store.tenant,
    read: async (key) => {
      // Each call reads: a read that succeeds is worth neither an event nor the time of a more precise clock.
      const startedAt = events.wants("store") ? Date.now() : 0;
      const grant = await store.read(key).catch((error: unknown) => {
        const failure = { type: "store", operation: "read", outcome: "failed", code: readKnownCode(error) } as const;
        events.emit("store", () => ({ ...failure, durationMs: Math.max(0, Date.now() - startedAt) }));
        throw error;
      });
      if (grant !== undefined) checkSecrets(grant, store.location);
      return grant;
    },
    save: (grant, expected) => observed("save", () => store.save(grant, expected)),
    reserve: async (key, dueAt) => {
      const reservation = await observed("reserve", () => store.reserve(key, dueAt));
      return {
        save: (grant, expected) => observed("save", () => reservation.save(grant, expected)),
        release: () => reservation.release(),
      };
    },
    remove: (key) => observed("remove", () => store.remove(key)),
    list: async (filter, onUnusable) => {
      const grants = await observed("list", () => store.list(filter, onUnusable));
      for (const grant of grants) checkSecrets(grant, store.location);
      return grants;
    },
    connections: (query) => store.connections(query),
    readClient: (issuer, form) => store.readClient(issuer, form),
    saveClient: (client, form) => store.saveClient(client, form),
    readBinding: (key) => store.readBinding(key),
    saveBinding: (binding, expected) => store.saveBinding(binding, expected),
    removeBinding: (key) => store.removeBinding(key),
    listBindings: () => store.listBindings(),
    lease: (name, work, options) => observeLease(store, events, { name, work, options }),
    ...(shortLived && { shortLived }),
    ...(unrevoked && { unrevoked }),
    ...(store.due && { due: store.due }),
    ...(store.health && { health: store.health.bind(store) }),
    ...(ofTenant && { for: (partition) => checkedStore(ofTenant(partition), events) }),
  };
}

/** The first word of a lease's name. */
const OPERATIONS: Readonly<Record<string, EventFields<"lease">["operation"]>> = {
  refresh: "refresh",
  login: "login",
  grant: "request",
};

interface LeaseCall<T> {
  name: string;
  work(lease: Lease): Promise<T>;
  options: LeaseOptions<T>;
}

/** Leases something, and emits one event when the work begins, or when there is none to do. */
async function observeLease<T>(store: GrantStore, events: Events, { name, work, options }: LeaseCall<T>): Promise<T> {
  if (!events.wants("lease")) return store.lease(name, work, options);
  const startedAt = performance.now();
  let hasBegun = false;
  const report = (wait: EventFields<"lease">["wait"], previous?: Lease["previous"]) => {
    const operation = OPERATIONS[name.split(" ", 1)[0] ?? ""] ?? "other";
    const takeover = previous === undefined || previous.ended === "released" ? "none" : previous.ended;
    events.emit("lease", () => ({ type: "lease", operation, wait, takeover, durationMs: elapsedMs(startedAt) }));
  };
  const begin = (lease: Lease) => {
    hasBegun = true;
    report(lease.waited ? "held" : "none", lease.previous);
    return work(lease);
  };
  try {
    const result = await store.lease(name, begin, options);
    if (!hasBegun) report("result");
    return result;
  } catch (error) {
    if (!hasBegun) report("failed");
    throw error;
  }
}

function checkSecrets({ tokens, client, proofKey }: Grant, location: string): void {
  const { accessToken, refreshToken, idToken } = (tokens ?? {}) as Partial<Grant["tokens"]>;
  const isMissing = (value: unknown) => value === undefined || value === null;
  const isUsable = (value: unknown) => value instanceof Secret && value.reveal() !== SECRET_MASK;
  const others = [refreshToken, idToken, proofKey, client?.clientSecret];
  if (isUsable(accessToken) && others.every((secret) => isMissing(secret) || isUsable(secret))) return;
  const message = `the store in ${location} returned a grant whose tokens are no secrets: JSON.stringify masks them, so they are lost`;
  const hint =
    "write grants with encodeGrant and read them with decodeGrant, or make the store with grantStore(driver)";
  throw new AgentAuthError("store_failed", message, { class: "store", hint });
}
