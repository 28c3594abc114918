import { hash } from "node:crypto";
import { dirname, join, sep } from "node:path";
import { setImmediate as giveWay } from "node:timers/promises";
import type { AgentAuthError } from "../../errors.js";
import { CodecError, decodeGrant, encodeGrant } from "../../oauth/model/codec.js";
import type { ConnectionQuery } from "../../oauth/model/connection.js";
import type { Grant, GrantKey } from "../../oauth/model/grant.js";
import { type GrantFilter, type GrantStore, matchesFilter, type Reservation } from "../../oauth/model/grant-store.js";
import { connectionPages, namesAfter, readUsable } from "../../oauth/model/grant-summary.js";
import { tryStat } from "../../platform.js";
import {
  attempt,
  checkPrivateFolder,
  checkPrivateFolders,
  discardFile,
  listFolder,
  makePrivateFolder,
  moveEmptyAway,
  type OnEmptyFile,
  publishPrivateFile,
  readPublishedFile,
  removeEmptyFolders,
  removeFile,
  reservePrivateFile,
  syncFolder,
} from "../private/private-file.js";
import { onFiles } from "../store-error.js";

const NAME = /^(\d{1,15})\.json$/;
const LEFTOVER_MS = 10 * 60_000;
/** A large folder is read in parts, and a file that is replaced during the read may be in none of them. */
const MAX_LOOKS = 3;

export interface Stored {
  readonly generation: number;
  readonly text: string;
  readonly path: string;
}

/**
 * The files of one record in a folder, named `<generation>.json`. A generation is published under a name that
 * only one process can give to a finished file, and then the generation before it is removed: the highest one is
 * complete at every moment, and it is the record.
 */
export class VersionedFiles {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** The record; undefined when there is none. @param onEmpty as {@link moveEmptyAway} has it */
  read(onEmpty?: OnEmptyFile): Stored | undefined {
    for (let generation = this.generation(); generation !== undefined; generation = this.generation()) {
      const path = this.#path(generation);
      const text = readPublishedFile(path);
      // A file that is gone was replaced after it was seen, or renamed.
      if (text !== undefined && !moveEmptyAway(path, text, onEmpty)) return { generation, text, path };
    }
    return undefined;
  }

  /** The generation that is stored, without reading it. */
  generation(): number | undefined {
    return this.#all()[0];
  }

  /** Reserves disk space for a record of up to `bytes`; the path is for {@link publish}. */
  reserve(bytes: number, before: string | undefined): string {
    this.#sweep();
    return reservePrivateFile(join(this.folder, "next"), bytes, before);
  }

  /**
   * Makes `generation` the record in place of `expected`.
   *
   * @returns false when something else is stored than was expected
   */
  publish(reserved: string, content: { text: string; generation: number; expected: number | undefined }): boolean {
    const { text, generation, expected } = content;
    if (this.generation() !== expected) return false;
    const path = this.#path(generation);
    if (!publishPrivateFile(reserved, path, text)) return false;
    const found = this.#afterPublishing();
    if (found === undefined) return true;
    const wasRemoved = expected !== undefined && !found.includes(expected) && (found[0] ?? 0) <= generation;
    if (wasRemoved || (expected === undefined && found.some((other) => other < generation))) {
      // The record was removed between the read and the link, or another process started a new one: ours is not published.
      removeFile(path);
      return false;
    }
    for (const other of found) if (other < generation) discardFile(this.#path(other));
    return true;
  }

  /** Removes the record, after its reserved files, which could otherwise be published in between. */
  remove(): void {
    // Twice: a process that seals the record begins before its name is gone, and could give it back after the first time.
    for (let time = 1; time <= 2; time++) {
      for (const name of listFolder(this.folder)) {
        if (name.endsWith(".tmp")) removeFile(join(this.folder, name));
      }
      for (let found = this.#all(); found.length > 0; found = this.#all()) {
        for (const generation of found) removeFile(this.#path(generation));
      }
    }
    syncFolder(this.folder);
  }

  /** The stored generations; undefined where the folder cannot be read, which must not hide that a record was published. */
  #afterPublishing(): number[] | undefined {
    let found: number[] | undefined;
    attempt(() => {
      found = this.#all();
    });
    return found;
  }

  /** The stored generations, the highest first. */
  #all(): number[] {
    for (let look = 1; ; look++) {
      const names = listFolder(this.folder);
      const found = names.flatMap((name) => generationIn(name) ?? []);
      // The folder of a record that is being replaced is never empty.
      if (found.length > 0 || names.length === 0 || look >= MAX_LOOKS) return found.sort((a, b) => b - a);
    }
  }

