import { quote } from "../redact.js";

/**
 * A check of `strict`. Each makes an error of what is otherwise read as it is:
 *
 * - `shape`: an answer or an item lacks a required field, or a field has another form than is documented
 * - `order`: the answer does not name the requested order, or the items are in another one
 * - `drift`: the list changes while it is read
 * - `nulls`: an optional field is absent or null; includes `shape`
 * - `fields`: there is a field that is not documented; includes `shape`
 */
export type Check = "shape" | "order" | "drift" | "nulls" | "fields";

const STRICT: readonly Check[] = ["shape", "order", "drift"];
const CHECKS: readonly Check[] = [...STRICT, "nulls", "fields"];

/** The checks of the `strict` option: `true` are shape, order and drift. @throws TypeError for a name that is none */
export function checksOf(strict: boolean | "all" | readonly Check[] = false): ReadonlySet<Check> {
  const checks: readonly Check[] =
    strict === "all" ? CHECKS : strict === true ? STRICT : strict === false ? [] : strict;
  const unknown = checks.find((check) => !CHECKS.includes(check));
  if (unknown !== undefined) throw new TypeError(`strict: ${quote(unknown)} is none of ${CHECKS.join(", ")}`);
  return new Set(checks);
}
