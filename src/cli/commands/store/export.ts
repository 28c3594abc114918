import type { AgentAuthError } from "../../../errors.js";
import type { GrantStore } from "../../../oauth/model/grant-store.js";
import { writeSecretFile } from "../../../profile/secrets.js";
import type { KeyRing } from "../../../store/seal/key-ring.js";
import { encodeRecords } from "./records-file.js";

/** What was exported, as `store export -o json` prints it. */
export interface ExportReport {
  /** The file. */
  path: string;
  /** Whether the file is sealed. */
  sealed: boolean;
  /** The number of logins. */
  logins: number;
  /** The number of registered clients. */
  clients: number;
  /** The number of bindings of clients to issuers. */
  bindings: number;
}

/** Writes every login, client and binding of every profile to a file that only this user can read. */
export async function exportStore(
  store: GrantStore,
  { path, ring, onUnusable }: { path: string; ring: KeyRing | "none"; onUnusable: (error: AgentAuthError) => void },
): Promise<ExportReport> {
  const grants = await store.list({}, onUnusable);
  const clients = (await store.listClients?.()) ?? [];
  const bindings = await store.listBindings();
  writeSecretFile(path, await encodeRecords({ grants, clients, bindings }, ring));
  const counts = { logins: grants.length, clients: clients.length, bindings: bindings.length };
  return { path, sealed: ring !== "none", ...counts };
}
