import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, renameSync, statSync, utimesSync } from "node:fs";
import { connect } from "node:net";
import { join, parse } from "node:path";
import { createInterface } from "node:readline";
import { AgentAuthError, orUndefined, usageError } from "../../errors.js";
import { followSignal } from "../../http/deadline.js";
import { parseJsonObject } from "../../http/strict-json.js";
import type { RedirectOptions } from "../../login/redirect-address.js";
import { decodeStoredLogin, encodeLogin, type StoredLogin } from "../../oauth/login/login-codec.js";
import { CodecError } from "../../oauth/model/codec.js";
import { IDP_ACCOUNT } from "../../oauth/model/machine-grant.js";
import { retryWhileBusy, tryStat } from "../../platform.js";
import { quote, shellWord } from "../../redact.js";
import { checkLiveness, type LockOwner } from "../../store/leases/lock-owner.js";
import {
  checkTrustedFolder,
  readPrivateFile,
  removeFile,
  temporaryPath,
  writePrivateFile,
} from "../../store/private/private-file.js";
import { onFiles } from "../../store/store-error.js";
import { RECEIVE_CALLBACK } from "../flags/agent.js";
import type { CommandContext } from "../runtime/context.js";

/** The process that waits for the callback of a login between its two steps, as its starter sees it. */

/** Time for the process to start and to respond. */
const RESPONSE_MS = 10_000;

export interface CallbackRequest {
  id: string;
  state: string;
  /** Milliseconds until it gives up. */
  ttlMs: number;
}

/** A process that has bound the redirect address of a login. */
export interface CallbackListener {
  readonly redirectUri: string;
  /** Makes it wait for the callback, and leaves it to itself. @returns whether it does */
  waitInBackground(request: CallbackRequest): Promise<boolean>;
  /** Ends it. */
  stop(): void;
}

/**
 * Starts a process that binds a redirect address. It gets no environment of ours and no secret but `state`, by its
 * standard input.
 *
 * @returns undefined where it cannot be started or cannot bind: the second step then listens itself
 */
