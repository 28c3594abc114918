import * as fs from "node:fs";
import { constants, type Stats } from "node:fs";
import { dirname, isAbsolute, relative, sep } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Node, ParseError } from "#packages/jsonc";
import { createScanner, findNodeAtLocation, getNodeValue, parseTree } from "#packages/jsonc";
import { AgentAuthError, usageError } from "../../../../errors.js";
import { isJsonObject, type JsonObject } from "../../../../http/strict-json.js";
import { changingMode, removeCommand, tryLstat } from "../../../../platform.js";
import { quote } from "../../../../redact.js";
import { syncFolder, temporaryPath, writeSynced } from "../../../../store/private/private-file.js";
import { storeError } from "../../../../store/store-error.js";

/** Far more than settings need; a host's own file may also have its history. */
const MAX_BYTES = 8 * 1024 * 1024;
const BOM = "\uFEFF";

/**
 * The text of a host's file without a byte order mark; that of a missing one is empty.
 *
 * @param project the folder that the file must not lead out of
 * @throws `AgentAuthError` `usage` for what is no text file, `store_failed` for what cannot be read
 */
export function readHostFile(path: string, project?: string): string {
  return decodeText(path, readOriginal(path, resolveTarget(path, project))?.bytes);
}

/**
 * Replaces the file in one step: a reader finds the old or the new content, also after a crash. The old content is stored
 * beside it first, under the time.
 *
 * @param change of the text as it is now
 * @returns the path of the backup; undefined where there was no file
 * @throws `AgentAuthError` as {@link readHostFile}, and what `change` throws; the file is as it was
 */
export function changeHostFile(
  path: string,
  project: string | undefined,
  change: (text: string) => string,
): string | undefined {
  const target = resolveTarget(path, project);
  const original = readOriginal(path, target);
  const text = change(decodeText(path, original?.bytes));
  try {
    if (original === undefined) {
      fs.mkdirSync(dirname(target), { recursive: true, ...(project === undefined && { mode: 0o700 }) });
      replace(target, Buffer.from(text), project === undefined ? 0o600 : 0o666);
      return undefined;
    }
    // A rename would also replace a read-only file.
    if ((original.stat.mode & 0o222) === 0)
      throw storeError(`the file ${path} is read-only`, undefined, changingMode("u+w", path, original.stat.uid));
    const backup = `${target}.${new Date().toISOString().replace(/[-:.]/g, "")}.agentauth.bak`;
    fs.writeFileSync(backup, original.bytes, { flag: "wx", mode: 0o600, flush: true });
    keepModeAndOwner(backup, original.stat);
    const bom = original.bytes.toString("utf8", 0, 3) === BOM ? BOM : "";
    replace(target, Buffer.from(bom + text), original.stat);
    return backup;
  } catch (cause) {
    if (cause instanceof AgentAuthError) throw cause;
    throw storeError(`the file ${path} cannot be written`, cause, "the file is as it was; check its folder");
  }
}

function decodeText(path: string, bytes: Buffer | undefined): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw usageError(`the file ${path} is not UTF-8 text`, "save it as UTF-8");
  }
}

/** A file in a project may be a link that its author chose: it must not lead to the user's own files. */
function resolveTarget(path: string, project: string | undefined): string {
  try {
    const existing = existingPart(path);
    const target = fs.realpathSync.native(existing) + path.slice(existing.length);
    const inside = project === undefined ? "" : relative(fs.realpathSync.native(project), target);
    // On Windows, the way to another drive is an absolute path.
    if (inside !== ".." && !inside.startsWith(`..${sep}`) && !isAbsolute(inside)) return target;
    const message = `the file ${path} leads out of the project, to ${target}`;
    throw usageError(message, `remove the link: ${removeCommand(path)}`);
  } catch (cause) {
    if (cause instanceof AgentAuthError) throw cause;
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ELOOP")
      throw usageError(`the file ${path} is a symbolic link that leads nowhere`, `remove it: ${removeCommand(path)}`);
    throw storeError(`the file ${path} cannot be read`, cause);
  }
}

/** The longest part of a path that exists; a link that leads nowhere exists. */
function existingPart(path: string): string {
  const parent = dirname(path);
  return parent === path || tryLstat(path) !== undefined ? path : existingPart(parent);
}

