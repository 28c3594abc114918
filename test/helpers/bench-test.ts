import { test } from "vitest";
import type { SandboxOptions } from "../../src/sandbox/index.js";
import { startBench } from "./cli.js";

/** `it` with a sandbox for the file, and the environment of the program that uses it; each test starts without faults. */
export const benchTest = (options: SandboxOptions = {}) =>
  test
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
    .extend("fileBench", { scope: "file" }, async ({}, { onCleanup }) => {
      const bench = await startBench(options);
      onCleanup(() => bench.sandbox.close());
      return bench;
    })
    .extend("bench", ({ fileBench }, { onCleanup }) => {
      onCleanup(() => fileBench.sandbox.faults.clear());
      return fileBench;
    });
