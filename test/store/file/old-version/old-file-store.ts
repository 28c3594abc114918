import type { GrantStore } from "../../../../src/oauth/grant/grant-store.js";
import * as old from "./file-store.gen.js";

/** The file store of an earlier version, which knows only `grants/<id>.<generation>.json`. */
export const oldFileStore = old.fileStore as (folder: string) => GrantStore;
