import { isDeepStrictEqual } from "node:util";
import {
  createScanner,
  findNodeAtLocation,
  getNodeValue,
  type Node,
  type ParseError,
  parseTree,
} from "#packages/jsonc";
import { isJsonObject, type JsonObject } from "../../../http/strict-json.js";
import { quote } from "../../../redact.js";

/** The text of a host's settings cannot be read, or has a form that is not changed. */
export class SettingsSyntaxError extends Error {
  constructor(rule: string, text = "", offset?: number) {
    super(offset === undefined ? rule : `${rule}, in line ${text.slice(0, offset).split("\n").length}`);
  }
}

/** A stored entry with the values of another one; what the user or the host has added to it, or to a map in it, stays. */
export function merged(stored: unknown, entry: JsonObject): JsonObject {
  if (!isJsonObject(stored)) return entry;
  const values = Object.entries(entry).map(([key, value]) => [
    key,
    isJsonObject(value) ? { ...(stored[key] as object), ...value } : value,
  ]);
  return { ...stored, ...Object.fromEntries(values) };
}

/**
 * The servers in the text of a host's settings: JSON with comments and trailing commas.
 *
 * @throws {@link SettingsSyntaxError}
 */
export function serversIn(key: string, text: string): JsonObject {
  const servers = read(key, text)[key] ?? {};
  if (!isJsonObject(servers)) throw new SettingsSyntaxError(`"${key}" must have the servers by their names`);
  return servers;
}

/**
 * The text with one server as the entry has it, or without it where there is none. Comments, line breaks and trailing commas
 * stay: `modify` of the parser removes comments beside a member, and moves the one after the last member. The text is read
 * again: whatever else would have changed is an error.
 *
 * @throws {@link SettingsSyntaxError} for a form of the settings that cannot be changed safely
 */
export function changeServer(key: string, text: string, name: string, entry: JsonObject | undefined): string {
  const before = read(key, text);
  const { [name]: _existing, ...others } = serversIn(key, text);
  const changed =
    entry === undefined
      ? removeMember(text, findNodeAtLocation(treeOf(text), [key, name])?.parent)
      : write(text, [key, name], entry);
  const expected = { ...before, [key]: entry === undefined ? others : { ...others, [name]: entry } };
  if (isDeepStrictEqual({ [key]: {}, ...read(key, changed) }, expected)) return changed;
  throw new SettingsSyntaxError(`the server ${quote(name, 80)} is written in a form that cannot be changed safely`);
}

function read(key: string, text: string): JsonObject {
  if (text.trim() === "") return {};
  try {
    const root = treeOf(text);
    checkMap(text, root, "the settings");
    const servers = findNodeAtLocation(root, [key]);
    if (servers !== undefined) checkMap(text, servers, `"${key}"`);
    // The parser's objects have no prototype.
    return structuredClone(getNodeValue(root)) as JsonObject;
  } catch (error) {
    if (error instanceof RangeError) throw new SettingsSyntaxError("it is nested too deeply");
    throw error;
  }
}

function write(text: string, [key, name]: [string, string], entry: JsonObject): string {
  if (text.trim() === "")
    return `${JSON.stringify({ [key]: { [name]: entry } }, null, 2)}\n`.replaceAll("\n", lineBreakOf(text));
  const root = treeOf(text);
  const servers = findNodeAtLocation(root, [key]);
  if (servers === undefined) return addMember(text, root, key, { [name]: entry });
  const own = findNodeAtLocation(servers, [name]);
  if (own === undefined) return addMember(text, servers, name, entry);
  return text.slice(0, own.offset) + printValue(text, indentAt(text, own.offset), entry) + text.slice(endOf(own));
}

function treeOf(text: string): Node {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  if (root !== undefined && errors.length === 0) return root;
  throw new SettingsSyntaxError("it is not valid JSON", text, errors[0]?.offset ?? 0);
}

