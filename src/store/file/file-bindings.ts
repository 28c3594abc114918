import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  type BindingKey,
  type BindingStore,
  type ClientBinding,
  isSameBinding,
} from "../../oauth/model/client-binding.js";
import { CodecError, decodeBinding, encodeBinding } from "../../oauth/model/codec.js";
import type { GrantStore } from "../../oauth/model/grant-store.js";
import {
  checkPrivateFolders,
  listFolder,
  readPrivateFile,
  removeFile,
  writePrivateFile,
} from "../private/private-file.js";
import { onFiles } from "../store-error.js";

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
export function fileBindings(folder: string, { open, seal, lease, idOf }: FileBindingTools): BindingStore {
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