  #path(generation: number): string {
    return `${this.folder}${sep}${generation}.json`;
  }

  /** A process that was killed leaves its temporary file; no save takes this long. */
  #sweep(): void {
    const before = Date.now() - LEFTOVER_MS;
    for (const name of listFolder(this.folder)) {
      if (!name.endsWith(".tmp")) continue;
      const stat = tryStat(join(this.folder, name));
      if (stat && stat.mtimeMs < before) discardFile(join(this.folder, name));
    }
  }
}

function generationIn(name: string): number | undefined {
  const number = NAME.exec(name)?.[1];
  return number === undefined ? undefined : Number(number);
}

/** How the file store opens and seals its files. */
export interface FileGrantTools {
  /** Opens a file, and seals it if it is not sealed yet. */
  open<T>(stored: Pick<Stored, "text" | "path">, name: string, decode: (text: string) => T): Promise<T>;
  seal(text: string, name: string): Promise<string>;
  readonly onEmptyFile: OnEmptyFile | undefined;
}

/** Enough for most grants; the space for the rest of a larger one is allocated when it is saved. */
const RESERVED_BYTES = 32 * 1024;
/** The files that are read before other work has its turn. */
const AT_ONCE = 100;
/** Another process may remove an empty folder between its creation and the first file in it. */
const MAX_FOLDER_TRIES = 10;

/** Grants in private folders, one folder each: reading one costs the same whatever else is stored. */
export function fileGrants(
  home: string,
  { open, seal, onEmptyFile }: FileGrantTools,
): Pick<GrantStore, "read" | "reserve" | "save" | "remove" | "list" | "connections"> {
  const places = new GrantPlaces(home);

  const decode = ({ id }: Pick<GrantPlace, "id">, stored: Stored) =>
    open(stored, `grant:${id}`, (plain) => ({ plain, grant: decodeStored(plain, id, stored.generation) }));

  const decodeStored = (text: string, id: string, generation: number): Grant => {
    const grant = decodeGrant(text);
    // A file that was copied or renamed by hand belongs to another login, and could never be saved over.
    if (grant.generation !== generation)
      throw new CodecError(`its generation is ${grant.generation}, unlike its name's`);
    if (grantId(grant) !== id) throw new CodecError("its name is that of another login");
    return grant;
  };

  const find = (place: GrantPlace): Stored | undefined =>
    places.check(place) ? place.files.read(onEmptyFile) : undefined;

  const read = async (key: GrantKey): Promise<Grant | undefined> => {
    const place = places.of(key);
    const stored = find(place);
    return stored && (await decode(place, stored)).grant;
  };

  const reserve = async (key: GrantKey): Promise<Reservation> => {
    const place = places.of(key);
    const { files } = place;
    const found = find(place);
    // This seals it, if it is not sealed yet: what another process seals before the save would look like another login.
    if (found) await decode(place, found);
    const before = find(place);
    let reserved = reserveIn(places, place, before?.path);
    const save = async (grant: Grant, expected: number | undefined): Promise<boolean> => {
      const stored = find(place);
      // The grant of another login may have the same generation.
      if (stored?.generation !== expected || stored?.text !== before?.text) return false;
      // An unreadable grant is not replaced.
      const old = stored && (await decode(place, stored));
      const text = await seal(encodeGrant(grant, old?.plain), `grant:${place.id}`);
      if (grant.generation <= (expected ?? -1))
        throw new RangeError("a generation must be higher than the one it replaces");
      const content = { text, generation: grant.generation, expected };
      if (!files.publish(reserved, content)) {
        if (files.generation() !== expected) return false;
        // No other save came first: another process swept the reserved file as a leftover, for example while this one slept.
        reserved = reserveIn(places, place, before?.path);
        if (!files.publish(reserved, content)) return false;
      }
      // The grant is saved: what else fails is not reported.
      if (expected === undefined) attempt(() => syncAbove(place));
      return true;
    };
    return {
      save: onFiles(home, save),
      async release() {
        // A leftover file is swept later.
        discardFile(reserved);
        if (before === undefined) removeEmptyFolders(...grantFolders(place));
      },
    };
  };

  const readAt = async ({ id, files }: Pick<GrantPlace, "id" | "files">): Promise<Grant | undefined> => {
    const stored = checkPrivateFolder(files.folder) ? files.read(onEmptyFile) : undefined;
    return stored && (await decode({ id }, stored)).grant;
  };

  /** The names of the places after the cursor of a query, in ascending order. Others have their turn between them. */
  const placesAfter = async function* (query: ConnectionQuery): AsyncGenerator<string> {
    const { cursor = "", onUnusable } = query;
    let count = 0;
    for (const server of places.servers(query)) {
      const read = onFiles(home, async () => places.in(server));
      for (const place of (await readUsable(read, onUnusable)) ?? []) {
        if (place <= cursor) continue;
        if (++count % AT_ONCE === 0) await giveWay();
        yield place;
      }
    }
  };

  const list = async (filter: GrantFilter = {}, onUnusable: (error: AgentAuthError) => void = () => {}) => {
    const found = new Map<string, Grant>();
    for await (const name of placesAfter({ ...filter, onUnusable })) {
      const place = places.named(name);
      const grant = await readUsable(
        onFiles(home, () => readAt(place)),
        onUnusable,
      );
      if (grant && matchesFilter(grant, filter)) found.set(place.id, grant);
    }
    return [...found].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, grant]) => grant);
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
      place.files.remove();
      removeEmptyFolders(...grantFolders(place));
    }),
    list: onFiles(home, list),
    connections: (query = {}) =>
      connectionPages(
        query,
        placesAfter(query),
        onFiles(home, (place: string) => readAt(places.named(place))),
      ),
  };
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