/** An object whose keys are unique: of two values with the same key, programs use one or the other. */
function checkMap(text: string, node: Node, what: string): void {
  if (node.type !== "object") throw new SettingsSyntaxError(`${what} must be an object`, text, node.offset);
  const seen = new Set<unknown>();
  for (const { offset, children } of node.children ?? []) {
    const key: unknown = children?.[0]?.value;
    if (seen.has(key)) throw new SettingsSyntaxError(`the key ${JSON.stringify(key)} is there twice`, text, offset);
    seen.add(key);
  }
}

/** The text with a new member before those of an object, after a comment on the line of its brace. */
function addMember(text: string, { offset, children = [] }: Node, key: string, value: unknown): string {
  const [first] = children;
  const outer = indentAt(text, offset);
  const indent = first !== undefined && startsLine(text, first) ? indentAt(text, first.offset) : outer + unitOf(text);
  const at = endOfComment(text, offset + 1);
  const eol = lineBreakOf(text);
  const member = `${eol}${indent}${JSON.stringify(key)}: ${printValue(text, indent, value)}`;
  const after = text.slice(at);
  const isClosed = /^[ \t]*\}/.test(after);
  return (
    text.slice(0, at) + member + (first === undefined ? "" : ",") + (isClosed ? eol + outer + after.trimStart() : after)
  );
}

/** The text without a member, its comma and the comment after it on its line. */
function removeMember(text: string, member: Node | undefined): string {
  const object = member?.parent;
  const members = object?.children ?? [];
  if (member === undefined || object === undefined) return text;
  const comma = commaAfter(text, endOf(member));
  const end = endOfComment(text, comma === undefined ? endOf(member) : comma + 1);
  const isOnOwnLine = startsLine(text, member);
  const from = isOnOwnLine ? lineStart(text, member.offset) : member.offset;
  const to = isOnOwnLine ? end + (/^[ \t]*\r?\n/.exec(text.slice(end))?.[0].length ?? 0) : end;
  // Without a comma after it, it was the last member, and the one before it has a comma too many.
  const previous = comma === undefined ? members[members.indexOf(member) - 1] : undefined;
  const extra = previous === undefined ? undefined : commaAfter(text, endOf(previous));
  const head = extra === undefined ? text.slice(0, from) : text.slice(0, extra) + text.slice(extra + 1, from);
  const rest = text.slice(to);
  const isEmpty = head.trimEnd().length === object.offset + 1 && /^\s*\}/.test(rest);
  return isEmpty ? head.trimEnd() + rest.trimStart() : head + rest;
}

function printValue(text: string, indent: string, value: unknown): string {
  return JSON.stringify(value, null, unitOf(text)).replaceAll("\n", lineBreakOf(text) + indent);
}

/** One step of indentation. */
function unitOf(text: string): string {
  return /\n([ \t]+)["/]/.exec(text)?.[1] ?? "  ";
}

function indentAt(text: string, offset: number): string {
  return /^[ \t]*/.exec(text.slice(lineStart(text, offset)))?.[0] ?? "";
}

function startsLine(text: string, { offset }: Node): boolean {
  return text.slice(lineStart(text, offset), offset).trim() === "";
}

function endOf({ offset, length }: Node): number {
  return offset + length;
}

/** The comma after a member, beyond spaces and comments. */
function commaAfter(text: string, offset: number): number | undefined {
  const scanner = createScanner(text, true);
  scanner.setPosition(offset);
  scanner.scan();
  const at = scanner.getTokenOffset();
  return text[at] === "," ? at : undefined;
}

/** The end of a comment that follows on the same line and has the rest of it; else the position itself. */
function endOfComment(text: string, offset: number): number {
  const comment = /^[ \t]*(?:\/\/[^\r\n]*|\/\*(?:(?!\*\/)[^\r\n])*\*\/[ \t]*(?=\r?\n))/.exec(text.slice(offset));
  return offset + (comment?.[0].length ?? 0);
}

function lineStart(text: string, offset: number): number {
  return text.lastIndexOf("\n", offset - 1) + 1;
}

/** The line break of a text: its first one, else that of Unix. */
function lineBreakOf(text: string): "\r\n" | "\n" {
  return /^[^\n]*\r\n/.test(text) ? "\r\n" : "\n";
}
