import { randomUUID } from "node:crypto";
import { existsSync, renameSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { AgentAuthError } from "../../errors.js";
import {
  CodecError,
  decodeBinding,
  decodeClient,
  decodeGrant,
  encodeBinding,
  encodeClient,
  encodeGrant,
} from "../../oauth/model/codec.js";
import type { ClientRecord, Grant } from "../../oauth/model/grant.js";
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
import { usable } from "../../oauth/model/grant-summary.js";
import { codeOf, retryWhileBusy, statOf } from "../../platform/files.js";
import { moveAway } from "../../platform/shell.js";
import { FileLeases } from "../leases/file-leases.js";
import {
  attempt,
  checkPrivateFolders,
  discardFile,
  listFolder,
  makePrivateFolder,
  readPrivateFile,
  readPublishedFile,
  removeFile,
  temporaryPath,
  writePrivateFile,
} from "../private/private-file.js";
import { publishPrivateFile, reservePrivateFile } from "../private/published-file.js";
import { CipherError } from "../seal/sealing.js";
import { onFiles, storeError } from "../store-error.js";
import type { Cipher } from "./cipher.js";
import { digest, fileGrants } from "./file-grants.js";

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
    unrevoked: fileUnrevoked(folder, { open, seal }),
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

/** How the file store reads and writes its files. */
export interface FileBindingTools {
  open<T>(text: string, path: string, name: string, decode: (text: string) => T): Promise<T>;
  seal(text: string, name: string): Promise<string>;
  lease: GrantStore["lease"];
  /** The name of a binding's file. */
  idOf(key: BindingKey): string;
}

const NAME = /^([0-9a-f]{40})\.json$/;
const LEASE_MS = 10_000;

/** The bindings of clients in files of their own, one each: a logout removes none of them. */
function fileBindings(folder: string, { open, seal, lease, idOf }: FileBindingTools): BindingStore {
  const bindings = join(folder, "bindings");
  const pathOf = (id: string) => join(bindings, `${id}.json`);

  const read = async (id: string): Promise<ClientBinding | undefined> => {
    checkPrivateFolders(bindings);
    const path = pathOf(id);
    const text = readPrivateFile(path);
    return text === undefined ? undefined : open(text, path, `binding:${id}`, (plain) => decodeStored(plain, id));
  };
  const decodeStored = (text: string, id: string): ClientBinding => {
    const binding = decodeBinding(text);
    // A file that was copied or renamed by hand belongs to another client.
    if (idOf(binding) !== id) throw new CodecError("its name is that of another client");
    return binding;
  };
  const exclusively = <T>(id: string, work: () => Promise<T>): Promise<T> =>
    lease(`binding ${id}`, work, { durationMs: LEASE_MS, once: true });

  return {
    readBinding: onFiles(folder, (key: BindingKey) => read(idOf(key))),
    saveBinding: onFiles(folder, (binding: ClientBinding, expected: ClientBinding | undefined) => {
      const id = idOf(binding);
      return exclusively(id, async () => {
        const stored = await read(id);
        if (stored !== undefined && !isSameBinding(stored, expected)) return stored;
        writePrivateFile(pathOf(id), await seal(encodeBinding(binding), `binding:${id}`));
        return binding;
      });
    }),
    // An unreadable binding can be removed too: that exposes no credential, and the user is asked again.
    removeBinding: onFiles(folder, async (key: BindingKey) => {
      const path = pathOf(idOf(key));
      checkPrivateFolders(bindings);
      const isThere = existsSync(path);
      removeFile(path);
      return isThere;
    }),
    listBindings: onFiles(folder, async () => {
      checkPrivateFolders(bindings);
      const all = await Promise.all(
        listFolder(bindings)
          .flatMap((name) => NAME.exec(name)?.[1] ?? [])
          .map(read),
      );
      return all.filter((binding) => binding !== undefined);
    }),
  };
}

/** The logins that are to be revoked in files of their own, whose times show when each was removed. */
function fileUnrevoked(home: string, { open, seal }: Pick<FileBindingTools, "open" | "seal">): UnrevokedLogins {
  const folder = join(home, "revocations");
  const pathOf = (id: string) => join(folder, `${id}.json`);
  const removal = (id: string) => onFiles(home, async () => removeFile(pathOf(id)));
  return {
    add: onFiles(home, async (grant: Grant) => {
      const id = digest(randomUUID());
      checkPrivateFolders(folder);
      writePrivateFile(pathOf(id), await seal(encodeGrant(grant), `revocation:${id}`));
      return removal(id);
    }),
    async *list() {
      checkPrivateFolders(folder);
      removeExpired(folder, Date.now() - UNREVOKED_MS);
      for (const id of listFolder(folder).flatMap((name) => NAME.exec(name)?.[1] ?? [])) {
        const read = onFiles(home, async () => {
          const text = readPrivateFile(pathOf(id));
          return text === undefined ? undefined : open(text, pathOf(id), `revocation:${id}`, decodeGrant);
        });
        const grant = await usable(read);
        if (grant) yield { grant, remove: removal(id) };
      }
    },
  };
}

/** Short-lived records in files that only their owner can read; the time of a file is that at which it expires. */
function fileRecords(home: string, cipher: Cipher | undefined): ShortLivedRecords {
  const folder = join(home, "pending");
  const pathOf = (id: string) => {
    if (!/^[a-z0-9-]{1,80}$/.test(id)) throw new TypeError("an id has at most 80 letters and digits");
    return join(folder, `${id}.json`);
  };
  return {
    put: onFiles(home, async (id: string, text: string, { now, expiresAt }: { now: number; expiresAt: number }) => {
      const path = pathOf(id);
      const content = cipher ? await cipher.seal(text, `pending:${id}`) : text;
      makePrivateFolder(folder);
      checkPrivateFolders(folder);
      removeExpired(folder, now);
      const temporary = reservePrivateFile(path, content.length);
      try {
        if (!publishPrivateFile(temporary, path, content)) return false;
      } finally {
        discardFile(temporary);
      }
      // It is stored, though without its time for a short while only.
      attempt(() => retryWhileBusy(() => utimesSync(path, new Date(expiresAt), new Date(expiresAt))));
      return true;
    }),
    take: onFiles(home, async (id: string) => {
      checkPrivateFolders(folder);
      const path = pathOf(id);
      const taken = temporaryPath(path);
      try {
        // Of two processes that rename a file, one succeeds.
        retryWhileBusy(() => renameSync(path, taken));
      } catch (cause) {
        if (codeOf(cause) === "ENOENT") return undefined;
        throw storeError(`the file ${path} cannot be taken`, cause);
      }
      try {
        const content = readPublishedFile(taken);
        return content !== undefined && cipher ? await cipher.open(content, `pending:${id}`) : content;
      } finally {
        removeFile(taken);
      }
    }),
  };
}

/** Milliseconds in which another process still writes a file, and sets its time. */
const GRACE_MS = 60_000;

function removeExpired(folder: string, now: number): void {
  for (const name of listFolder(folder)) {
    const path = join(folder, name);
    const stat = statOf(path);
    if (stat && stat.mtimeMs + GRACE_MS <= now) removeFile(path);
  }
}
