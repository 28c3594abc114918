import type { ClientRecord, Grant } from "../oauth/grant.js";
import type { GrantKey, GrantStore } from "../oauth/grant-store.js";
import { Leases } from "./leases.js";

/** A store that lives as long as the program. */
export function memoryStore(): GrantStore {
  const grants = new Map<string, Grant>();
  const clients = new Map<string, ClientRecord>();
  const leases = new Leases();
  const keyOf = ({ profile, server }: GrantKey) => `${profile} ${server}`;
  return {
    location: "memory",
    read: async (key) => grants.get(keyOf(key)),
    async save(grant, expected) {
      if (grants.get(keyOf(grant))?.generation !== expected) return false;
      grants.set(keyOf(grant), grant);
      return true;
    },
    remove: async (key) => void grants.delete(keyOf(key)),
    list: async () => [...grants.values()],
    readClient: async (issuer, form) => clients.get(`${issuer} ${form}`),
    saveClient: async (client, form) => void clients.set(`${client.issuer} ${form}`, client),
    removeClient: async (issuer, form) => void clients.delete(`${issuer} ${form}`),
    lease: (name, work, signal) => leases.run(name, work, signal),
  };
}
