import { dirname } from "node:path";
import { type AgentAuthError, isAgentAuthError } from "../../errors.js";
import { CodecError, decodeGrant, encodeGrant } from "../../oauth/grant/codec.js";
import type { Grant } from "../../oauth/grant/grant.js";
import {
  type GrantFilter,
  type GrantKey,
  type GrantStore,
  matchesFilter,
  type Reservation,
} from "../../oauth/grant/grant-store.js";
import { fileError, onFiles } from "../store-error.js";
import { type GrantPlace, GrantPlaces, grantId } from "./grant-places.js";
import {
  attempt,
  checkPrivateFolder,
  discardFile,
  makePrivateFolder,
  removeEmptyFolders,
  syncIfThere,
} from "./private-file.js";
import type { Stored } from "./versioned-files.js";

/** How the file store opens and seals its files. */
export interface FileGrantTools {
  open<T>(text: string, path: string, name: string, decode: (text: string) => T): Promise<T>;
  seal(text: string, name: string): Promise<string>;
}

/** Enough for most grants; the space for the rest of a larger one is allocated when it is saved. */
const RESERVED_BYTES = 32 * 1024;
/** Another process may remove an empty folder between its creation and the first file in it. */
const MAX_FOLDER_TRIES = 10;

/** The record of a grant. */
interface Found {
  stored: Stored;
  /** Whether an earlier version saved it. */
  isEarlier: boolean;
  /** The record in the other place that it replaces. */
  replaced: Stored | undefined;
}

/**
 * Grants in folders that only their owner can read, one folder each: reading one costs the same whatever else is stored.
 *
 * Grants of earlier versions, which may still run beside this one, are all in one folder. They are read there and move
 * when they are next saved. Where both places have a grant of one key, the later login counts, then the higher
 * generation.
 */
export function fileGrants(
  home: string,
  { open, seal }: FileGrantTools,
): Pick<GrantStore, "read" | "reserve" | "save" | "remove" | "list"> {
  const places = new GrantPlaces(home);

  const decode = ({ id }: Pick<GrantPlace, "id">, { text, path, generation }: Stored) =>
    open(text, path, `grant:${id}`, (plain) => ({ plain, grant: decodeStored(plain, id, generation) }));

  const decodeStored = (text: string, id: string, generation: number): Grant => {
    const grant = decodeGrant(text);
    // A file that was copied or renamed by hand belongs to another login, and could never be saved over.
    if (grant.generation !== generation)
      throw new CodecError(`its generation is ${grant.generation}, unlike its name's`);
    if (grantId(grant) !== id) throw new CodecError("its name is that of another login");
    return grant;
  };

  const find = async (place: GrantPlace): Promise<Found | undefined> => {
    const [own, earlier] = look(places, place);
    if (own === undefined) return earlier && { stored: earlier, isEarlier: true, replaced: undefined };
    if (earlier === undefined) return { stored: own, isEarlier: false, replaced: undefined };
    const [ours, theirs] = await Promise.all([decode(place, own), decode(place, earlier)]);
    return counts(theirs.grant, ours.grant)
      ? { stored: earlier, isEarlier: true, replaced: own }
      : { stored: own, isEarlier: false, replaced: earlier };
  };

  const read = async (key: GrantKey): Promise<Grant | undefined> => {
    const place = places.of(key);
    const found = await find(place);
    return found && (await decode(place, found.stored)).grant;
  };

  const reserve = async (key: GrantKey): Promise<Reservation> => {
    const place = places.of(key);
    const { files } = place;
    const before = await find(place);
    let reserved = reserveIn(places, place, before?.stored.path);
    const save = async (grant: Grant, expected: number | undefined): Promise<boolean> => {
      const found = await find(place);
      // The grant of another login may have the same generation.
      if (found?.stored.generation !== expected || found?.stored.text !== before?.stored.text) return false;
      // An unreadable grant is not replaced.
      const old = found && (await decode(place, found.stored));
      const text = await seal(encodeGrant(grant, old?.plain), `grant:${place.id}`);
      if (grant.generation <= (expected ?? -1))
        throw new RangeError("a generation must be higher than the one it replaces");
      const over = prepare(place, found, old !== undefined && isSameLogin(old.grant, grant));
      if (over === "changed") return false;
      const content = { text, generation: grant.generation, expected: over };
      if (!files.publish(reserved, content)) {
        if (files.generation() !== over) return false;
        // No other save came first: another process swept the reserved file as a leftover, for example while this one slept.
        reserved = reserveIn(places, place, before?.stored.path);
        if (!files.publish(reserved, content)) return false;
      }
      // The grant is saved: what else fails is not reported.
      attempt(() => finish(place, found, over));
      return true;
    };
    return {
      save: onFiles(home, save),
      async release() {
        // A leftover file is swept later.
        discardFile(reserved);
        if (before === undefined) removeEmptyFolders(...foldersOf(place));
      },
    };
  };

  const list = async (filter: GrantFilter = {}, onUnusable: (error: AgentAuthError) => void = () => {}) => {
    const usable = async <T>(work: () => T | Promise<T>) => {
      try {
        return await work();
      } catch (cause) {
        const error = fileError(home, cause);
        if (!isAgentAuthError(error) || (error.class !== "store" && error.class !== "auth")) throw error;
        return onUnusable(error);
      }
    };
    // The earlier place first: what moves in the meantime is found in the other one.
    const found = new Map<string, Grant>();
    const readAt = async (id: string, stored: Stored | undefined) => {
      if (stored === undefined) return;
      const { grant } = await decode({ id }, stored);
      const other = found.get(id);
      if (other === undefined || !counts(other, grant)) found.set(id, grant);
    };
    for (const { id, files, seen } of places.listEarlier()) await usable(() => readAt(id, files.read(seen)));
    for (const server of places.servers(filter)) {
      for (const { id, files } of (await usable(() => places.in(server))) ?? []) {
        await usable(() => (checkPrivateFolder(files.folder) ? readAt(id, files.read()) : undefined));
      }
    }
    const sorted = [...found.keys()].sort();
    return sorted.flatMap((id) => found.get(id) ?? []).filter((grant) => matchesFilter(grant, filter));
  };

  return {
    read: onFiles(home, read),
    reserve: onFiles(home, reserve),
    save: onFiles(home, async (grant: Grant, expected: number | undefined) => {
      const reservation = await reserve(grant);
      try {
        return await reservation.save(grant, expected);
      } finally {
        await reservation.release();
      }
    }),
    remove: onFiles(home, async (key: GrantKey) => {
      const place = places.of(key);
      // The earlier place first: what moves in the meantime is removed from the other one.
      place.earlier.remove();
      place.files.remove();
      removeEmptyFolders(...foldersOf(place));
    }),
    list: onFiles(home, list),
  };
}

