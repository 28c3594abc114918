/** A settings file as it was read; without a text when it is still to be written. */
export interface SettingsFile {
  path: string;
  text: string;
}

/**
 * Where in a settings file a setting is, for messages: the file, and the line of the innermost key.
 *
 * @param keys from the outermost in; they are looked for one after the other, as the file has them
 */
export function placeIn({ path, text }: SettingsFile, ...keys: string[]): string {
  let at = 0;
  for (const key of keys) {
    at = keyAt(text, key, at);
    // The key is written with escapes: the file alone is named.
    if (at < 0) return path;
  }
  return keys.length === 0 ? path : `line ${text.slice(0, at).split("\n").length} of ${path}`;
}

/** Where a member of this name begins; the same word as a value is none. */
function keyAt(text: string, key: string, from: number): number {
  const name = JSON.stringify(key);
  for (let at = text.indexOf(name, from); at >= 0; at = text.indexOf(name, at + 1)) {
    if (/^\s*:/.test(text.slice(at + name.length, at + name.length + 100))) return at;
  }
  return -1;
}
