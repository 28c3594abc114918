import {
  CodecError,
  decodeBinding,
  decodeClient,
  decodeGrant,
  encodeBinding,
  encodeClient,
  encodeGrant,
} from "../../oauth/model/codec.js";
import {
  type BindingKey,
  type BindingStore,
  type ClientBinding,
  type GrantStore,
  isSameBinding,
  type ShortLivedRecords,
  UNREVOKED_MS,
  type UnrevokedLogins,
} from "../../oauth/model/grant-store.js";
import { readUsable } from "../../oauth/model/grant-summary.js";
import type { TenantRecords } from "./tenant-records.js";

export function clientRecords(records: TenantRecords): Pick<GrantStore, "readClient" | "saveClient"> {
  return {
    readClient: async (issuer, form) =>
      records.read(await records.key("client", issuer, form), (text) => {
        const client = decodeClient(text);
        if (client.issuer !== issuer) throw new CodecError("it contains a client of another issuer");
        return client;
      }),
    saveClient: async (client, form) => {
      const key = await records.key("client", client.issuer, form);
      const text = encodeClient(client);
      await records.update(key, async () => ({ text, result: undefined }));
    },
  };
}

/** The issuers of the clients of a tenant. */
export function bindingRecords(records: TenantRecords): BindingStore {
  const keyOf = ({ profile, clientId }: BindingKey) => records.key("binding", profile, clientId);
  const decodeFor = (id: string) => async (text: string) => {
    const binding = decodeBinding(text);
    if ((await keyOf(binding)).id !== id) throw new CodecError("it contains the binding of another client");
    return binding;
  };
  return {
    readBinding: async (binding) => {
      const key = await keyOf(binding);
      return records.read(key, decodeFor(key.id));
    },
    saveBinding: async (binding, expected) => {
      const key = await keyOf(binding);
      return records.update<ClientBinding>(key, async (before) => {
        const stored = before && (await records.decode(before, decodeFor(key.id)));
        if (stored !== undefined && !isSameBinding(stored, expected)) return { result: stored };
        return { text: encodeBinding(binding), result: binding };
      });
    },
    // An unreadable binding can be removed too: that exposes no credential, and the user is asked again.
    removeBinding: async (binding) => records.driver.delete(await keyOf(binding)),
    listBindings: async () => {
      const found = await records.scan("binding");
      const all = await Promise.all(found.map((record) => records.decode(record, decodeFor(record.key.id))));
      return all.filter((binding) => binding !== undefined);
    },
  };
}

/** The texts of a tenant that live for minutes. */
export function shortLivedRecords(records: TenantRecords): ShortLivedRecords {
  return {
    put: async (id, text, { now, expiresAt }) => {
      const key = await records.key("login", id);
      const expiresInMs = Math.max(1, expiresAt - now);
      // Two callers may put the same text, and one of them must get false: each stores a text of its own.
      return records.write(key, unique(text), undefined, { expiresInMs });
    },
    take: async (id) => {
      const key = await records.key("login", id);
      const record = await records.driver.get(key);
      if (record === undefined || !(await records.driver.delete(key, record.version))) return undefined;
      return records.decode(record, withoutId);
    },
    read: async (id) => records.read(await records.key("login", id), withoutId),
  };
}

/** The logins of a tenant whose tokens are to be revoked. */
export function unrevokedRecords(records: TenantRecords): UnrevokedLogins {
  return {
    add: async (grant) => {
      const key = await records.key("revocation", crypto.randomUUID());
      await records.write(key, encodeGrant(grant), undefined, { expiresInMs: UNREVOKED_MS });
      return async () => void (await records.driver.delete(key));
    },
    async *list() {
      for await (const { items } of records.pages("revocation")) {
        for (const record of items) {
          const grant = await readUsable(() => records.decode(record, decodeGrant));
          if (grant) yield { grant, remove: async () => void (await records.driver.delete(record.key)) };
        }
      }
    },
  };
}

function unique(text: string): string {
  return `${crypto.randomUUID()} ${text}`;
}

function withoutId(text: string): string {
  return text.slice(text.indexOf(" ") + 1);
}
