import { randomUUID } from "node:crypto";
import { existsSync, renameSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AgentAuthError } from "../../errors.js";
import { checkOptionNames, type OptionNames, requireOptions } from "../../http/public-class.js";
import { parseJsonObject } from "../../http/strict-json.js";
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
import { readUsable } from "../../oauth/model/grant-summary.js";
import { errorCode, moveAway, retryWhileBusy, tryStat } from "../../platform.js";
import { FileLeases } from "../leases/file-leases.js";
import {
  attempt,
  checkPrivateFolders,
  discardFile,
  listFolder,
  makePrivateFolder,
  moveEmptyAway,
  type OnEmptyFile,
  publishPrivateFile,
  readPrivateFile,
  readPublishedFile,
  removeFile,
  replacePublishedFile,
  reservePrivateFile,
  temporaryPath,
  writePrivateFile,
} from "../private/private-file.js";
import { CipherError, KIND, parseSealed, type RecordCipher } from "../seal/sealing.js";
import { onFiles, storeError } from "../store-error.js";
import { type FileGrantTools, fileGrants, hashParts } from "./file-grants.js";

/**
 * The id of the key that a text was sealed with; undefined for a text that is not sealed.
 *
 * @throws CipherError where the text is sealed, but not as this version seals
 */
export function sealedWith(text: string): string | undefined {
  // What is not JSON is not sealed: the decoder of plain text reports what is wrong with it.
  return parseJsonObject(text)?.["kind"] === KIND ? parseSealed(text).key : undefined;
}

/** Options of {@link fileStore}. */
export interface FileStoreOptions {
  /** Seals the files, each under a name such as `grant:<digest>`. Default: they are unsealed, and only their mode protects them. */
  cipher?: RecordCipher | undefined;
  /**
   * Called after a file that held nothing, as a crash of the system leaves it, was renamed: it counts as missing.
   * Default: such a file is an error.
   */
  onEmptyFile?: OnEmptyFile | undefined;
}

const NAME = /^([0-9a-f]{40})\.json$/;
const BINDING_LEASE_MS = 10_000;

/**
 * Grants and clients in files that only their owner can read, one file each, so that a broken one harms no other.
 *
 * @param folder is created by the first save
 */
export function fileStore(folder: string, options: FileStoreOptions = {}): GrantStore {
  requireOptions({ folder }, { folder: "string" }, "fileStore");
  checkOptionNames(options, { cipher: true, onEmptyFile: true } satisfies OptionNames<FileStoreOptions>, "fileStore");
  const { cipher, onEmptyFile } = options;
  const leases = new FileLeases(join(folder, "claims"));
  const lease: GrantStore["lease"] = (name, work, options) => leases.run(name, work, options);
  let isSealing = false;
  const tools: FileGrantTools = {
    open: async ({ text, path }, name, decode) => {
      try {
        const record = decode(cipher ? await cipher.open(text, name) : text);
        const sealed = cipher && sealedWith(text) === undefined ? await cipher.seal(text, name) : text;
        // Without a keychain, the settings may have files stay as they are.
        if (sealed === text) return record;
        await sealFile({ text, path }, sealed);
        if (isSealing) return record;
        isSealing = true;
        await sealOthers(store);
        return record;
      } catch (cause) {
        throw unusableFileError(path, cause);
      }
    },
    seal: async (text, name) => (cipher ? cipher.seal(text, name) : text),
    onEmptyFile,
  };
  const form = { kind: "client", encode: encodeClient, decode: decodeClient };
  const clients = recordFiles<ClientRecord>(join(folder, "clients"), tools, form);
  const store = {
    location: folder,
    ...fileGrants(folder, tools),
    readClient: onFiles(folder, (issuer: string, form: string) => clients.read(hashParts(issuer, form))),
    saveClient: onFiles(folder, (client: ClientRecord, form: string) =>
      clients.write(hashParts(client.issuer, form), client),
    ),
    listClients: onFiles(folder, () => clients.list()),
    ...fileBindings(folder, tools, lease),
    shortLived: fileRecords(folder, cipher),
    unrevoked: fileUnrevoked(folder, tools),
    lease,
  } satisfies GrantStore;
  return store;
}

const SEAL_TRIES = 40;
const SEAL_PAUSE_MS = 25;

async function sealFile({ text, path }: { text: string; path: string }, sealed: string): Promise<void> {
  for (let tries = 1; !replacePublishedFile(path, text, sealed); tries++) {
    if (tries === SEAL_TRIES)
      throw storeError(`the file ${path} is not sealed, and another process is at it`, undefined);
    await sleep(SEAL_PAUSE_MS);
  }
}

/**
 * Seals, by reading it, what else was written before the store had a key: a client has a secret, and a login of another
 * profile a token. What cannot be used is an error where it is used.
 */
async function sealOthers(
  store: Required<Pick<GrantStore, "list" | "listClients" | "listBindings">> & { unrevoked: UnrevokedLogins },
): Promise<void> {
  await Promise.allSettled([store.list(), store.listClients(), store.listBindings()]);
  for await (const _ of store.unrevoked.list());
}

/** The error for a file that cannot be read, with the command that moves it away: it is never overwritten or removed. */
function unusableFileError(path: string, cause: unknown): unknown {
  const aside = moveAway(path, `${path}.broken`);
  if (cause instanceof CodecError)
    return storeError(`the file ${path} cannot be used: ${cause.message}`, cause, `move it away: ${aside}`);
  if (!(cause instanceof CipherError)) return cause;
  return new AgentAuthError("login_required", `the file ${path} cannot be opened: ${cause.message}`, {
    class: "auth",
    hint: `move it away, then log in again: ${aside}`,
    cause,
  });
}

