/** YAML of plain values, which needs no document tree: a seventh of its time. */

import { MASK } from "../../redact.js";

// A word of YAML 1.1 or 1.2 that is no string without quotes.
const WORDS = new Set(["y", "n", "yes", "no", "on", "off", "true", "false", "null"]);
const KEY = /^[A-Za-z_]\w*$/;
// Begins with a letter, and has nothing that is a sign of YAML where it stands.
const TEXT = /^[A-Za-z\xc0-\u024f](?:[\w\xc0-\u024f ()/.,;+=@-]|:(?=\S))*$/;
const LAST = /[ :-]$/;
const IPV4 = /^\d{1,3}(?:\.\d{1,3}){3}$/;
const DIGITS = /^\d+$/;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/;

/**
 * A sequence of items as YAML, exactly as {@link toYaml} writes it.
 *
 * @param items plain data
 * @returns undefined where a value needs quotes, escapes or a notation of its own
 */
export function plainYaml(items: readonly unknown[]): string | undefined {
  const lines: string[] = [];
  return sequence(items, "", lines) ? `${lines.join("\n")}\n` : undefined;
}

function sequence(items: readonly unknown[], indent: string, lines: string[]): boolean {
  return items.every((item) => {
    const text = inline(item);
    if (text !== undefined) return lines.push(`${indent}- ${text}`) > 0;
    if (!isPlainObject(item)) return false;
    const first = lines.length;
    if (!mapping(item, `${indent}  `, lines)) return false;
    lines[first] = `${indent}- ${(lines[first] ?? "").slice(indent.length + 2)}`;
    return true;
  });
}

function mapping(value: object, indent: string, lines: string[]): boolean {
  return Object.entries(value).every(([key, part]) => {
    if (!KEY.test(key) || WORDS.has(key.toLowerCase())) return false;
    const text = inline(part);
    lines.push(`${indent}${key}:${text === undefined ? "" : ` ${text}`}`);
    if (text !== undefined) return true;
    if (Array.isArray(part)) return sequence(part, `${indent}  `, lines);
    return isPlainObject(part) && mapping(part, `${indent}  `, lines);
  });
}

/** A value that stands on the line of its key. */
function inline(value: unknown): string | undefined {
  if (typeof value === "string") return isPlain(value) ? value : isQuoted(value) ? `"${value}"` : undefined;
  if (typeof value === "number") return isPlainNumber(value) ? String(value) : undefined;
  if (value === null || typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return value.length === 0 ? "[]" : undefined;
  return isPlainObject(value) && Object.keys(value).length === 0 ? "{}" : undefined;
}

/** No instance of a class, which says itself what is shown of it. */
function isPlainObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function isPlain(text: string): boolean {
  return (TEXT.test(text) && !LAST.test(text) && !WORDS.has(text.toLowerCase())) || IPV4.test(text);
}

function isQuoted(text: string): boolean {
  return DIGITS.test(text) || text === MASK || WORDS.has(text.toLowerCase());
}

function isPlainNumber(value: number): boolean {
  return NUMBER.test(String(value)) && !Object.is(value, -0);
}
