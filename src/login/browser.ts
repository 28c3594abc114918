import { type ChildProcess, spawn } from "node:child_process";
import { checkBrowserUrl } from "./browser-url.js";
import { commandWords } from "./command-words.js";

/** Time in which a program that cannot open the address ends. One that runs longer is taken for the browser itself. */
const WATCH_MS = 3_000;

/** How the browser is chosen. */
export interface BrowserOptions {
  /** A command that gets the address as its last argument, or `none`. Default: `$BROWSER`, then the system's browser. */
  command?: string | undefined;
  /** The environment of the command, and the source of `BROWSER`. */
  env: Readonly<Record<string, string | undefined>>;
  /** Ends the watching, not the browser. */
  signal?: AbortSignal | undefined;
}

/** `opened` as far as can be told; `failed` when a person must open the address; `skipped` when nobody wants a browser. */
export type BrowserResult = "opened" | "failed" | "skipped";

/** Sends a person's browser to an address. */
export type OpenBrowser = (url: string, options: BrowserOptions) => Promise<BrowserResult>;

/**
 * Sends a person's browser to an address; the caller has shown the address already, since this may fail. No shell takes
 * part, and a browser that cannot be started is no error.
 *
 * @throws AgentAuthError `bad_address` for an address that no browser should be sent to
 */
export const openBrowser: OpenBrowser = async (url, { command, env, signal }) => {
  const target = checkBrowserUrl(url, "the sign-in address", "the authorization server");
  const chosen = command ?? chosenByEnvironment(env);
  if (chosen === "none") return "skipped";
  try {
    const child = chosen === undefined ? await startDefault(target) : startCommand(chosen, target, env);
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
  const { default: open } = await import("open");
  return open(target);
}

function startCommand(command: string, target: string, env: BrowserOptions["env"]): ChildProcess {
  const [program = "", ...words] = commandWords(command);
  return spawn(program, [...words, target], {
    // Said, not left to the default: the address comes from a server.
    shell: false,
    stdio: "ignore",
    // A group of its own, so that Ctrl-C here does not end the browser. On Windows it would open a console instead.
    detached: process.platform !== "win32",
    windowsHide: true,
    env: withoutOurs(env),
  });
}

/** Our own settings hold credentials, which are none of the browser's business. */
function withoutOurs(env: BrowserOptions["env"]): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.toUpperCase().startsWith("AGENTAUTH_")));
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
    // It may have ended before anybody listened.
    if (child.exitCode !== null) settle(child.exitCode === 0 ? "opened" : "failed");
    else if (signal?.aborted) stop();
  });
}
