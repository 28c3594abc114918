import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import { AgentAuthError, isAgentAuthError } from "../errors.js";
import type { Grant } from "../oauth/grant.js";
import type { GrantKey, GrantStore, Reservation } from "../oauth/grant-store.js";
import { shellWord } from "../redact.js";
import { type Cipher, CipherError } from "./cipher.js";
import { CodecError, decodeClient, decodeGrant, encodeClient, encodeGrant } from "./codec.js";
import { FileLeases } from "./file-leases.js";
import { Generations } from "./generations.js";
import {
  checkPrivateFolder,
  makePrivateFolder,
  readPrivateFile,
  removeFile,
  writePrivateFile,
} from "./private-file.js";
import { storeError } from "./store-error.js";

/** How files are kept. */
export interface FileStoreOptions {
  /** Seals what is written. Default: it is written as it is, and only the file's mode protects it. */
  cipher?: Cipher | undefined;
}

/** Larger than a grant with two tokens of 64 KiB would be rare; a larger one finds its room when it is saved. */
const ROOM_BYTES = 32 * 1024;

/**
 * Grants and clients in files that only their owner can read, one file each, so that a broken one harms no other.
 *
 * @param folder is made when something is first saved
 */
export function fileStore(folder: string, { cipher }: FileStoreOptions = {}): GrantStore {
  const grants = join(folder, "grants");
  const clients = join(folder, "clients");
  const generations = new Generations(grants);
  const leases = new FileLeases(join(folder, "claims"));

  const open = async <T>(text: string, path: string, name: string, decode: (text: string) => T): Promise<T> => {
    try {
      return decode(cipher ? await cipher.open(text, name) : text);
    } catch (cause) {
      throw unusable(path, cause);
    }
  };
  const seal = async (text: string, name: string) => (cipher ? cipher.seal(text, name) : text);

  const readGrant = async (id: string): Promise<Grant | undefined> => {
    checkFolders(grants);
    const stored = generations.read(id);
    return stored && open(stored.text, stored.path, `grant:${id}`, decodeGrant);
  };

  const reserve = async (key: GrantKey): Promise<Reservation> => {
    const id = grantId(key);
    makePrivateFolder(grants);
    checkFolders(grants);
    const before = generations.read(id);
    const reserved = generations.reserve(id, ROOM_BYTES);
    return {
      async save(grant, expected) {
        const name = `grant:${id}`;
        const old = before?.generation === expected ? before : generations.read(id);
        if (old?.generation !== expected) return false;
        // What cannot be read is not replaced.
        const kept = old && (await open(old.text, old.path, name, checked));
        const text = await seal(encodeGrant(grant, kept), name);
        return generations.publish(id, reserved, { text, generation: grant.generation, expected });
      },
      release: async () => removeFile(reserved),
    };
  };

  return {
    location: folder,
    read: (key) => readGrant(grantId(key)),
    reserve,
    async save(grant, expected) {
      const room = await reserve(grant);
      try {
        return await room.save(grant, expected);
      } finally {
        await room.release();
      }
    },
    remove: async (key) => generations.remove(grantId(key)),
    async list() {
      checkFolders(grants);
      const all = await Promise.all(generations.ids().map((id) => readGrant(id).catch(passOver)));
      return all.filter((grant) => grant !== undefined);
    },
    async readClient(issuer, form) {
      const id = digest(issuer, form);
      const path = join(clients, `${id}.json`);
      checkFolders(clients);
      const text = readPrivateFile(path);
      return text === undefined ? undefined : open(text, path, `client:${id}`, decodeClient);
    },
    async saveClient(client, form) {
      const id = digest(client.issuer, form);
      checkFolders(clients);
      writePrivateFile(join(clients, `${id}.json`), await seal(encodeClient(client), `client:${id}`));
    },
    removeClient: async (issuer, form) => removeFile(join(clients, `${digest(issuer, form)}.json`)),
    lease: (name, work, options) => leases.run(name, work, options),
  };
}

/** The folder, and the one above it: whoever can write there can put another in its place. */
function checkFolders(path: string): void {
  checkPrivateFolder(dirname(path), "write");
  checkPrivateFolder(path);
}

function grantId({ profile, server, account }: GrantKey): string {
  return account === undefined ? digest(profile, server) : digest(profile, server, account);
}

function digest(...parts: string[]): string {
  return createHash("sha256").update(parts.join("\n")).digest("hex").slice(0, 40);
}

function checked(text: string): string {
  decodeGrant(text);
  return text;
}

/** The error for a file that cannot be read, with the way to set it aside: it is never overwritten and never deleted. */
function unusable(path: string, cause: unknown): unknown {
  const aside = `mv ${shellWord(path)} ${shellWord(`${path}.broken`)}`;
  if (cause instanceof CodecError) {
    return storeError(`the file ${path} cannot be used: ${cause.message}`, cause, `move it away: ${aside}`);
  }
  if (!(cause instanceof CipherError)) return cause;
  return new AgentAuthError("login_required", `the file ${path} cannot be opened: ${cause.message}`, {
    class: "auth",
    hint: `move it away, then sign in again: ${aside}`,
    cause,
  });
}

/** In a list one file that cannot be used keeps nobody from seeing the others; a command that needs it says what is wrong. */
function passOver(error: unknown): undefined {
  if (isAgentAuthError(error) && (error.class === "store" || error.class === "auth")) return undefined;
  throw error;
}
