import { basename } from "node:path";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import { fileStore } from "../../../src/store/file/file.js";
import { madeGrant } from "../../helpers/grant.js";
import { grantFiles } from "../../helpers/grant-files.js";
import { folder } from "../stores.js";

/** The key of the grant that {@link madeGrant} makes. */
export const KEY = { profile: "default", server: "https://mcp.example/mcp" };

/** The names of the files of all grants. */
export const filesOf = (home: string) => grantFiles(home).map((path) => basename(path));

/** A store with one grant of generation 1. */
export async function storeWithGrant(): Promise<{ home: string; store: GrantStore }> {
  const home = folder();
  const store = fileStore(home);
  await store.save(madeGrant(), undefined);
  return { home, store };
}
