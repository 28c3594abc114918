import { isDeepStrictEqual } from "node:util";
import {
  createScanner,
  findNodeAtLocation,
  getNodeValue,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from "#packages/jsonc";
import { lineAt, lineBreakOf, lineStart, type SettingsLanguage, SettingsSyntaxError } from "./host.js";

/**
 * JSON with comments and trailing commas, which stay: `modify` of the parser removes comments beside a member, and moves the
 * one after the last member.
 */
export const json: SettingsLanguage = {
  parse(text, key) {
    if (text.trim() === "") return {};
    const root = treeOf(text);
    checkMap(text, root, "the settings");
    const servers = findNodeAtLocation(root, [key]);
    if (servers !== undefined) checkMap(text, servers, `"${key}"`);
    return getNodeValue(root) as Record<string, unknown>;
  },
  print: (settings) => `${JSON.stringify(settings, null, 2)}\n`,
  add(text, key, name, entry) {
    if (text.trim() === "") return json.print({ [key]: { [name]: entry } }).replaceAll("\n", lineBreakOf(text));
    const root = treeOf(text);
    const servers = findNodeAtLocation(root, [key]);
    return servers === undefined
      ? addMember(text, root, key, { [name]: entry })
      : addMember(text, servers, name, entry);
  },
  update: (text, key, name, entry) =>
    Object.entries(entry).reduce((changed, [field, value]) => {
      const root = treeOf(changed);
      const own = findNodeAtLocation(root, [key, name]);
      if (own?.type !== "object") return changed;
      const old = findNodeAtLocation(own, [field]);
      if (value === undefined) return removeMember(changed, old?.parent);
      if (old === undefined) return addMember(changed, own, field, value);
      if (isDeepStrictEqual(getNodeValue(old), value)) return changed;
      return (
        changed.slice(0, old.offset) +
        printValue(changed, indentAt(changed, old.offset), value) +
        changed.slice(endOf(old))
      );
    }, text),
  remove: (text, key, name) => removeMember(text, findNodeAtLocation(treeOf(text), [key, name])?.parent),
};

function treeOf(text: string): Node {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first !== undefined || root === undefined) {
    const what = first === undefined ? "" : `: ${splitCode(printParseErrorCode(first.error))}`;
    throw new SettingsSyntaxError(`it is not valid JSON${what}`, lineAt(text, first?.offset ?? 0));
  }
  return root;
}

/** `CommaExpected` as words. */
function splitCode(code: string): string {
  return code.replace(/(?<=[a-z])([A-Z])/g, " $1").toLowerCase();
}

/** An object whose keys are unique: of two values with the same key, programs use one or the other. */
function checkMap(text: string, node: Node, what: string): void {
  if (node.type !== "object") throw new SettingsSyntaxError(`${what} must be an object`, lineAt(text, node.offset));
  const seen = new Set<unknown>();
  for (const { offset, children } of node.children ?? []) {
    const key: unknown = children?.[0]?.value;
    if (seen.has(key))
      throw new SettingsSyntaxError(`the key ${JSON.stringify(key)} is there twice`, lineAt(text, offset));
    seen.add(key);
  }
}

/** The text with a new member at the end of an object; what is there stays, comments and line breaks included. */
function addMember(text: string, object: Node, key: string, value: unknown): string {
  const [first, last] = [object.children?.[0], object.children?.at(-1)];
  const outer = indentAt(text, object.offset);
  const indent = first !== undefined && startsLine(text, first) ? indentAt(text, first.offset) : outer + unitOf(text);
  const end = last === undefined ? object.offset + 1 : endOf(last);
  const comma = last === undefined ? undefined : commaAfter(text, end);
  const at = endOfComment(text, comma === undefined ? end : comma + 1);
  const eol = lineBreakOf(text);
  return [
    text.slice(0, end),
    last !== undefined && comma === undefined ? "," : "",
    text.slice(end, at),
    `${eol}${indent}${JSON.stringify(key)}: ${printValue(text, indent, value)}`,
    comma === undefined ? "" : ",",
    /^[ \t]*\}/.test(text.slice(at)) ? eol + outer + text.slice(at).trimStart() : text.slice(at),
  ].join("");
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
