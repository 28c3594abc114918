import { isDeepStrictEqual } from "node:util";
import { createScanner, getNodeValue, type Node } from "jsonc-parser";
import { lineBreakOf } from "./language.js";

/** The text with a new member at the end of an object; what is there stays, comments and line breaks included. */
export function addMember(text: string, object: Node, key: string, value: unknown): string {
  const eol = lineBreakOf(text);
  const unit = /\n([ \t]+)["/]/.exec(text)?.[1] ?? "  ";
  const outer = indentAt(text, object.offset);
  const [first, last] = [object.children?.[0], object.children?.at(-1)];
  const indent = first !== undefined && startsLine(text, first.offset) ? indentAt(text, first.offset) : outer + unit;
  const end = last === undefined ? object.offset + 1 : endOf(last);
  const comma = last === undefined ? undefined : commaAfter(text, end);
  const at = endOfRemark(text, comma === undefined ? end : comma + 1);
  const member = `${JSON.stringify(key)}: ${printed(value, { indent, unit, eol })}`;
  const closes = /^\s*\}/.test(text.slice(at)) && !/^[ \t]*\r?\n/.test(text.slice(at)) ? eol + outer : "";
  const added = eol + indent + member + (comma === undefined ? "" : ",") + closes;
  const separator = last !== undefined && comma === undefined ? "," : "";
  const rest = closes === "" ? text.slice(at) : text.slice(at).trimStart();
  return text.slice(0, end) + separator + text.slice(end, at) + added + rest;
}

/** The text with another value of a member, or with a new one. */
export function setMember(text: string, object: Node, key: string, value: unknown): string {
  const node = memberOf(object, key)?.children?.[1];
  if (node === undefined) return addMember(text, object, key, value);
  if (isDeepStrictEqual(getNodeValue(node), value)) return text;
  const unit = /\n([ \t]+)["/]/.exec(text)?.[1] ?? "  ";
  const style = { indent: indentAt(text, node.offset), unit, eol: lineBreakOf(text) };
  return text.slice(0, node.offset) + printed(value, style) + text.slice(endOf(node));
}

/** The text without a member, its comma and the comment after it on its line. */
export function removeMember(text: string, object: Node, key: string): string {
  const members = object.children ?? [];
  const member = memberOf(object, key);
  if (member === undefined) return text;
  const comma = commaAfter(text, endOf(member));
  const previous = members[members.indexOf(member) - 1];
  const before = previous === undefined || comma !== undefined ? undefined : commaAfter(text, endOf(previous));
  const from = startsLine(text, member.offset) ? text.lastIndexOf("\n", member.offset) + 1 : member.offset;
  const end = endOfRemark(text, comma === undefined ? endOf(member) : comma + 1);
  const isWholeLine = from < member.offset || startsLine(text, member.offset);
  const lineBreak = /^[ \t]*\r?\n/.exec(text.slice(end))?.[0].length ?? 0;
  const to = isWholeLine ? end + lineBreak : end;
  const head = before === undefined ? text.slice(0, from) : text.slice(0, before) + text.slice(before + 1, from);
  const opened = members.length === 1 && head.trimEnd().length === object.offset + 1;
  const rest = text.slice(to);
  return opened && /^\s*\}/.test(rest) ? head.trimEnd() + rest.trimStart() : head + rest;
}

/** The member of an object with this key. */
export function memberOf(object: Node, key: string): Node | undefined {
  return object.children?.find(({ children }) => children?.[0]?.value === key);
}

function printed(value: unknown, { indent, unit, eol }: { indent: string; unit: string; eol: string }): string {
  return JSON.stringify(value, null, unit).replaceAll("\n", eol + indent);
}

function endOf({ offset, length }: Node): number {
  return offset + length;
}

function indentAt(text: string, offset: number): string {
  return /^[ \t]*/.exec(text.slice(text.lastIndexOf("\n", offset - 1) + 1))?.[0] ?? "";
}

function startsLine(text: string, offset: number): boolean {
  return /^\s*$/.test(text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset));
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
function endOfRemark(text: string, offset: number): number {
  const remark = /^[ \t]*(?:\/\/[^\r\n]*|\/\*(?:(?!\*\/)[^\r\n])*\*\/[ \t]*(?=\r?\n))/.exec(text.slice(offset));
  return offset + (remark?.[0].length ?? 0);
}
