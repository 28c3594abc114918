import { decodeClient } from "../../oauth/model/codec.js";
import type { ClientRecord } from "../../oauth/model/grant.js";
import type { StoreDriver, StoredRecord } from "../../store/driver/driver.js";
import { sealedName } from "../../store/driver/tenant-records.js";
import type { KeyRing } from "../../store/seal/key-ring.js";
import { storeError } from "../../store/store-error.js";

const SCAN_LIMIT = 200;

/** Every registered client in an engine: all tenants share them. @throws `AgentAuthError` class `store` */
export async function engineClients(driver: StoreDriver, ring: KeyRing | "none"): Promise<ClientRecord[]> {
  const open = async ({ key, value }: StoredRecord): Promise<ClientRecord> => {
    try {
      return decodeClient(ring === "none" ? value : await ring.open(value, sealedName(key)));
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw storeError(`a registered client in ${driver.location} cannot be used: ${reason}`, undefined);
    }
  };
  const clients: ClientRecord[] = [];
  let cursor: string | undefined;
  do {
    const page = await driver.scan({ kind: "client" }, { limit: SCAN_LIMIT, cursor });
    clients.push(...(await Promise.all(page.items.map(open))));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return clients;
}