/** Sealed records in a private folder, each in a file that its id names. */
function recordFiles<T>(
  folder: string,
  { open, seal, onEmptyFile }: FileGrantTools,
  { kind, encode, decode }: { readonly kind: string; encode(record: T): string; decode(text: string, id: string): T },
) {
  const pathOf = (id: string) => join(folder, `${id}.json`);
  const ids = () => {
    checkPrivateFolders(folder);
    return listFolder(folder).flatMap((name) => NAME.exec(name)?.[1] ?? []);
  };
  const read = async (id: string): Promise<T | undefined> => {
    checkPrivateFolders(folder);
    const path = pathOf(id);
    const text = readPrivateFile(path);
    if (text === undefined || moveEmptyAway(path, text, onEmptyFile)) return undefined;
    return open({ text, path }, `${kind}:${id}`, (plain) => decode(plain, id));
  };
  const write = async (id: string, record: T): Promise<void> => {
    checkPrivateFolders(folder);
    writePrivateFile(pathOf(id), await seal(encode(record), `${kind}:${id}`));
  };
  const list = async (): Promise<T[]> => {
    const all = await Promise.all(ids().map(read));
    return all.filter((record) => record !== undefined);
  };
  return { folder, pathOf, ids, read, write, list };
}

/** The bindings of clients in files of their own, one each: a logout removes none of them. */
function fileBindings(home: string, tools: FileGrantTools, lease: GrantStore["lease"]): BindingStore {
  const bindingId = ({ profile, clientId }: BindingKey) => hashParts(profile, clientId);
  const files = recordFiles<ClientBinding>(join(home, "bindings"), tools, {
    kind: "binding",
    encode: encodeBinding,
    decode: (text, id) => {
      const binding = decodeBinding(text);
      // A file that was copied or renamed by hand belongs to another client.
      if (bindingId(binding) !== id) throw new CodecError("its name is that of another client");
      return binding;
    },
  });
  return {
    readBinding: onFiles(home, (key: BindingKey) => files.read(bindingId(key))),
    saveBinding: onFiles(home, (binding: ClientBinding, expected: ClientBinding | undefined) => {
      const id = bindingId(binding);
      const save = async () => {
        const stored = await files.read(id);
        if (stored !== undefined && !isSameBinding(stored, expected)) return stored;
        await files.write(id, binding);
        return binding;
      };
      return lease(`binding ${id}`, save, { durationMs: BINDING_LEASE_MS, once: true });
    }),
    // An unreadable binding can be removed too: that exposes no credential, and the user is asked again.
    removeBinding: onFiles(home, async (key: BindingKey) => {
      const path = files.pathOf(bindingId(key));
      checkPrivateFolders(files.folder);
      const isThere = existsSync(path);
      removeFile(path);
      return isThere;
    }),
    listBindings: onFiles(home, () => files.list()),
  };
}

/** The logins that are to be revoked in files of their own, whose times show when each was removed. */
function fileUnrevoked(home: string, tools: FileGrantTools): UnrevokedLogins {
  const form = { kind: "revocation", encode: (grant: Grant) => encodeGrant(grant), decode: decodeGrant };
  const files = recordFiles(join(home, "revocations"), tools, form);
  const removal = (id: string) => onFiles(home, async () => removeFile(files.pathOf(id)));
  return {
    add: onFiles(home, async (grant: Grant) => {
      const id = hashParts(randomUUID());
      await files.write(id, grant);
      return removal(id);
    }),
    async *list() {
      checkPrivateFolders(files.folder);
      removeExpired(files.folder, Date.now() - UNREVOKED_MS);
      for (const id of files.ids()) {
        const grant = await readUsable(onFiles(home, () => files.read(id)));
        if (grant) yield { grant, remove: removal(id) };
      }
    },
  };
}

/** Short-lived records in files that only their owner can read; the time of a file is that at which it expires. */
function fileRecords(home: string, cipher: RecordCipher | undefined): ShortLivedRecords {
  const folder = join(home, "pending");
  const pathOf = (id: string) => {
    if (!/^[a-z0-9-]{1,80}$/.test(id)) throw new TypeError("an id has at most 80 letters and digits");
    return join(folder, `${id}.json`);
  };
  const opened = async (path: string, id: string) => {
    const content = readPublishedFile(path);
    return content !== undefined && cipher ? cipher.open(content, `pending:${id}`) : content;
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
        if (errorCode(cause) === "ENOENT") return undefined;
        throw storeError(`the file ${path} cannot be taken`, cause);
      }
      try {
        return await opened(taken, id);
      } finally {
        removeFile(taken);
      }
    }),
    read: onFiles(home, async (id: string) => {
      checkPrivateFolders(folder);
      return opened(pathOf(id), id);
    }),
  };
}

/** Milliseconds in which another process still writes a file, and sets its time. */
const GRACE_MS = 60_000;

function removeExpired(folder: string, now: number): void {
  for (const name of listFolder(folder)) {
    const path = join(folder, name);
    const stat = tryStat(path);
    if (stat && stat.mtimeMs + GRACE_MS <= now) removeFile(path);
  }
}
