import { dirname, relative } from "node:path";

/** The specifier with which the module in one file imports another file. */
export function specifierOf(from, to) {
  const path = relative(dirname(from), to).replaceAll("\\", "/");
  return path.startsWith(".") ? path : `./${path}`;
}