export async function startListener(
  redirect: RedirectOptions,
  context: CommandContext,
): Promise<CallbackListener | undefined> {
  const { program } = context;
  if (program === undefined) return undefined;
  const { SystemRoot, windir } = context.io.env;
  const env = { AGENTAUTH_HOME: context.home(), ...(SystemRoot && { SystemRoot }), ...(windir && { windir }) };
  const [node, script] = program;
  const child = spawn(node, [script, RECEIVE_CALLBACK], {
    detached: true,
    windowsHide: true,
    cwd: parse(process.execPath).root,
    env,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const { stdin, stdout } = child;
  const failed = once(child, "error").catch(() => {});
  stdin.on("error", () => {});
  const lines = createInterface({ input: stdout });
  const send = async (message: object): Promise<Record<string, unknown>> => {
    const limit = followSignal(context.signal, RESPONSE_MS);
    const response = once(lines, "line", { signal: limit.signal });
    stdin.write(`${JSON.stringify(message)}\n`);
    const ended = once(lines, "close").then(() => []);
    const [line] = (await Promise.race([response, ended, failed.then(() => [])]).catch(() => [])) as [string?];
    limit.release();
    return parseJsonObject(line ?? "") ?? {};
  };
  const stop = () => {
    stdin.destroy();
    stdout.destroy();
    child.unref();
  };
  const { redirectUri } = await send(redirect);
  if (typeof redirectUri !== "string") {
    stop();
    return undefined;
  }
  return {
    redirectUri,
    async waitInBackground(request) {
      const { isHeld } = await send(request);
      stop();
      return isHeld === true;
    },
    stop,
  };
}

/** Whether the process that was to wait for the callback of a login still does. */
export async function isListening(id: string, listensAt: string, context: CommandContext): Promise<boolean> {
  const listener = readListener(id, context);
  if (listener === undefined || listener.until < context.now() || checkLiveness(listener) === "dead") return false;
  // Of a process in another namespace nothing else is known; and one that is stuck does not count.
  const { hostname, port } = new URL(listensAt);
  const socket = connect({ host: hostname === "localhost" ? "127.0.0.1" : hostname, port: Number(port || 80) });
  const isOpen = await once(socket, "connect").then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isOpen;
}

/** The files of logins between their two steps: the login, its callback, and the listener that waits for that. */

/** How long an authorization server usually waits for the user. */
export const LIFE_MS = 10 * 60 * 1000;
/** Ample for a callback: its request line is limited to 16 KiB. */
const MAX_CALLBACK_BYTES = 64 * 1024;

type Files = Pick<CommandContext, "home" | "now">;

/** A login that waits for its second step. */
export interface PendingLogin {
  id: string;
  login: StoredLogin;
  /** Unix milliseconds. */
  startedAt: number;
  /** Unix milliseconds. */
  expiresAt: number;
}

/** The process that waits for a callback. */
export interface ListenerRecord extends LockOwner {
  /** Unix milliseconds when it gives up. */
  readonly until: number;
}

/** @throws `AgentAuthError` `usage` for text that is no id, such as a path */
export function checkLoginId(id: string): void {
  if (/^[\w-]{12}$/.test(id)) return;
  throw usageError(
    `--wait ${quote(id)} is not a login id`,
    "start a login, which prints its id: agentauth login <mcp_url> --no-wait --json",
  );
}

function filePath(id: string, kind: "json" | "callback" | "listener", files: Files): string {
  checkLoginId(id);
  return join(files.home(), "logins", `${id}.${kind}`);
}

function readStored(path: string, files: Files, maxBytes?: number): string | undefined {
  checkTrustedFolder(files.home());
  return readPrivateFile(path, maxBytes);
}

/** Stores the first step of a login, and removes what has expired. */
export function storeLogin(id: string, login: StoredLogin, files: Files): Promise<void> {
  const folder = join(files.home(), "logins");
  return onFiles(folder, async () => {
    // A callback or listener without its login counts as expired.
    for (const one of idsIn(files, ["json", "callback", "listener"]))
      if (readExpiry(one, files) < files.now()) removeLogin(one, files);
    writePrivateFile(filePath(id, "json", files), encodeLogin(login));
  })();
}

/**
 * Stores a longer interval between the polls of a device login. When it expires stays, which is counted from the time of
 * its file.
 */
export function storeInterval(id: string, intervalSeconds: number, files: Files): void {
  const path = filePath(id, "json", files);
  const login = peek(id, files);
  if (login?.flow !== "device") return;
  const { atime, mtime } = statSync(path);
  writePrivateFile(path, encodeLogin({ ...login, device: { ...login.device, intervalSeconds } }));
  utimesSync(path, atime, mtime);
}

/** Removes a login with everything that belongs to it, which also ends its listener. */
export function removeLogin(id: string, files: Files): void {
  for (const kind of ["json", "callback", "listener"] as const) removeFile(filePath(id, kind, files));
}

/**
 * Reads the first step of a login.
 *
 * @throws `AgentAuthError` `usage` where there is none, `store_failed` where it cannot be used
 */
export function readLogin(id: string, url: string, files: Files): StoredLogin {
  const path = filePath(id, "json", files);
  const text = readStored(path, files);
  if (text === undefined)
    throw usageError(
      `no started login ${quote(id)} is stored`,
      `agentauth login ${shellWord(url)} --no-wait starts one`,
    );
  try {
    return decodeStoredLogin(text);
  } catch (cause) {
    if (!(cause instanceof CodecError)) throw cause;
    throw new AgentAuthError("store_failed", `the file ${path} cannot be used: ${cause.message}`, {
      class: "store",
      hint: "start the login again",
      remedy: { action: "login", server: url },
      cause,
    });
  }
}

/** The command that finishes a login. It is another process, which may have another default profile. */
export function finishCommand(id: string, { server, issuer, profile, account, handOver = [] }: StoredLogin): string {
  const isAtIdp = account === IDP_ACCOUNT;
  const flags = [
    ...(profile === "default" ? [] : ["--profile", profile]),
    ...(account === undefined || isAtIdp ? [] : ["--account-hint", account]),
    ...handOver,
  ];
  const at = isAtIdp ? ["--idp", issuer.issuer] : [server];
  return ["agentauth", "login", ...at, "--wait", id, ...flags].map(shellWord).join(" ");
}

/** The logins that wait for their second step; those that cannot be read are left to the command that finishes them. */
export function pendingLogins(files: Files): PendingLogin[] {
  const pending = (orUndefined(() => idsIn(files)) ?? []).flatMap((id) => {
    const login = peek(id, files);
    const expiresAt = readExpiry(id, files);
    if (login === undefined || expiresAt < files.now()) return [];
    return [{ id, login, expiresAt, startedAt: expiresAt - (login.ttlMs ?? LIFE_MS) }];
  });
  return pending.sort((a, b) => a.expiresAt - b.expiresAt);
}

function idsIn(files: Files, kinds: readonly string[] = ["json"]): string[] {
  const folder = join(files.home(), "logins");
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const ids = names.flatMap((name) => {
    const [, id, kind] = /^([\w-]{12})\.(\w+)$/.exec(name) ?? [];
    return id !== undefined && kind !== undefined && kinds.includes(kind) ? id : [];
  });
  return [...new Set(ids)];
}

function peek(id: string, files: Files): StoredLogin | undefined {
  return orUndefined(() => decodeStoredLogin(readStored(filePath(id, "json", files), files) ?? ""));
}

/** Unix milliseconds. */
function readExpiry(id: string, files: Files): number {
  const stat = tryStat(filePath(id, "json", files));
  return (stat?.mtimeMs ?? 0) + (peek(id, files)?.ttlMs ?? LIFE_MS);
}

/** Whether the login is still to be finished. */
export function isPending(id: string, files: Files): boolean {
  return existsSync(filePath(id, "json", files)) && existsSync(filePath(id, "listener", files));
}

/** Stores the parameters of a callback that decide a login, and nothing else of it. */
export function storeCallback(id: string, parameters: URLSearchParams, files: Files): void {
  const names = ["code", "state", "iss", "error", "error_description"];
  const stored = new URLSearchParams([...parameters].filter(([name]) => names.includes(name)));
  const path = filePath(id, "callback", files);
  writePrivateFile(path, `${stored}\n`);
  // A login that was removed at this moment leaves no code behind.
  if (!existsSync(filePath(id, "json", files))) removeFile(path);
}

/**
 * Takes the callback that a listener stored: one process gets it, once. Its content is not trusted: the caller validates
 * it as any other callback.
 */
export function takeCallback(id: string, files: Files): URLSearchParams | undefined {
  const path = filePath(id, "callback", files);
  if (readStored(path, files, MAX_CALLBACK_BYTES) === undefined) return undefined;
  const taken = temporaryPath(path);
  try {
    retryWhileBusy(() => renameSync(path, taken));
  } catch {
    // Another process was faster.
    return undefined;
  }
  try {
    return new URLSearchParams(readStored(taken, files, MAX_CALLBACK_BYTES)?.trim());
  } finally {
    removeFile(taken);
  }
}

/** Stores which process waits for the callback of a login. */
export function storeListener(id: string, listener: ListenerRecord, files: Files): void {
  writePrivateFile(filePath(id, "listener", files), `${JSON.stringify(listener)}\n`);
}

export function removeListener(id: string, files: Files): void {
  removeFile(filePath(id, "listener", files));
}

/** The process that waits for the callback of a login, as far as is known. */
export function readListener(id: string, files: Files): ListenerRecord | undefined {
  // The login can be finished without it.
  const value = parseJsonObject(orUndefined(() => readStored(filePath(id, "listener", files), files)) ?? "");
  return Number.isInteger(value?.["pid"]) ? (value as unknown as ListenerRecord) : undefined;
}
