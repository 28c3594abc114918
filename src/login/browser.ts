import type { ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { loadSpawn, system, withoutOurs } from "../platform/system.js";
import { checkBrowserUrl } from "./browser-url.js";
import { commandWords } from "./command-words.js";

/** A program that cannot open the address exits within this time. One that runs longer is taken for the browser itself. */
const WATCH_MS = 3_000;

/** How the browser is chosen. */
export interface BrowserOptions {
  /** A command that gets the address as its last argument, or `none`. Default: `$BROWSER`, then the system's browser. */
  command?: string | undefined;
  /** The environment of the command, and the source of `BROWSER`. */
  env: Readonly<Record<string, string | undefined>>;
  /** Stops watching the browser; does not close it. */
  signal?: AbortSignal | undefined;
}

/** `opened` as far as is known; `failed` when the user must open the address; `skipped` when no browser is wanted. */
export type BrowserResult = "opened" | "failed" | "skipped";

/** Opens the user's browser at an address. */
export type OpenBrowser = (url: string, options: BrowserOptions) => Promise<BrowserResult>;

/**
 * Opens the user's browser at an address; the caller has printed the address already, because this may fail. No shell is
 * involved, and a browser that cannot be started is no error.
 *
 * @throws AgentAuthError `bad_address` for an address that no browser should be sent to
 */
export const openBrowser: OpenBrowser = async (url, { command, env, signal }) => {
  const target = checkBrowserUrl(url, "the login address", "the authorization server");
  const chosen = command ?? chosenByEnvironment(env);
  if (chosen === "none") return "skipped";
  try {
    const child =
      chosen === undefined ? await startDefault(target) : startCommand(chosen, target, env, await loadSpawn());
    return await watch(child, signal);
  } catch {
    return "failed";
  }
};

/** The value of `$BROWSER`; a blank one is unset. */
export function chosenByEnvironment(env: BrowserOptions["env"]): string | undefined {
  const value = env["BROWSER"]?.trim();
  return value === "" ? undefined : value;
}

async function startDefault(target: string): Promise<ChildProcess> {
  const { open } = await import("#packages/open");
  return open(target);
}

function startCommand(
  command: string,
  target: string,
  env: BrowserOptions["env"],
  spawn: Awaited<ReturnType<typeof loadSpawn>>,
): ChildProcess {
  const [program = "", ...words] = commandWords(command, existsSync);
  return spawn(program, [...words, target], {
    // Explicit, because the address comes from a server.
    shell: false,
    stdio: "ignore",
    // A separate process group, so that Ctrl-C does not end the browser. On Windows it would open a console instead.
    detached: system.name !== "win32",
    windowsHide: true,
    env: withoutOurs(env),
  });
}

function watch(child: ChildProcess, signal: AbortSignal | undefined): Promise<BrowserResult> {
  child.unref();
  return new Promise((resolve) => {
    const settle = (result: BrowserResult) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      resolve(result);
    };
    const stop = () => settle("opened");
    const timer = setTimeout(stop, WATCH_MS);
    signal?.addEventListener("abort", stop, { once: true });
    child.once("error", () => settle("failed"));
    child.once("exit", (code) => settle(code === 0 ? "opened" : "failed"));
    // It may have exited before the listener was added.
    if (child.exitCode !== null) settle(child.exitCode === 0 ? "opened" : "failed");
    else if (signal?.aborted) stop();
  });
}
