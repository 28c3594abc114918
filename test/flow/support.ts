import { readdirSync, readFileSync, statSync, watch, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished, test, vi } from "vitest";
import type { Grant } from "../../src/oauth/model/grant.js";
import type { SandboxOptions } from "../../src/sandbox/index.js";
import { fileStore } from "../../src/store/file/file.js";
import { collect, type RunOptions, runCli, startCli, startTestbed, temporaryFolder } from "../helpers/cli.js";

export { fastClock } from "../helpers/fast-clock.js";

/** A browser, as a command: this process opens the address that the command gets. */
export function browserCommand(visit: (address: string) => Promise<unknown>): string {
  const folder = temporaryFolder();
  const [script, addresses] = [join(folder, "browser.sh"), join(folder, "addresses")];
  writeFileSync(script, `printf '%s\\n' "$1" >> '${addresses}'\n`);
  writeFileSync(addresses, "");
  let opened = 0;
  watch(addresses, { persistent: false }, () => {
    const lines = readFileSync(addresses, "utf8").split("\n").slice(0, -1);
    for (const address of lines.slice(opened)) {
      opened++;
      // A run that has ended does not send its page to the end.
      visit(address).catch(() => {});
    }
  });
  return `sh "${script}"`;
}

/** A browser that follows the redirects and reads the page at their end. */
export const FETCH_BROWSER = browserCommand(async (address) => (await fetch(address)).text());

/** The flags of a user who logs in at once. */
export const LOGIN_FLAGS = ["--login", "--browser", FETCH_BROWSER];

/** A sandbox, and home folders for the runs of the program against it. */
export async function startHarness(options: SandboxOptions = {}) {
  const testbed = await startTestbed({ autoApprove: true, ...options });
  const { sandbox } = testbed;
  return {
    sandbox,
    url: sandbox.mcpUrl,
    devices: testbed.devices,
    /** A folder without a login. */
    user() {
      const home = temporaryFolder();
      const env = { ...testbed.env, AGENTAUTH_HOME: home };
      const since = sandbox.requests.length;
      const logIn = async (...flags: string[]) => {
        const result = await runCli(["token", sandbox.mcpUrl, ...flags, ...LOGIN_FLAGS], { env });
        if (result.code !== 0) throw new Error(result.stderr);
        return result;
      };
      return {
        home,
        url: sandbox.mcpUrl,
        /** `agentauth token`, with a browser; it has to succeed. */
        logIn,
        run: (args: readonly string[], more: RunOptions = {}) =>
          runCli(args, { ...more, env: { ...env, ...more.env } }),
        /** A child process that still runs, with its output so far. */
        start(args: readonly string[], more: Record<string, string> = {}, options: Omit<RunOptions, "env"> = {}) {
          const child = startCli(args, { ...options, env: { ...env, ...more } });
          return { child, out: collect(child.stdout), err: collect(child.stderr) };
        },
        /** The requests to the sandbox since: method, path without the pool, operation, status. */
        requests: () =>
          sandbox.requests.slice(since).map(({ method, path, operation = "", status }) => {
            const short = path.replace(sandbox.ids.pool, "<pool>");
            return [method, short, operation, status].filter((part) => part !== "").join(" ");
          }),
        grants: (): Promise<Grant[]> => fileStore(home).list(),
        /** Stores a profile; only a stored one can be named. */
        async addProfile(name: string): Promise<void> {
          const args = ["config", "set", "base_url", sandbox.baseUrl, "--profile", name];
          const { code, stderr } = await runCli(args, { env });
          if (code !== 0) throw new Error(stderr);
        },
        /** Makes the stored token look as if it had this many seconds left. */
        async age(secondsLeft: number): Promise<void> {
          const store = fileStore(home);
          for (const grant of await store.list()) {
            const expiresAt = Date.now() + secondsLeft * 1000;
            const tokens = { ...grant.tokens, expiresAt, obtainedAt: expiresAt - 3_600_000 };
            await store.save({ ...grant, tokens, generation: grant.generation + 1 }, grant.generation);
          }
        },
        /** The only grant. */
        async grant(): Promise<Grant> {
          const [grant, ...more] = await fileStore(home).list();
          if (!grant || more.length > 0) throw new Error("one login was expected");
          return grant;
        },
      };
    },
    close: () => sandbox.close(),
  };
}

export type Harness = Awaited<ReturnType<typeof startHarness>>;
export type User = ReturnType<Harness["user"]>;

/**
 * `it` with a sandbox for the file, its faults (cleared after each case), a home folder for each case, and one login
 * that the cases of the file share.
 */
export const flowTest = (options: SandboxOptions = {}) =>
  test
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
    .extend("harness", { scope: "file" }, async ({}, { onCleanup }) => {
      const harness = await startHarness(options);
      onCleanup(() => harness.close());
      return harness;
    })
    .extend("url", { scope: "file" }, ({ harness }) => harness.url)
    .extend("faults", ({ harness }, { onCleanup }) => {
      const { faults } = harness.sandbox;
      onCleanup(() => faults.clear());
      return faults;
    })
    .extend("me", ({ harness }) => harness.user())
    .extend("user", { scope: "file" }, async ({ harness }) => {
      const user = harness.user();
      return { ...user, token: (await user.logIn()).stdout.trim() };
    });

/** Until the case ends, timers of this process that wait for a second or more fire `factor` times as early. */
export function speedUpTimers(factor: number): void {
  const { setTimeout } = globalThis;
  const faster = (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
    setTimeout(run, ms < 1000 ? ms : ms / factor, ...args);
  vi.stubGlobal("setTimeout", faster);
  onTestFinished(() => void vi.unstubAllGlobals());
}

/** The address that the issuer redirects the browser to after a login, not yet opened. */
export async function callbackOf(logIn: URL | string): Promise<string> {
  const { headers, status } = await fetch(logIn, { redirect: "manual" });
  const location = headers.get("location");
  if (location === null) throw new Error(`no redirect but ${status}`);
  return location;
}

/** Every file below a folder with its text and its mode; folders too, without a text. */
export function filesBelow(folder: string): { path: string; mode: number; text: string }[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry) => {
    const path = join(entry.parentPath, entry.name);
    return { path, mode: statSync(path).mode & 0o777, text: entry.isFile() ? readFileSync(path, "utf8") : "" };
  });
}

/** The files of the stored logins and clients. */
export const storedLogins = (home: string) =>
  filesBelow(home).filter(({ path }) => /(grants|clients).*\.json$/.test(path));

/** The address to log in at, as the program printed it; undefined until then. */
export function loginUrl(said: string): URL | undefined {
  const line = /^ {2}(https?:\S+)$/m.exec(said)?.[1];
  return line === undefined ? undefined : new URL(line);
}
