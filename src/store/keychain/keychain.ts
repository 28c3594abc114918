import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { basename, dirname } from "node:path";
import { promisify } from "node:util";
import { type AgentAuthError, errorMessage, isAgentAuthError } from "../../errors.js";
import { followSignal, untilAborted } from "../../http/deadline.js";
import { parseJsonObject } from "../../http/strict-json.js";
import { system } from "../../platform.js";
import { quote } from "../../redact.js";
import { storeError } from "../store-error.js";

/** One entry of the keychain of the operating system. */
export interface Keychain {
  /** The content of the entry; undefined when there is no such entry. */
  get(): Promise<string | undefined>;
  /** Writes or overwrites the entry. */
  set(value: string): Promise<void>;
}

/** Options of {@link osKeychain}. */
export interface OsKeychainOptions {
  /** Milliseconds that one call may take, including a prompt to the user. Default: {@link KEYCHAIN_TIMEOUT}. */
  timeoutMs?: number | undefined;
  /** The environment of the helper process. Default: that of this process. */
  env?: Readonly<Record<string, string | undefined>> | undefined;
  /** The path of the package for the keychain. Default: `@napi-rs/keyring`, where it is installed. */
  package?: string | undefined;
}

/** How long a call to a keychain may take by default, in milliseconds. */
export const KEYCHAIN_TIMEOUT = 10_000;

const SERVICE = "agentauth";
const PACKAGE = "@napi-rs/keyring";
const VERSION = "2.1.2";
const WITHOUT = "or store logins in files that only you can read: AGENTAUTH_STORE=file";

/**
 * The entry of this account in the macOS Keychain, the Windows Credential Manager or the Secret Service of Linux.
 *
 * Both calls throw `AgentAuthError` `store_failed` when the keychain is missing or locked, denies access or does not respond.
 */
export function osKeychain(account: string, options: OsKeychainOptions = {}): Keychain {
  const { timeoutMs: timeout = KEYCHAIN_TIMEOUT, env } = options;
  const ask = async (value: string | undefined): Promise<string | undefined> => {
    const request = { package: options.package ?? findPackage(), service: SERVICE, account, value };
    requireNode(process.execPath);
    const reply = await callKeychain(request, timeout, env);
    if (reply.outcome !== "done") throw toError(reply, timeout);
    return reply.value;
  };
  return { get: () => ask(undefined), set: async (value) => void (await ask(value)) };
}

/** The same entry with a time limit for each call, for a keychain without one. */
export function limitKeychain(keychain: Keychain, timeout = KEYCHAIN_TIMEOUT): Keychain {
  const limited = async <T>(work: Promise<T>): Promise<T> => {
    const limit = followSignal(undefined, timeout, () => toError({ outcome: "timeout" }, timeout));
    return untilAborted(work, limit.signal).finally(() => limit.release());
  };
  return { get: () => limited(keychain.get()), set: (value) => limited(keychain.set(value)) };
}

/** The typed error for what a keychain threw. */
export function keychainError(cause: unknown): AgentAuthError {
  if (isAgentAuthError(cause)) return cause;
  return storeError(`the keychain cannot be used: ${quote(errorMessage(cause))}`, cause);
}

function findPackage(): string {
  try {
    return createRequire(import.meta.url).resolve(PACKAGE);
  } catch (cause) {
    const what = `the keychain needs the optional package ${PACKAGE}, which is not installed`;
    throw storeError(what, cause, `${install(PACKAGE)}, ${WITHOUT}`);
  }
}

function install(what: string): string {
  return `npm install ${what} (with --global if agentauth is installed globally)`;
}

/** A program that embeds Node, such as an Electron app, would start itself again. */
function requireNode(executable: string): void {
  if (/^node(js)?[\d.-]*(\.exe)?$/i.test(basename(executable))) return;
  throw storeError(`the keychain can be used where Node runs the program, not ${quote(executable)}`, undefined);
}

type Failure = Exclude<KeychainReply, { outcome: "done" }>;

function toError(reply: Failure, timeout: number): AgentAuthError {
  switch (reply.outcome) {
    case "timeout":
      return storeError(
        `the keychain did not answer within ${timeout / 1000} s`,
        undefined,
        `unlock it, answer its prompt and run the command again, ${WITHOUT}`,
      );
    case "died":
      return storeError("the keychain could not be queried: its helper process exited", undefined, WITHOUT.slice(3));
    case "unusable":
      return storeError(
        `the optional package ${PACKAGE} cannot be used: ${quote(reply.message)}`,
        undefined,
        `${install(`${PACKAGE}@${VERSION}`)}, ${WITHOUT}`,
      );
    case "refused":
      return refusal(reply.message);
  }
}

