import { AgentAuthError } from "../../errors.js";
import { SECRET_MASK, Secret } from "../../redact.js";
import type { Grant } from "../model/grant.js";
import type { GrantStore } from "../model/grant-store.js";

/**
 * A store whose grants have usable tokens. `JSON.stringify` masks a `Secret`, so a store that uses it for grants loses
 * their tokens: that must show before a refresh token is sent, and at the first login, which reads what it has saved.
 *
 * @throws `AgentAuthError` `store_failed` for a grant whose tokens are not secrets
 */
export function checkedStore(store: GrantStore): GrantStore {
  const { shortLived, unrevoked } = store;
  return {
    location: store.location,
    read: async (key) => {
      const grant = await store.read(key);
      if (grant !== undefined) checkSecrets(grant, store.location);
      return grant;
    },
    save: (grant, expected) => store.save(grant, expected),
    reserve: (key) => store.reserve(key),
    remove: (key) => store.remove(key),
    list: async (filter, onUnusable) => {
      const grants = await store.list(filter, onUnusable);
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
    lease: (name, work, options) => store.lease(name, work, options),
    ...(shortLived && { shortLived }),
    ...(unrevoked && { unrevoked }),
    ...(store.for && { for: (place) => checkedStore(store.for?.(place) ?? store) }),
  };
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
