import { isJsonObject, parseStrictJson } from "../../http/strict-json.js";
import { parseUrl } from "../../http/url.js";
import { quote, Secret } from "../../redact.js";

/** The schema that is written; a file of another one is not touched. */
const SCHEMA = 1;

/** Why a stored text cannot be used. */
export class CodecError extends Error {
  override readonly name = "CodecError";
}

export type Members = Record<string, unknown>;
export type Reader<T> = (members: Members, name: string) => T;
export type Readers<T> = { [K in keyof T]-?: Reader<T[K]> };

export function encode(members: Members): string {
  return `${JSON.stringify(withSchema(members), null, 2)}\n`;
}

export function withSchema(members: Members): Members {
  return { schema: SCHEMA, ...revealed(members) };
}

/** The members with their secrets in the clear. */
export function revealed(members: Members): Members {
  const reveal = (value: unknown) =>
    value instanceof Secret ? value.reveal() : isJsonObject(value) ? revealed(value) : value;
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, reveal(value)]));
}

export function decode(text: string, kind: string): Members {
  return membersOf(parse(text), kind);
}

function parse(text: string): unknown {
  try {
    return parseStrictJson(text);
  } catch (cause) {
    throw new CodecError(`it is not valid JSON: ${cause instanceof Error ? cause.message : ""}`);
  }
}

export function membersOf(value: unknown, kind: string): Members {
  const members = isJsonObject(value) ? value : {};
  if (members["schema"] !== SCHEMA) {
    throw new CodecError(`its schema is ${quote(members["schema"])}, and this version reads ${SCHEMA}`);
  }
  if (members["kind"] !== kind) throw new CodecError(`it contains no ${kind}`);
  return members;
}

/** Reads every member of an object, each by its reader. */
export function readMembers<T>(members: Members, readers: Readers<T>): T {
  const found: Partial<T> = {};
  for (const name of Object.keys(readers) as (keyof T & string)[]) found[name] = readers[name](members, name);
  return found as T;
}

export function readObject(members: Members, name: string): Members {
  const value = members[name];
  if (isJsonObject(value)) return value;
  throw new CodecError(`${name} is not an object`);
}

export function readString(members: Members, name: string): string {
  const value = members[name];
  if (typeof value === "string") return value;
  throw new CodecError(`${name} is not a string`);
}

export function readOptional(members: Members, name: string): string | undefined {
  return members[name] === undefined ? undefined : readString(members, name);
}

export function readRequiredSecret(members: Members, name: string): Secret {
  return new Secret(readString(members, name));
}

export function readSecret(members: Members, name: string): Secret | undefined {
  const value = readOptional(members, name);
  return value === undefined ? undefined : new Secret(value);
}

export function readNumber(members: Members, name: string): number | undefined {
  const value = members[name];
  if (value === undefined || typeof value === "number") return value;
  throw new CodecError(`${name} is not a number`);
}

/** An absent number counts as 0. */
export function readCount(members: Members, name: string): number {
  return readNumber(members, name) ?? 0;
}

export function readNumbers(members: Members, name: string): number[] {
  const value = members[name] ?? [];
  if (Array.isArray(value) && value.every((one): one is number => Number.isFinite(one))) return value;
  throw new CodecError(`${name} is not a list of numbers`);
}

export function readStrings(members: Members, name: string): string[] {
  return readOptionalStrings(members, name) ?? [];
}

export function readRequiredStrings(members: Members, name: string): string[] {
  const value = members[name];
  if (Array.isArray(value) && value.every((one): one is string => typeof one === "string")) return value;
  throw new CodecError(`${name} is not a list of strings`);
}

export function readOptionalStrings(members: Members, name: string): string[] | undefined {
  return members[name] === undefined ? undefined : readRequiredStrings(members, name);
}

export function readBoolean(members: Members, name: string): boolean {
  const value = members[name];
  if (typeof value === "boolean") return value;
  throw new CodecError(`${name} is neither true nor false`);
}

export function readOptionalBoolean(members: Members, name: string): boolean | undefined {
  return members[name] === undefined ? undefined : readBoolean(members, name);
}

/** An object of strings. */
export function readOptionalTexts(members: Members, name: string): Record<string, string> | undefined {
  if (members[name] === undefined) return undefined;
  const texts = readObject(members, name);
  return Object.fromEntries(Object.keys(texts).map((one) => [one, readString(texts, one)]));
}

export function readUrl(members: Members, name: string): string {
  const value = readString(members, name);
  if (parseUrl(value) !== undefined) return value;
  throw new CodecError(`${name} is not an address`);
}

/** The same reader for several members. */
export function readEach<R, N extends string>(reader: R, ...names: N[]): Record<N, R> {
  return Object.fromEntries(names.map((name) => [name, reader])) as Record<N, R>;
}

/** The reader of a member that is an object. */
export function readNested<T>(readers: Readers<T>): Reader<T> {
  return (members, name) => readMembers(readObject(members, name), readers);
}
