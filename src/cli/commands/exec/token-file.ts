import { mkdtempSync, readdirSync, rmSync, statSync, utimesSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { AccessToken } from "../../../oauth/grant/access-token.js";
import { shellWord } from "../../../redact.js";
import { checkPrivateFolder, makePrivateFolder, writePrivateFile } from "../../../store/file/private-file.js";
import { storeError } from "../../../store/store-error.js";

/** What a file needs to know of a token. */
export type FileToken = Pick<AccessToken, "value" | "expiresAt">;

/** What keeps a file fresh. */
export interface RefreshedTokenFileOptions {
  /** The folder in which the file gets one of its own. */
  folder: string;
  /** The token to begin with. */
  first: FileToken;
  /** Gives the token of now, a renewed one where that is due. */
  ask(signal: AbortSignal): Promise<FileToken>;
  /** Hears of a new token before the file has it. */
  onToken(token: string): void;
  /** Hears once of each run of failures; it is tried again. */
  onTrouble(error: unknown): void;
  /** Seconds before its end at which a token is renewed. */
  minTtl: number;
  /** Milliseconds since the epoch. */
  now(): number;
  /** Waits, and returns at once when the signal fires. */
  pause?(ms: number, signal: AbortSignal): Promise<unknown>;
}

/** A private file that holds a token that is good. */
export interface RefreshedTokenFile {
  readonly path: string;
  /**
   * Removes it.
   *
   * @throws `AgentAuthError` `store_failed` where it cannot be removed
   */
  stop(): Promise<void>;
}

const SOON_MS = 1000;
const AFTER_TROUBLE_MS = 10_000;
// Another process may renew the token too, and a machine that slept wakes up to one that has ended.
const SELDOM_MS = 30_000;
const LEFT_BEHIND_MS = 24 * 3600 * 1000;

/**
 * Writes the token, and nothing but it, into a file of mode 0600 in a folder of mode 0700, and writes each later one over
 * it, whole, until it is stopped.
 *
 * @throws `AgentAuthError` `store_failed` where there is no private place for it
 */
export function keepTokenFileFresh(options: RefreshedTokenFileOptions): RefreshedTokenFile {
  const { first } = options;
  makePrivateFolder(options.folder);
  checkPrivateFolder(options.folder);
  removeLeftBehind(options.folder, options.now());
  const own = makeOwnFolder(options.folder);
  const atExit = () => void attempt(() => removeOwnFolder(own));
  // Also where the process ends in another way than by stop().
  process.once("exit", atExit);
  const path = join(own, "token");
  const controller = new AbortController();
  let work = Promise.resolve();
  try {
    writePrivateFile(path, first.value);
    work = renew(path, options, controller.signal);
  } catch (error) {
    atExit();
    throw error;
  }
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

async function renew(path: string, options: RefreshedTokenFileOptions, signal: AbortSignal): Promise<void> {
  let { first: token } = options;
  let isTold = false;
  const { pause = pauseByTimer } = options;
  let wait = waitFor(token, options);
  for (;;) {
    await pause(wait, signal);
    if (signal.aborted) return;
    try {
      const next = await options.ask(signal);
      if (next.value !== token.value) {
        options.onToken(next.value);
        write(path, next, options);
      }
      token = next;
      touch(path, token, options);
      wait = waitFor(token, options);
      isTold = false;
    } catch (error) {
      if (signal.aborted) return;
      if (!isTold) options.onTrouble(error);
      isTold = true;
      wait = AFTER_TROUBLE_MS;
    }
  }
}

function pauseByTimer(ms: number, signal: AbortSignal): Promise<unknown> {
  return sleep(ms, undefined, { signal }).catch(() => undefined);
}

/** Until the token is to be renewed; one that lives shorter than that is renewed at half of what is left. */
function waitFor({ expiresAt }: FileToken, { minTtl, now }: RefreshedTokenFileOptions): number {
  if (expiresAt === undefined) return SELDOM_MS;
  const left = expiresAt.getTime() - now();
  const wanted = left > minTtl * 1000 ? left - minTtl * 1000 : left / 2;
  return Math.min(SELDOM_MS, Math.max(SOON_MS, wanted));
}

/** A folder for this run alone. */
function makeOwnFolder(folder: string): string {
  try {
    return mkdtempSync(join(folder, "exec-"));
  } catch (cause) {
    const mayNot = ["EACCES", "EPERM"].includes((cause as NodeJS.ErrnoException).code ?? "");
    const hint = mayNot ? `chmod 700 ${shellWord(folder)}` : "set AGENTAUTH_HOME to a folder that you can write to";
    throw storeError(`the folder ${folder} cannot be written`, cause, hint);
  }
}

function removeOwnFolder(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch (cause) {
    // Where a file has taken the place of a folder above it, it has gone already.
    if ((cause as NodeJS.ErrnoException).code === "ENOTDIR") return;
    throw storeError(`the token file in ${path} cannot be removed`, cause, `rm -r ${shellWord(path)}`);
  }
}

/** Also where the folders have gone since: whoever made them again is looked at as at the beginning. */
function write(path: string, { value }: FileToken, { folder }: RefreshedTokenFileOptions): void {
  makePrivateFolder(folder);
  checkPrivateFolder(folder);
  checkPrivateFolder(dirname(path));
  writePrivateFile(path, value);
}

/** Shows that the file is in use, and brings it back where somebody has taken it away. */
function touch(path: string, token: FileToken, options: RefreshedTokenFileOptions): void {
  const now = options.now() / 1000;
  try {
    utimesSync(path, now, now);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    write(path, token, options);
  }
}

/**
 * What is in use is touched all the time; what has not been for a day is of a process that was killed. What cannot be
 * looked at or removed stays: it is in nobody's way.
 */
function removeLeftBehind(folder: string, now: number): void {
  for (const name of attempt(() => readdirSync(folder)) ?? []) {
    const path = join(folder, name);
    attempt(() => {
      const touched =
        statSync(join(path, "token"), { throwIfNoEntry: false }) ?? statSync(path, { throwIfNoEntry: false });
      if (name.startsWith("exec-") && touched && now - touched.mtimeMs > LEFT_BEHIND_MS) {
        rmSync(path, { recursive: true, force: true });
      }
    });
  }
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
