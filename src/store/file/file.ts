import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import type { ClientRecord, Grant } from "../../oauth/grant/grant.js";
import type { GrantKey, GrantStore, Reservation } from "../../oauth/grant/grant-store.js";
import { shellWord } from "../../redact.js";
import { FileLeases } from "../leases/file-leases.js";
import { onFiles, storeError } from "../store-error.js";
import { type Cipher, CipherError } from "./cipher.js";
import { CodecError, decodeClient, decodeGrant, encodeClient, encodeGrant } from "./codec.js";
import { fileBindings } from "./file-bindings.js";
import { checkPrivateFolders, makePrivateFolder, readPrivateFile, writePrivateFile } from "./private-file.js";
import { VersionedFiles } from "./versioned-files.js";

/** Options of {@link fileStore}. */
export interface FileStoreOptions {
  /** Seals the files. Default: they are unsealed, and only their mode protects them. */
  cipher?: Cipher | undefined;
}

/** Enough for most grants; the space for the rest of a larger one is allocated when it is saved. */
const RESERVED_BYTES = 32 * 1024;

/**
 * Grants and clients in files that only their owner can read, one file each, so that a broken one harms no other.
 *
 * @param folder is created by the first save
 */
export function fileStore(folder: string, { cipher }: FileStoreOptions = {}): GrantStore {
  const grants = join(folder, "grants");
  const clients = join(folder, "clients");
  const generations = new VersionedFiles(grants);
  const leases = new FileLeases(join(folder, "claims"));

  const open = async <T>(text: string, path: string, name: string, decode: (text: string) => T): Promise<T> => {
    try {
      return decode(cipher ? await cipher.open(text, name) : text);
    } catch (cause) {
      throw unusable(path, cause);
    }
  };
  const seal = async (text: string, name: string) => (cipher ? cipher.seal(text, name) : text);

  const bindings = fileBindings(folder, {
    open,
    seal,
    lease: (name, work, options) => leases.run(name, work, options),
    idOf: ({ profile, clientId }) => digest(profile, clientId),
  });

  const readGrant = async (id: string): Promise<Grant | undefined> => {
    checkPrivateFolders(grants);
    const stored = generations.read(id);
    return stored && open(stored.text, stored.path, `grant:${id}`, (text) => decodeStored(text, id, stored.generation));
  };

  const reserve = async (key: GrantKey): Promise<Reservation> => {
    const id = grantId(key);
    makePrivateFolder(grants);
    checkPrivateFolders(grants);
    const before = generations.read(id);
    let reserved = generations.reserve(id, RESERVED_BYTES);
    return {
      save: onFiles(folder, async (grant: Grant, expected: number | undefined) => {
        const name = `grant:${id}`;
        const old = generations.read(id);
        // The grant of another login may have the same generation.
        if (old?.generation !== expected || old?.text !== before?.text) return false;
        // An unreadable grant is not replaced.
        const checked = (text: string) => decodeStored(text, id, old?.generation) && text;
        const oldText = old && (await open(old.text, old.path, name, checked));
        const text = await seal(encodeGrant(grant, oldText), name);
        const content = { text, generation: grant.generation, expected };
        if (generations.publish(id, reserved, content)) return true;
        if (generations.generation(id) !== expected) return false;
        // No other save came first: another process swept the reserved file as a leftover, for example while this one slept.
        reserved = generations.reserve(id, RESERVED_BYTES);
        return generations.publish(id, reserved, content);
      }),
      async release() {
        try {
          rmSync(reserved, { force: true });
        } catch {
          // A leftover file is swept later, and must not hide the result of the save.
        }
      },
    };
  };

  return {
    location: folder,
    read: onFiles(folder, (key: GrantKey) => readGrant(grantId(key))),
    reserve: onFiles(folder, reserve),
    save: onFiles(folder, async (grant: Grant, expected: number | undefined) => {
      const reservation = await reserve(grant);
      try {
        return await reservation.save(grant, expected);
      } finally {
        await reservation.release();
      }
    }),
    remove: onFiles(folder, async (key: GrantKey) => generations.remove(grantId(key))),
    list: onFiles(folder, async (onUnusable: (error: AgentAuthError) => void = () => {}) => {
      checkPrivateFolders(grants);
      const read = onFiles(folder, readGrant);
      const skipUnusable = (error: unknown) => {
        if (!isAgentAuthError(error) || (error.class !== "store" && error.class !== "auth")) throw error;
        onUnusable(error);
      };
      const all = await Promise.all(generations.ids().map((id) => read(id).catch(skipUnusable)));
      // One unusable file does not hide the others.
      return all.filter((grant) => grant !== undefined);
    }),
    readClient: onFiles(folder, async (issuer: string, form: string) => {
      const id = digest(issuer, form);
      const path = join(clients, `${id}.json`);
      checkPrivateFolders(clients);
      const text = readPrivateFile(path);
      return text === undefined ? undefined : open(text, path, `client:${id}`, decodeClient);
    }),
    saveClient: onFiles(folder, async (client: ClientRecord, form: string) => {
      const id = digest(client.issuer, form);
      checkPrivateFolders(clients);
      writePrivateFile(join(clients, `${id}.json`), await seal(encodeClient(client), `client:${id}`));
    }),
    ...bindings,
    lease: (name, work, options) => leases.run(name, work, options),
  };
}

function grantId({ profile, server, account }: GrantKey): string {
  return account === undefined ? digest(profile, server) : digest(profile, server, account);
}

function digest(...parts: string[]): string {
  return createHash("sha256").update(parts.join("\n")).digest("hex").slice(0, 40);
}

/** Rejects a file that was copied or renamed by hand: it belongs to another login, and could never be saved over. */
function decodeStored(text: string, id: string, generation: number | undefined): Grant {
  const grant = decodeGrant(text);
  if (grant.generation !== generation) throw new CodecError(`its generation is ${grant.generation}, unlike its name's`);
  if (grantId(grant) !== id) throw new CodecError("its name is that of another login");
  return grant;
}

/** The error for a file that cannot be read, with the command that moves it away: it is never overwritten or removed. */
function unusable(path: string, cause: unknown): unknown {
  const aside = `mv ${shellWord(path)} ${shellWord(`${path}.broken`)}`;
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