/** The record in each of the two places. The earlier place is read first: what moves in the meantime is in the other one. */
function look(places: GrantPlaces, place: GrantPlace): [own: Stored | undefined, earlier: Stored | undefined] {
  const readEarlier = (looks?: number) => {
    const seen = places.checkEarlier() ? place.earlier.generation(looks) : undefined;
    return seen === undefined ? undefined : place.earlier.read(seen);
  };
  const earlier = readEarlier(1);
  const own = places.check(place) ? place.files.read() : undefined;
  return [own, earlier ?? (own === undefined ? readEarlier() : undefined)];
}

/** Whether a grant counts where another place has the other one. */
function counts(grant: Grant, other: Grant): boolean {
  if (grant.signedInAt !== other.signedInAt) return grant.signedInAt > other.signedInAt;
  return grant.generation > other.generation;
}

function isSameLogin(one: Grant, other: Grant): boolean {
  return one.signedInAt === other.signedInAt && one.issuer === other.issuer;
}

function reserveIn(places: GrantPlaces, place: GrantPlace, before: string | undefined): string {
  for (let tries = 1; ; tries++) {
    try {
      makePrivateFolder(place.files.folder);
      places.check(place);
      return place.files.reserve(RESERVED_BYTES, before);
    } catch (error) {
      const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
      if (code !== "ENOENT" || tries === MAX_FOLDER_TRIES) throw error;
    }
  }
}

/**
 * Prepares the place of a grant for a save over a record.
 *
 * A refresh moves the record that it replaces before it publishes the next one: an earlier version that runs beside must
 * never find a refresh token that is used up, wherever this process is killed. It cannot be in the middle of a refresh of
 * its own, because that has the same lease. It can be during a login, so that a login leaves the record in its place
 * until the new one is published.
 *
 * @returns the generation to publish over
 */
function prepare(place: GrantPlace, found: Found | undefined, isRefresh: boolean): number | undefined | "changed" {
  const { files, earlier } = place;
  if (!found?.isEarlier) return found?.stored.generation;
  if (found.replaced) files.discard(found.replaced.generation);
  if (!isRefresh) return undefined;
  syncAbove(place);
  return files.adopt(earlier, found.stored) ? found.stored.generation : "changed";
}

/** Makes a first record durable, with its folders, and removes the one that it replaces in the earlier place. */
function finish(place: GrantPlace, found: Found | undefined, over: number | undefined): void {
  if (over === undefined) syncAbove(place);
  const old = found?.isEarlier && over === undefined ? found.stored : found?.isEarlier ? undefined : found?.replaced;
  if (old) place.earlier.discard(old.generation);
}

/** Makes the names of the folders of a grant durable. */
function syncAbove(place: GrantPlace): void {
  const [, server] = foldersOf(place);
  const grants = dirname(server);
  for (const folder of [server, grants, dirname(grants)]) syncIfThere(folder);
}

/** The folders that a grant may leave empty, the innermost first. */
function foldersOf({ files: { folder } }: GrantPlace): [string, string] {
  return [folder, dirname(folder)];
}
