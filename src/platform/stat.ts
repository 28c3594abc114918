import { lstatSync, type Stats, statSync } from "node:fs";
import { codeOf } from "./contention.js";

/**
 * What a path leads to; undefined where there is nothing. A path below a file is an error, as one below a folder that
 * cannot be entered is: with `throwIfNoEntry: false`, Node 22 and later take it for a missing one.
 */
export function statOf(path: string): Stats | undefined {
  return found(() => statSync(path));
}

/** {@link statOf} of the path itself, which may be a link. */
export function linkStatOf(path: string): Stats | undefined {
  return found(() => lstatSync(path));
}

function found(stat: () => Stats): Stats | undefined {
  try {
    return stat();
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
