import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { isAgentAuthError } from "../errors.js";
import type { ClientRecord, Grant } from "../oauth/grant.js";
import type { GrantKey, GrantStore } from "../oauth/grant-store.js";
import { shellWord } from "../redact.js";
import { CodecError, decodeClient, decodeGrant, encodeClient, encodeGrant } from "./codec.js";
import { Leases } from "./leases.js";
import { checkPrivateFolder, readPrivateFile, removeFile, writePrivateFile } from "./private-file.js";
import { storeError } from "./store-error.js";

/**
 * Grants and clients in files that only their owner can read, one file each, so that a broken one harms no other.
 *
 * @param folder is made when something is first saved
 */
export function fileStore(folder: string): GrantStore {
  const grants = join(folder, "grants");
  const clients = join(folder, "clients");
  const leases = new Leases();
  const grantPath = ({ profile, server }: GrantKey) => join(grants, `${digest(profile, server)}.json`);
  const clientPath = (issuer: string, form: string) => join(clients, `${digest(issuer, form)}.json`);
  return {
    location: folder,
    read: async (key) => load(grantPath(key), decodeGrant),
    async save(grant, expected) {
      // Without a pause between the look and the writing, in which another save could come.
      const stored = load(grantPath(grant), decodeGrant);
      if (stored?.generation !== expected) return false;
      write(grantPath(grant), encodeGrant(grant));
      return true;
    },
    remove: async (key) => removeFile(grantPath(key)),
    list: async () => filesIn(grants).flatMap((path) => loadAny(path) ?? []),
    readClient: async (issuer, form) => load(clientPath(issuer, form), decodeClient),
    saveClient: async (client: ClientRecord, form) => write(clientPath(client.issuer, form), encodeClient(client)),
    removeClient: async (issuer, form) => removeFile(clientPath(issuer, form)),
    lease: (name, work, signal) => leases.run(name, work, signal),
  };
}

function digest(...parts: string[]): string {
  return createHash("sha256").update(parts.join("\n")).digest("hex").slice(0, 40);
}

function write(path: string, text: string): void {
  checkPrivateFolder(dirname(path));
  writePrivateFile(path, text);
}

function load<T>(path: string, decode: (text: string) => T): T | undefined {
  checkPrivateFolder(dirname(path));
  const text = readPrivateFile(path);
  if (text === undefined) return undefined;
  try {
    return decode(text);
  } catch (cause) {
    if (!(cause instanceof CodecError)) throw cause;
    throw storeError(
      `the file ${path} cannot be used: ${cause.message}`,
      cause,
      `move it away: mv ${shellWord(path)} ${shellWord(`${path}.broken`)}`,
    );
  }
}

/** In a list one file that cannot be used keeps nobody from seeing the others; a command that needs it says what is wrong. */
function loadAny(path: string): Grant | undefined {
  try {
    return load(path, decodeGrant);
  } catch (error) {
    if (isAgentAuthError(error) && error.class === "store") return undefined;
    throw error;
  }
}

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => /^[0-9a-f]{40}\.json$/.test(name))
      .sort()
      .map((name) => join(folder, name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw storeError(`the folder ${folder} cannot be read`, error);
  }
}