/** Makes the names of the folders of a grant durable. */
function syncAbove(place: GrantPlace): void {
  const [, server] = grantFolders(place);
  const grants = dirname(server);
  for (const folder of [server, grants, dirname(grants)]) syncFolder(folder);
}

/** The folders that a grant may leave empty, the innermost first. */
function grantFolders({ files: { folder } }: GrantPlace): [string, string] {
  return [folder, dirname(folder)];
}

/** The folder of the grants: `<profile><profile and server>/<profile, server and account>/<generation>.json`. */
export const GRANTS = "grants";

const ID = /^[0-9a-f]{40}$/;
/** How much of the name of a server's folder is that of its profile. */
const PROFILE_DIGITS = 20;
/** A folder may change without a new time for as long as the coarsest clocks of file systems take. */
const SETTLED_MS = 3000;

export interface GrantPlace {
  /** The identity of the grant, which its sealed text is bound to. */
  readonly id: string;
  /** The names of the folders in {@link GRANTS}. */
  readonly below: readonly [server: string, id: string];
  readonly files: VersionedFiles;
}

/** The names of the files of grants. They show nothing about a server or an account. */
class GrantPlaces {
  /** The path of {@link GRANTS}. */
  readonly folder: string;
  #latest: { changedAt: number; names: readonly string[] } | undefined;

  constructor(home: string) {
    this.folder = join(home, GRANTS);
  }

  of(key: GrantKey): GrantPlace {
    const [server, id] = [serverName(key.profile, key.server), grantId(key)];
    return { id, below: [server, id], files: new VersionedFiles(join(this.folder, server, id)) };
  }

  /**
   * The names of the folders of servers in which there may be grants after the cursor, in ascending order: of one server of a
   * profile, of a profile, or all.
   */
  servers({ profile, server, cursor = "" }: ConnectionQuery): string[] {
    if (!checkPrivateFolders(this.folder)) return [];
    if (profile !== undefined && server !== undefined) return [serverName(profile, server)];
    // The folder that the cursor is in comes once more: it is after the cursor without its last digits.
    return namesAfter(this.#servers(), profile === undefined ? "" : profileDigits(profile), cursor.slice(0, 39));
  }

  /** All folders of servers. They are remembered while the folder that they are in stays as it is. */
  #servers(): readonly string[] {
    const changedAt = tryStat(this.folder)?.mtimeMs ?? 0;
    if (this.#latest?.changedAt === changedAt) return this.#latest.names;
    const names = idsIn(this.folder);
    this.#latest = Date.now() - changedAt > SETTLED_MS ? { changedAt, names } : undefined;
    return names;
  }

  /** The names of the places of the grants of a server, whose folder is checked, in ascending order. */
  in(server: string): string[] {
    const folder = join(this.folder, server);
    return checkPrivateFolder(folder) ? idsIn(folder).map((id) => `${server}.${id}`) : [];
  }

  named(name: string): Pick<GrantPlace, "id" | "files"> {
    const [server = "", id = ""] = name.split(".");
    return { id, files: new VersionedFiles(`${this.folder}${sep}${server}${sep}${id}`) };
  }

  /** Refuses folders of a place that others can enter. @returns whether the innermost one is there */
  check({ below }: Pick<GrantPlace, "below">): boolean {
    return checkPrivateFolders(this.folder, ...below);
  }
}

function idsIn(folder: string): string[] {
  return listFolder(folder)
    .filter((name) => ID.test(name))
    .sort();
}

/** What the names of the folders of a profile begin with: a filter by profile opens no files of others. */
export function profileDigits(profile: string): string {
  return hashParts(profile).slice(0, PROFILE_DIGITS);
}

function serverName(profile: string, server: string): string {
  return `${profileDigits(profile)}${hashParts(profile, server).slice(PROFILE_DIGITS)}`;
}

/** The identity of a grant, as the name of its files. */
function grantId({ profile, server, account }: GrantKey): string {
  return account === undefined ? hashParts(profile, server) : hashParts(profile, server, account);
}

/** A name that shows nothing about its parts. */
export function hashParts(...parts: string[]): string {
  return hash("sha256", parts.join("\n")).slice(0, 40);
}
