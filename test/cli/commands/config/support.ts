import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "vitest";
import { type CliResult, type RunOptions, runCli, startTestbed, temporaryFolder } from "../../../helpers/cli.js";

/**
 * `it` with a sandbox for the file, and for each case a home folder that does not exist yet, the program there (in this
 * process, or as `start` runs it) and its settings.
 */
export const configTest = (start: (args: readonly string[], options: RunOptions) => Promise<CliResult> = runCli) =>
  test
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
    .extend("testbed", { scope: "file" }, async ({}, { onCleanup }) => {
      const testbed = await startTestbed({ devices: 5 });
      onCleanup(() => testbed.sandbox.close());
      return testbed;
    })
    .extend("home", () => join(temporaryFolder(), "below", "home"))
    .extend("run", ({ home }) => {
      return (args: readonly string[], options: RunOptions = {}) =>
        start(args, { ...options, env: { AGENTAUTH_HOME: home, ...options.env } });
    })
    .extend("set", ({ run }) => async (key: string, value: string, ...more: string[]): Promise<void> => {
      const { code, stderr } = await run(["config", "set", key, value, ...more]);
      if (code !== 0) throw new Error(stderr);
    })
    .extend("writeSettings", ({ home }) => (text: string) => {
      mkdirSync(home, { recursive: true, mode: 0o700 });
      writeFileSync(join(home, "config.json"), text);
    });

/** The permissions of a file or folder, in octal. */
export const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
