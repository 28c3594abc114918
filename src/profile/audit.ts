import { closeSync, constants, fstatSync, openSync, readSync, renameSync, type Stats, writeSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { errorMessage, isAgentAuthError } from "../errors.js";
import type { HttpEvent } from "../http/buffered-response.js";
import { randomHex, retryWhileBusy, tryLstat } from "../platform.js";
import {
  attempt,
  checkOpened,
  checkTrustedFolder,
  discardFile,
  listFolder,
  makePrivateFolder,
} from "../store/private/private-file.js";
import { storeError } from "../store/store-error.js";
import { type AgentEvent, EVENTS } from "../telemetry/events.js";
import { checkSetting } from "./profile-settings.js";
import type { Sourced } from "./settings.js";

const MAX_BYTES = 10 * 1024 * 1024;
/** The older files that are kept. */
const MAX_OLDER = 9;
const OLDER = /\.\d{8}T\d{9}Z-[0-9a-f]{8}$/;

/**
 * Opens the audit file.
 *
 * @param warn called once if an event cannot be written: that ends no refresh
 * @returns what receives the events, and writes each as a line. Requests are left out, and what was done in the store
 * without a failure
 * @throws `AgentAuthError` `usage` for a setting that names no file, `store_failed` for a file that others can read or
 * write, or that is a link
 */
export function openAudit(
  { value, source }: Sourced,
  warn: (text: string) => void,
  maxBytes = MAX_BYTES,
): (event: AgentEvent | HttpEvent) => void {
  checkSetting("audit", value, source);
  const path = resolve(value.slice("file:".length));
  makePrivateFolder(dirname(path));
  checkTrustedFolder(dirname(path));
  closeSync(openFile(path));
  let hasFailed = false;
  return (event) => {
    if (!(event.type in EVENTS) || (event.type === "store" && event.outcome === "ok")) return;
    try {
      append(path, formatLine(event), maxBytes);
    } catch (error) {
      if (!hasFailed) warn(`events cannot be written into ${path}: ${errorMessage(error)}`);
      hasFailed = true;
    }
  };
}

function formatLine(event: AgentEvent | HttpEvent): string {
  const text = JSON.stringify({ time: new Date().toISOString(), pid: process.pid, ...event });
  // A terminal must not act on what a client of a broker named.
  const plain = text.replace(/[\u007f-\uffff]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return `${plain}\n`;
}

/** One write at the end of the file, since several processes append. */
function append(path: string, line: string, maxBytes: number): void {
  let fd = openFile(path);
  try {
    let stat = fstatSync(fd);
    if (stat.size > 0 && stat.size + line.length > maxBytes) {
      closeSync(fd);
      rotate(path, stat);
      fd = openFile(path);
      stat = fstatSync(fd);
    }
    writeSync(fd, endsInLine(fd, stat.size) ? `\n${line}` : line);
  } finally {
    closeSync(fd);
  }
}

/** Whether the last line has no end: its process was killed between two pages of it, or the disk was full. */
function endsInLine(fd: number, size: number): boolean {
  const last = Buffer.alloc(1, "\n");
  readSync(fd, last, 0, 1, Math.max(0, size - 1));
  // Unless its process is still writing it.
  return last.toString() !== "\n" && fstatSync(fd).size === size;
}

/**
 * Opens the file for appending, and creates it for this user alone.
 *
 * @throws `AgentAuthError` `store_failed` for one that others can read or write, or that is a link
 */
function openFile(path: string): number {
  let fd: number;
  try {
    if (tryLstat(path)?.isSymbolicLink()) throw storeError(`the audit file ${path} is a symbolic link`, undefined);
    const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;
    fd = retryWhileBusy(() => openSync(path, flags, 0o600));
  } catch (cause) {
    throw isAgentAuthError(cause) ? cause : storeError(`the audit file ${path} cannot be opened`, cause);
  }
  try {
    checkOpened(fd, path, `the audit file ${path}`);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** Moves a full file aside, under a name that no other process chooses: of two that do it, neither loses a line. */
function rotate(path: string, full: Stats): void {
  if (tryLstat(path)?.ino !== full.ino) return;
  const now = new Date().toISOString().replaceAll(/[-:.]/g, "");
  // On Windows another process may have it open; then it grows until no process has.
  if (!attempt(() => renameSync(path, `${path}.${now}-${randomHex(4)}`))) return;
  const name = basename(path);
  const older = listFolder(dirname(path)).filter((one) => one.startsWith(`${name}.`) && OLDER.test(one));
  for (const one of older.sort().slice(0, -MAX_OLDER)) discardFile(join(dirname(path), one));
}
