// `keepNames` stores the name of each function, a twelfth of all chunks. The frames of these packages in a stack trace
// are not what explains an error, and they read no name of a function.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const PACKAGES = ["@modelcontextprotocol", "yaml", "zod"];
const OF_PACKAGES = new RegExp(`(?:^|/)node_modules/(?:${PACKAGES.join("|")})/[^:]*$`);
/** A class is named by `this`: errors read their own name. */
const NAMED = /\b__name\((?!this\b)([\w$]+),"([\w$]+)"\)/g;
const WORD = /[\w$]+/g;

/**
 * Removes the names of functions that only these packages have.
 *
 * @param {string} source of a chunk, with whitespace removed and identifiers as they were
 * @param {readonly string[]} inputs the paths of its modules
 * @param {string} root the folder of those paths
 */
export function removeNames(source, inputs, root) {
  const others = inputs.filter((path) => !OF_PACKAGES.test(path) && !path.includes(":"));
  if (others.length === inputs.length) return source;
  const kept = new Set(others.flatMap((path) => readFileSync(join(root, path), "utf8").match(WORD) ?? []));
  return source.replace(NAMED, (call, target, name) => (kept.has(name) ? call : target));
}
