import { quote } from "../redact.js";

/**
 * How `sorting` is sent, which the service does not document:
 *
 * - `deep`: `sorting[field]=title&sorting[direction]=asc`, like the pagination parameters
 * - `json`: `sorting={"field":"title","direction":"asc"}`
 * - `field:direction`: `sorting=title:asc`
 */
export type SortingEncoding = "deep" | "json" | "field:direction";

/** The values of the `sorting` option. */
export const SORTING_ENCODINGS: readonly SortingEncoding[] = ["deep", "json", "field:direction"];

/**
 * Serialises the query of a list. Names and values are percent-encoded: strict servers refuse raw brackets.
 *
 * @throws TypeError for an encoding that is none
 */
export function querySerializer(encoding: SortingEncoding = "deep"): (query: Record<string, unknown>) => string {
  if (!SORTING_ENCODINGS.includes(encoding))
    throw new TypeError(`sorting ${quote(encoding)} is none of ${SORTING_ENCODINGS.join(", ")}`);
  return (query) =>
    Object.entries(query)
      .flatMap(([name, value]) => (isPresent(value) ? parameters(name, value, encoding) : []))
      .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
      .join("&");
}

function parameters(name: string, value: unknown, encoding: SortingEncoding): [name: string, value: string][] {
  if (typeof value !== "object" || value === null) return [[name, String(value)]];
  if (name === "sorting" && encoding === "json") return [[name, JSON.stringify(value)]];
  const members = Object.entries(value).filter(([, member]) => isPresent(member));
  if (name !== "sorting" || encoding === "deep")
    return members.map(([key, member]) => [`${name}[${key}]`, String(member)]);
  const { field = "", direction } = Object.fromEntries(members);
  return [[name, isPresent(direction) ? `${field}:${direction}` : String(field)]];
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null;
}
