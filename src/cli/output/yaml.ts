/** `-o yaml`: a sequence that YAML 1.1 and 1.2 readers parse equally. */

import { isRecord, maskSecret, project } from "./value.js";
import type { FormatWriter, ObjectContext, WriterContext } from "./writer-types.js";

/** Streams a sequence, item by item. */
export function yamlWriter({ io, paths, reveal }: WriterContext): FormatWriter {
  let empty = true;
  return {
    async write(items) {
      if (items.length === 0) return;
      empty = false;
      await io.stdout.write(toYaml(paths === undefined ? items : items.map((item) => project(item, paths)), reveal));
    },
    async end() {
      if (empty) await io.stdout.write("[]\n");
    },
  };
}

/** One mapping. */
export function yamlObject(value: object, { reveal }: ObjectContext): string {
  return toYaml(value, reveal);
}

/** A value as YAML: ambiguous strings quoted, and every control, bidi and invisible character as an escape. */
function toYaml(value: unknown, reveal: boolean): string {
  const line = inlineText(value);
  return line === undefined ? blockText(value as object, { indent: "", lead: "", reveal }) : `${line}\n`;
}

interface BlockStyle {
  indent: string;
  /** What the first line begins with, in place of the indent. */
  lead: string;
  reveal: boolean;
}

/** The lines of a sequence or a mapping that is not empty. No tree is built: that would double the time. */
function blockText(value: object, style: BlockStyle): string {
  const shown = shownOf(value);
  return Array.isArray(shown) ? sequenceText(shown, style) : mappingText(shown as Record<string, unknown>, style);
}

function sequenceText(items: readonly unknown[], { indent, lead, reveal }: BlockStyle): string {
  let text = "";
  for (const item of items) {
    text += `${text === "" ? lead : indent}- `;
    const line = inlineText(item);
    if (line === undefined) text += blockText(item as object, { indent: `${indent}  `, lead: "", reveal });
    else text += `${line}\n`;
  }
  return text;
}

/** The longest key that every reader takes on the line of its value (YAML 1.2.2, section 8.2.2), with its quotes. */
const MAX_IMPLICIT_KEY = 1000;

function mappingText(fields: Readonly<Record<string, unknown>>, { indent, lead, reveal }: BlockStyle): string {
  const inner = `${indent}  `;
  let text = "";
  for (const key of Object.keys(fields)) {
    const value = maskSecret(key, fields[key], reveal);
    if (value === undefined) continue;
    const name = KEY.test(key) && !WORDS.has(key.toLowerCase()) ? key : quoteString(key);
    text += text === "" ? lead : indent;
    text += name.length <= MAX_IMPLICIT_KEY ? `${name}:` : `? ${name}\n${indent}:`;
    const line = inlineText(value);
    if (line === undefined) text += `\n${blockText(value as object, { indent: inner, lead: inner, reveal })}`;
    else text += ` ${line}\n`;
  }
  return text;
}

/** A value that has one line; `undefined` for a sequence or a mapping that is not empty. */
function inlineText(value: unknown): string | undefined {
  if (typeof value === "string") return isPlain(value) ? value : quoteString(value);
  if (typeof value === "number") return numberText(value);
  if (typeof value !== "object" || value === null) return String(value ?? null);
  const shown = shownOf(value);
  if (typeof shown !== "object" || shown === null) return inlineText(shown);
  if (Array.isArray(shown)) return shown.length === 0 ? "[]" : undefined;
  return Object.values(shown).every((part) => part === undefined) ? "{}" : undefined;
}

/** Plain data as it is; of an instance of a class, what it shows of itself. */
function shownOf(value: object): unknown {
  return !isRecord(value) && "toJSON" in value && typeof value.toJSON === "function" ? value.toJSON() : value;
}

/** YAML 1.1 wants a dot in a number with an exponent, and has words for those that JSON has not. */
function numberText(value: number): string {
  if (Number.isNaN(value)) return ".nan";
  if (!Number.isFinite(value)) return value > 0 ? ".inf" : "-.inf";
  const text = Object.is(value, -0) ? "-0.0" : String(value);
  return text.includes("e") ? text.replace(/^(-?\d+)e/, "$1.0e") : text;
}

// Words of YAML 1.1 or 1.2 that are no strings without quotes.
const WORDS = new Set(["y", "n", "yes", "no", "on", "off", "true", "false", "null"]);
const KEY = /^[A-Za-z_]\w*$/;
// Begins with a letter, and has nothing that is a sign of YAML where it stands.
const PLAIN = /^[A-Za-z\xc0-\u024f](?:[\w\xc0-\u024f ()/.,;+=@'-]|:(?=\S))*$/;
const LAST = /[ :-]$/;
const IPV4 = /^\d{1,3}(?:\.\d{1,3}){3}$/;

function isPlain(text: string): boolean {
  return (PLAIN.test(text) && !LAST.test(text) && !WORDS.has(text.toLowerCase())) || IPV4.test(text);
}

const ASCII = /^[\x20-\x7e]*$/;
// A stack of more than eight marks would overlap the neighbouring lines.
const UNSAFE =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Cn}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u{1d159}]|[^\S ]|\p{M}{9,}/gu;

/** Between double quotes any character can be written as an escape, so that the text has one line. */
function quoteString(text: string): string {
  const escaped = text.replace(/["\\]/g, "\\$&");
  if (ASCII.test(escaped)) return `"${escaped}"`;
  return `"${escaped.replace(UNSAFE, (found) => [...found].map(escapeCharacter).join(""))}"`;
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escapeCharacter(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16);
  if (code.length <= 2) return SHORT_ESCAPES[character] ?? `\\x${code.padStart(2, "0")}`;
  return code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
}
