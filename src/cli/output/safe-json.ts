/** JSON that is safe to show and parses back equal: control characters are `\u`-escaped. */

import { writeExactJson } from "../../mcp/exact-json.js";
import { MASK } from "../../redact.js";
import { project, toPlain } from "./value.js";

export interface JsonStyle {
  /** Prints a `client_secret` unmasked. */
  reveal: boolean;
  /** Keeps only these paths of each item. */
  paths?: readonly string[] | undefined;
  /** Spaces per level; none for one line. */
  indent?: number | undefined;
}

// JSON.stringify escapes C0 and lone surrogates itself; "\n" occurs only between its tokens.
const UNUSUAL = /[^\n\x20-\x7e]+/g;
// A stack of more than eight marks would overlap the neighbouring lines.
const makeUnsafe = () =>
  /[\x7f-\x9f\p{Cf}\p{Cn}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u{1d159}]|[^\S\n ]|\p{M}{9,}/gu;
// Made at its first use: reading a pattern of Unicode properties takes milliseconds.
let unsafe: RegExp | undefined;
const SECRET_KEY = '"client_secret":';
const MASKED = ["null", `"${MASK}"`];

/** The text of JSON with every control, bidi and invisible character as a `\u` escape. */
export function escapeJson(json: string): string {
  // The exact class is slow, and most of the text does not need it.
  return json.replace(UNUSUAL, (run) => {
    unsafe ??= makeUnsafe();
    return run.replace(unsafe, (found) => found.split("").map(escapeUnit).join(""));
  });
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** The JSON of each item, joined; one check per batch finds what to mask or escape. */
export function stringifyItems(items: readonly unknown[], separator: string, style: JsonStyle): string {
  const { paths, reveal } = style;
  const picked = paths === undefined ? items : items.map((item) => project(item, paths));
  const text = join(reveal ? picked.map((item) => toPlain(item, true)) : picked, separator, style);
  // Items from the SDK mask themselves; only the others need a copy.
  if (reveal || !hasBareSecret(text)) return escapeJson(text);
  return escapeJson(
    join(
      picked.map((item) => toPlain(item, false)),
      separator,
      style,
    ),
  );
}

/** Searched as a text, which takes a fraction of the time of a pattern. */
function hasBareSecret(json: string): boolean {
  for (let at = json.indexOf(SECRET_KEY); at >= 0; at = json.indexOf(SECRET_KEY, at)) {
    at += SECRET_KEY.length;
    const value = json[at] === " " ? at + 1 : at;
    if (!MASKED.some((masked) => json.startsWith(masked, value))) return true;
  }
  return false;
}

function join(items: readonly unknown[], separator: string, style: JsonStyle): string {
  return items.map((item) => writeExactJson(item, style.indent) ?? "null").join(separator);
}