/** The package distinguishes these by its messages only. */
function refusal(message: string): AgentAuthError {
  if (/d-?bus error|org\.freedesktop\.secrets/i.test(message)) {
    const start = "start a Secret Service, for example gnome-keyring or KWallet, in your session";
    return storeError(`there is no keychain here: ${quote(message)}`, undefined, `${start}, ${WITHOUT}`);
  }
  if (/no result found/i.test(message)) {
    const make = "create a default keyring, for example with seahorse, and unlock it";
    return storeError(`the Secret Service has no keyring: ${quote(message)}`, undefined, `${make}, ${WITHOUT}`);
  }
  if (/platform storage|\b(un)?lock|dismiss|denied|cancell?ed|interaction|passphrase/i.test(message)) {
    const unlock = system.name === "darwin" ? "security unlock-keychain" : "unlock it";
    const what = `the keychain is locked, or access to it was denied: ${quote(message)}`;
    return storeError(what, undefined, `${unlock}, and run the command again, ${WITHOUT}`);
  }
  return storeError(`the keychain cannot be used: ${quote(message)}`, undefined, WITHOUT.slice(3));
}

interface KeychainRequest {
  package: string;
  service: string;
  account: string;
  /** The value to write; undefined to read the entry. */
  value: string | undefined;
}

type KeychainReply =
  /** The call succeeded; `value` is the content that was read, if there is such an entry. */
  | { outcome: "done"; value: string | undefined }
  /** The package is installed and cannot be used: it has no binary for this machine, or is too old. */
  | { outcome: "unusable"; message: string }
  | { outcome: "refused"; message: string }
  /** No reply came in time, or the process exited without one. */
  | { outcome: "timeout" | "died" };

// On Linux the package would silently fall back to the kernel's keyring, which is lost when the machine restarts.
// Versions without the option for it lack LinuxStore.
const PROGRAM = `
const { readFileSync, writeSync } = require("node:fs");
const request = JSON.parse(readFileSync(0, "utf8"));
function answer() {
  let keyring;
  try {
    keyring = require(request.package);
  } catch (error) {
    return { outcome: "unusable", message: error.message.split("\\n")[0] };
  }
  if (process.platform === "linux" && keyring.LinuxStore === undefined) {
    return { outcome: "unusable", message: "it is older than 2.1.0" };
  }
  try {
    const entry = new keyring.Entry(request.service, request.account, { linux: { store: "secret-service" } });
    if (request.value !== undefined) return { outcome: "done", value: entry.setPassword(request.value) };
    return { outcome: "done", value: entry.getPassword() ?? undefined };
  } catch (error) {
    return { outcome: "refused", message: error.message };
  }
}
writeSync(1, JSON.stringify(answer()));
`;

/**
 * Calls the keychain in a helper process: the native calls block their thread, also while the user is prompted for a
 * password or a bus does not respond, and only a process can be stopped then. Secrets go through pipes, never through
 * arguments or the environment.
 *
 * @param timeout in milliseconds
 * @param env the environment of that process. Default: that of this one
 */
async function callKeychain(
  request: KeychainRequest,
  timeout: number,
  env: Readonly<Record<string, string | undefined>> | undefined,
): Promise<KeychainReply> {
  const running = promisify(execFile)(process.execPath, ["--input-type=commonjs", "-e", PROGRAM], {
    // Not the caller's folder, which another user may own, or which may be removed.
    cwd: dirname(process.execPath),
    timeout,
    killSignal: "SIGKILL",
    windowsHide: true,
    ...(env && { env }),
  });
  const { child } = running;
  const kill = () => void child.kill("SIGKILL");
  process.once("exit", kill);
  // A process that exits early is reported by its reply, or by the lack of one.
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(JSON.stringify(request));
  try {
    return parseReply((await running).stdout);
  } catch (error) {
    const { killed, stdout } = error as { killed?: boolean; stdout?: string };
    return killed ? { outcome: "timeout" } : parseReply(stdout ?? "");
  } finally {
    process.off("exit", kill);
  }
}

function parseReply(text: string): KeychainReply {
  const { outcome, value, message } = parseJsonObject(text) ?? {};
  if (outcome === "done") return { outcome, value: typeof value === "string" ? value : undefined };
  if (outcome === "unusable" || outcome === "refused") return { outcome, message: String(message) };
  return { outcome: "died" };
}
