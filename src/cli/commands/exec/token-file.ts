import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Clock } from "../../../http/deadline.js";
import type { AccessToken } from "../../../oauth/model/grant.js";
import { codeOf, statOf } from "../../../platform/files.js";
import { changingMode, removeCommand } from "../../../platform/shell.js";
import {
  attempt,
  checkPrivateFolder,
  makePrivateFolder,
  writePrivateFile,
} from "../../../store/private/private-file.js";
import { storeError } from "../../../store/store-error.js";

/** The parts of a token that the file needs. */
export type FileToken = Pick<AccessToken, "value" | "expiresAt">;

/** Options of {@link keepTokenFileFresh}. */
export interface RefreshedTokenFileOptions {
  /** The parent of the file's own folder. */
  folder: string;
  /** The first token. */
  first: FileToken;
  /** Returns the current token, refreshed if necessary. */
  getToken(signal: AbortSignal): Promise<FileToken>;
  /** Called with a new token before it is written. */
  onToken(token: string): void;
  /** Called once per series of failures; the refresh is tried again. */
  onFailure(error: unknown): void;
  /** Seconds before its expiry at which a token is refreshed. */
  minTtl: number;
  clock: Pick<Clock, "epoch" | "sleep">;
}

/** A private file with a valid token. */
export interface RefreshedTokenFile {
  readonly path: string;
  /**
   * Removes the file.
   *
   * @throws `AgentAuthError` `store_failed` if it cannot be removed
   */
  stop(): Promise<void>;
}

const MIN_WAIT_MS = 1000;
const RETRY_AFTER_FAILURE_MS = 10_000;
// Another process may refresh the token, and after a sleep of the machine the token may have expired.
const MAX_WAIT_MS = 30_000;
const STALE_MS = 24 * 3600 * 1000;

/**
 * Writes the token, and nothing else, into a file of mode 0600 in a folder of mode 0700, and replaces it atomically with
 * each later token until it is stopped.
 *
 * @throws `AgentAuthError` `store_failed` if there is no private folder for it
 */
export function keepTokenFileFresh(options: RefreshedTokenFileOptions): RefreshedTokenFile {
  makePrivateFolder(options.folder);
  checkPrivateFolder(options.folder);
  removeStaleFiles(options.folder, options.clock.epoch());
  const own = makeOwnFolder(options.folder);
  const atExit = () => void attempt(() => removeOwnFolder(own));
  // For an exit without stop().
  process.once("exit", atExit);
  const path = join(own, "token");
  try {
    writePrivateFile(path, options.first.value);
  } catch (error) {
    atExit();
    throw error;
  }
  const controller = new AbortController();
  const work = refreshLoop(path, options, controller.signal);
  return {
    path,
    async stop() {
      controller.abort();
      await work;
      process.off("exit", atExit);
      removeOwnFolder(own);
    },
  };
}

async function refreshLoop(path: string, options: RefreshedTokenFileOptions, signal: AbortSignal): Promise<void> {
  let { first: token } = options;
  let isReported = false;
  let wait = waitMs(token, options);
  for (;;) {
    await options.clock.sleep(wait, signal).catch(() => undefined);
    if (signal.aborted) return;
    try {
      const next = await options.getToken(signal);
      if (next.value !== token.value) options.onToken(next.value);
      token = next;
      write(path, token, options);
      wait = waitMs(token, options);
      isReported = false;
    } catch (error) {
      if (signal.aborted) return;
      if (!isReported) options.onFailure(error);
      isReported = true;
      wait = RETRY_AFTER_FAILURE_MS;
    }
  }
}

/** The time until the next refresh; a token that expires before `minTtl` is refreshed at half its remaining lifetime. */
function waitMs({ expiresAt }: FileToken, { minTtl, clock }: RefreshedTokenFileOptions): number {
  if (expiresAt === undefined) return MAX_WAIT_MS;
  const left = expiresAt.getTime() - clock.epoch();
  const wanted = left > minTtl * 1000 ? left - minTtl * 1000 : left / 2;
  return Math.min(MAX_WAIT_MS, Math.max(MIN_WAIT_MS, wanted));
}

/** A folder for this run alone. */
function makeOwnFolder(folder: string): string {
  try {
    return mkdtempSync(join(folder, "exec-"));
  } catch (cause) {
    const isDenied = ["EACCES", "EPERM"].includes(codeOf(cause) ?? "");
    const hint = isDenied
      ? changingMode("700", folder, statOf(folder)?.uid)
      : "set AGENTAUTH_HOME to a folder that you can write to";
    throw storeError(`the folder ${folder} cannot be written`, cause, hint);
  }
}

function removeOwnFolder(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch (cause) {
    // If a file has replaced a parent folder, the token file is already gone.
    if (codeOf(cause) === "ENOTDIR") return;
    throw storeError(`the token file in ${path} cannot be removed`, cause, removeCommand(path, "folder"));
  }
}

/**
 * Writes the file, also if the token is the same: that marks its folder as in use. Creates and checks the folders again,
 * since they may have been removed and recreated.
 */
function write(path: string, { value }: FileToken, { folder }: RefreshedTokenFileOptions): void {
  makePrivateFolder(folder);
  checkPrivateFolder(folder);
  checkPrivateFolder(dirname(path));
  writePrivateFile(path, value);
}

/**
 * Files in use are written regularly: a folder that was not changed for a day belongs to a killed process. Folders that
 * cannot be examined or removed stay; they do no harm.
 */
function removeStaleFiles(folder: string, now: number): void {
  attempt(() => {
    for (const name of readdirSync(folder).filter((one) => one.startsWith("exec-"))) {
      const path = join(folder, name);
      attempt(() => {
        const stat = statOf(path);
        if (stat && now - stat.mtimeMs > STALE_MS) rmSync(path, { recursive: true, force: true });
      });
    }
  });
}
