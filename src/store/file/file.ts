import { join } from "node:path";
import { AgentAuthError } from "../../errors.js";
import { CodecError, decodeClient, encodeClient } from "../../oauth/model/codec.js";
import type { ClientRecord } from "../../oauth/model/grant.js";
import type { GrantStore } from "../../oauth/model/grant-store.js";
import { moveAway } from "../../platform/shell.js";
import { FileLeases } from "../leases/file-leases.js";
import { checkPrivateFolders, listFolder, readPrivateFile, writePrivateFile } from "../private/private-file.js";
import { CipherError } from "../seal/sealing.js";
import { onFiles, storeError } from "../store-error.js";
import type { Cipher } from "./cipher.js";
import { fileBindings } from "./file-bindings.js";
import { fileGrants } from "./file-grants.js";
import { fileRecords } from "./file-records.js";
import { digest } from "./grant-places.js";

/** Options of {@link fileStore}. */
export interface FileStoreOptions {
  /** Seals the files. Default: they are unsealed, and only their mode protects them. */
  cipher?: Cipher | undefined;
}

const CLIENT_NAME = /^([0-9a-f]{40})\.json$/;

/**
 * Grants and clients in files that only their owner can read, one file each, so that a broken one harms no other.
 *
 * @param folder is created by the first save
 */
export function fileStore(folder: string, { cipher }: FileStoreOptions = {}): GrantStore {
  const clients = join(folder, "clients");
  const leases = new FileLeases(join(folder, "claims"));

  const open = async <T>(text: string, path: string, name: string, decode: (text: string) => T): Promise<T> => {
    try {
      return decode(cipher ? await cipher.open(text, name) : text);
    } catch (cause) {
      throw unusable(path, cause);
    }
  };
  const seal = async (text: string, name: string) => (cipher ? cipher.seal(text, name) : text);

  const readClient = async (id: string) => {
    const path = join(clients, `${id}.json`);
    const text = readPrivateFile(path);
    return text === undefined ? undefined : open(text, path, `client:${id}`, decodeClient);
  };

  const bindings = fileBindings(folder, {
    open,
    seal,
    lease: (name, work, options) => leases.run(name, work, options),
    idOf: ({ profile, clientId }) => digest(profile, clientId),
  });

  return {
    location: folder,
    ...fileGrants(folder, { open, seal }),
    readClient: onFiles(folder, async (issuer: string, form: string) => {
      checkPrivateFolders(clients);
      return readClient(digest(issuer, form));
    }),
    saveClient: onFiles(folder, async (client: ClientRecord, form: string) => {
      const id = digest(client.issuer, form);
      checkPrivateFolders(clients);
      writePrivateFile(join(clients, `${id}.json`), await seal(encodeClient(client), `client:${id}`));
    }),
    listClients: onFiles(folder, async () => {
      checkPrivateFolders(clients);
      const ids = listFolder(clients).flatMap((name) => CLIENT_NAME.exec(name)?.[1] ?? []);
      return (await Promise.all(ids.map(readClient))).filter((client) => client !== undefined);
    }),
    ...bindings,
    shortLived: fileRecords(folder, cipher),
    lease: (name, work, options) => leases.run(name, work, options),
  };
}

/** The error for a file that cannot be read, with the command that moves it away: it is never overwritten or removed. */
function unusable(path: string, cause: unknown): unknown {
  const aside = moveAway(path, `${path}.broken`);
  if (cause instanceof CodecError) {
    return storeError(`the file ${path} cannot be used: ${cause.message}`, cause, `move it away: ${aside}`);
  }
  if (!(cause instanceof CipherError)) return cause;
  return new AgentAuthError("login_required", `the file ${path} cannot be opened: ${cause.message}`, {
    class: "auth",
    hint: `move it away, then log in again: ${aside}`,
    cause,
  });
}
