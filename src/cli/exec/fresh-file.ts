import { mkdtempSync, readdirSync, rmSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { AccessToken } from "../../oauth/access-token.js";
import { checkPrivateFolder, makePrivateFolder, writePrivateFile } from "../../store/private-file.js";

/** What a file needs to know of a token. */
export type FileToken = Pick<AccessToken, "value" | "expiresAt">;

/** What keeps a file fresh. */
export interface FreshFileOptions {
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
export interface FreshFile {
  readonly path: string;
  /** Removes it. */
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
export function keepFresh(options: FreshFileOptions): FreshFile {
  const { first } = options;
  makePrivateFolder(options.folder);
  checkPrivateFolder(options.folder);
  removeLeftBehind(options.folder, options.now());
  const own = mkdtempSync(join(options.folder, "exec-"));
  const remove = () => rmSync(own, { recursive: true, force: true });
  // Also where the process ends in another way than by stop().
  process.once("exit", remove);
  const path = join(own, "token");
  const controller = new AbortController();
  let work = Promise.resolve();
  try {
    writePrivateFile(path, first.value);
    work = renew(path, options, controller.signal);
  } catch (error) {
    remove();
    throw error;
  }
  return {
    path,
    async stop() {
      controller.abort();
      await work;
      remove();
      process.off("exit", remove);
    },
  };
}

async function renew(path: string, options: FreshFileOptions, signal: AbortSignal): Promise<void> {
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
        writePrivateFile(path, next.value);
      }
      token = next;
      isTold = false;
      wait = waitFor(token, options);
      const now = options.now() / 1000;
      utimesSync(path, now, now);
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
function waitFor({ expiresAt }: FileToken, { minTtl, now }: FreshFileOptions): number {
  if (expiresAt === undefined) return SELDOM_MS;
  const left = expiresAt.getTime() - now();
  const wanted = left > minTtl * 1000 ? left - minTtl * 1000 : left / 2;
  return Math.min(SELDOM_MS, Math.max(SOON_MS, wanted));
}

/** What is in use is touched all the time; what has not been for a day is of a process that was killed. */
function removeLeftBehind(folder: string, now: number): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const touched =
      statSync(join(path, "token"), { throwIfNoEntry: false }) ?? statSync(path, { throwIfNoEntry: false });
    if (name.startsWith("exec-") && touched && now - touched.mtimeMs > LEFT_BEHIND_MS) {
      rmSync(path, { recursive: true, force: true });
    }
  }
}
