import { hash } from "node:crypto";
import { join, sep } from "node:path";
import type { GrantKey } from "../../oauth/model/grant.js";
import type { GrantFilter } from "../../oauth/model/grant-store.js";
import { checkPrivateFolder, checkPrivateFolders, listFolder } from "../private/private-file.js";
import { VersionedFiles } from "./versioned-files.js";

/** The folder of the grants: `<profile and server>/<profile, server and account>/<generation>.json`. */
export const GRANTS = "grants";

const ID = /^[0-9a-f]{40}$/;

/** Where the files of one grant are. */
export interface GrantPlace {
  /** The identity of the grant, which its sealed text is bound to. */
  readonly id: string;
  /** The names of the folders in {@link GRANTS}. */
  readonly below: readonly [server: string, id: string];
  readonly files: VersionedFiles;
}

/** The names of the files of grants. They show nothing about a server or an account. */
export class GrantPlaces {
  /** The path of {@link GRANTS}. */
  readonly folder: string;

  constructor(home: string) {
    this.folder = join(home, GRANTS);
  }

  /** The place of a grant. */
  of(key: GrantKey): GrantPlace {
    const [server, id] = [digest(key.profile, key.server), grantId(key)];
    return { id, below: [server, id], files: new VersionedFiles(join(this.folder, server, id)) };
  }

  /** The names of the folders of servers in which there may be grants: of one server of a profile, or all. */
  servers({ profile, server }: GrantFilter): string[] {
    if (!checkPrivateFolders(this.folder)) return [];
    return profile === undefined || server === undefined ? idsIn(this.folder) : [digest(profile, server)];
  }

  /** The places of the grants of a server, whose folder is checked. */
  in(server: string): Pick<GrantPlace, "id" | "files">[] {
    const folder = join(this.folder, server);
    if (!checkPrivateFolder(folder)) return [];
    return idsIn(folder).map((id) => ({ id, files: new VersionedFiles(`${folder}${sep}${id}`) }));
  }

  /** Refuses folders of a place that others can enter. @returns whether the innermost one is there */
  check({ below }: Pick<GrantPlace, "below">): boolean {
    return checkPrivateFolders(this.folder, ...below);
  }
}

function idsIn(folder: string): string[] {
  return listFolder(folder).filter((name) => ID.test(name));
}

/** The identity of a grant, as the name of its files. */
export function grantId({ profile, server, account }: GrantKey): string {
  return account === undefined ? digest(profile, server) : digest(profile, server, account);
}

/** A name that shows nothing about its parts. */
export function digest(...parts: string[]): string {
  return hash("sha256", parts.join("\n")).slice(0, 40);
}
