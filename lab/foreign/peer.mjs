// What the files in peers/ are made of. A peer is a file there; each of its `rows` is one set-up of a foreign program:
//
//   name     how it is selected and printed
//   quick    whether it is part of every run of .ci/run
//   start    starts it, and returns where it is: { url, version, tool, says, revoked, close }; throws NotHere where this
//            machine cannot have it. It loads its packages itself: the runner reads every peer, on the oldest Node
//   browse   what the user does in the browser, if that is more than to follow redirects; gets a Browser and the address
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const folder = dirname(fileURLToPath(import.meta.url));
export const modules = join(folder, "node_modules");

/** A peer that this machine cannot have: its row is left out, and the reason is printed. */
export class NotHere extends Error {}

/** The installed version of a package of this lab. */
export function versionOf(name) {
  return JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8")).version;
}

/** Listens on a free port of this machine. */
export async function listen(server) {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${server.address().port}`;
}