function readOriginal(path: string, target: string): { bytes: Buffer; stat: Stats } | undefined {
  let fd: number | undefined;
  try {
    // A FIFO would block forever.
    fd = fs.openSync(target, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fs.fstatSync(fd);
    if (!stat.isFile() || stat.size > MAX_BYTES)
      throw usageError(`${path} is not an ordinary file of at most ${MAX_BYTES} bytes`, "add the entry by hand");
    return { bytes: fs.readFileSync(fd), stat };
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    if (cause instanceof AgentAuthError) throw cause;
    throw storeError(`the file ${path} cannot be read`, cause);
  } finally {
    if (fd !== undefined) fs.closeSync(fd);
  }
}

/** @param like the file to take mode and owner from, or the mode of a new file, from which the umask takes away */
function replace(path: string, content: Buffer, like: Stats | number): void {
  const temporary = temporaryPath(path);
  try {
    writeSynced(temporary, content, constants.O_CREAT | constants.O_EXCL, typeof like === "number" ? like : 0o600);
    if (typeof like !== "number") keepModeAndOwner(temporary, like);
    fs.renameSync(temporary, path);
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

/** The owner differs where an administrator runs this for a user. */
function keepModeAndOwner(path: string, { mode, uid, gid }: Stats): void {
  const own = fs.statSync(path);
  if (own.uid !== uid || own.gid !== gid) fs.chownSync(path, uid, gid);
  fs.chmodSync(path, mode & 0o777);
}

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
      ? removeMember(text, findNodeAtLocation(parseTreeOrThrow(text), [key, name])?.parent)
      : write(text, [key, name], entry);
  const expected = { ...before, [key]: entry === undefined ? others : { ...others, [name]: entry } };
  if (isDeepStrictEqual({ [key]: {}, ...read(key, changed) }, expected)) return changed;
  throw new SettingsSyntaxError(`the server ${quote(name, 80)} is written in a form that cannot be changed safely`);
}

function read(key: string, text: string): JsonObject {
  if (text.trim() === "") return {};
  try {
    const root = parseTreeOrThrow(text);
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
    return `${JSON.stringify({ [key]: { [name]: entry } }, null, 2)}\n`.replaceAll("\n", detectLineBreak(text));
  const root = parseTreeOrThrow(text);
  const servers = findNodeAtLocation(root, [key]);
  if (servers === undefined) return addMember(text, root, key, { [name]: entry });
  const own = findNodeAtLocation(servers, [name]);
  if (own === undefined) return addMember(text, servers, name, entry);
  return text.slice(0, own.offset) + printValue(text, indentAt(text, own.offset), entry) + text.slice(nodeEnd(own));
}

function parseTreeOrThrow(text: string): Node {
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
  const indent =
    first !== undefined && startsLine(text, first) ? indentAt(text, first.offset) : outer + detectIndent(text);
  const at = endOfComment(text, offset + 1);
  const eol = detectLineBreak(text);
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
  const comma = commaAfter(text, nodeEnd(member));
  const end = endOfComment(text, comma === undefined ? nodeEnd(member) : comma + 1);
  const isOnOwnLine = startsLine(text, member);
  const from = isOnOwnLine ? lineStart(text, member.offset) : member.offset;
  const to = isOnOwnLine ? end + (/^[ \t]*\r?\n/.exec(text.slice(end))?.[0].length ?? 0) : end;
  // Without a comma after it, it was the last member, and the one before it has a comma too many.
  const previous = comma === undefined ? members[members.indexOf(member) - 1] : undefined;
  const extra = previous === undefined ? undefined : commaAfter(text, nodeEnd(previous));
  const head = extra === undefined ? text.slice(0, from) : text.slice(0, extra) + text.slice(extra + 1, from);
  const rest = text.slice(to);
  const isEmpty = head.trimEnd().length === object.offset + 1 && /^\s*\}/.test(rest);
  return isEmpty ? head.trimEnd() + rest.trimStart() : head + rest;
}

function printValue(text: string, indent: string, value: unknown): string {
  return JSON.stringify(value, null, detectIndent(text)).replaceAll("\n", detectLineBreak(text) + indent);
}

function detectIndent(text: string): string {
  return /\n([ \t]+)["/]/.exec(text)?.[1] ?? "  ";
}

function indentAt(text: string, offset: number): string {
  return /^[ \t]*/.exec(text.slice(lineStart(text, offset)))?.[0] ?? "";
}

function startsLine(text: string, { offset }: Node): boolean {
  return text.slice(lineStart(text, offset), offset).trim() === "";
}

function nodeEnd({ offset, length }: Node): number {
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
function detectLineBreak(text: string): "\r\n" | "\n" {
  return /^[^\n]*\r\n/.test(text) ? "\r\n" : "\n";
}
