import { once } from "node:events";
import {
  collect,
  linesOf,
  type ReadyLine,
  type RunOptions,
  runCli,
  startCli,
  temporaryFolder,
  until,
} from "../../../helpers/cli.js";

/** `agentauth sandbox start -o json` in the test's process. */
export async function startOwnSandbox(args: readonly string[] = [], home = temporaryFolder()) {
  const env = { AGENTAUTH_HOME: home };
  const run = startCli(["sandbox", "start", "-o", "json", ...args], { env });
  const closed = once(run, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  const [out, err] = [collect(run.stdout), collect(run.stderr)];
  await Promise.race([until(() => out().includes("\n")), closed]);
  if (!out().includes("\n")) throw new Error(`the sandbox did not start: ${err()}`);
  const exitCode = closed.then(([code]) => code);
  return {
    home,
    /** Resolves when the run has ended. */
    exitCode,
    ready: JSON.parse(linesOf(out())[0] ?? "") as ReadyLine,
    run: (more: readonly string[], options: RunOptions = {}) =>
      runCli(more, { ...options, env: { ...env, ...options.env } }),
    /** Ends it and returns its exit code. */
    async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
      run.kill(signal);
      return exitCode;
    },
  };
}

/** What {@link startOwnSandbox} returns. */
export type OwnSandbox = Awaited<ReturnType<typeof startOwnSandbox>>;
