import { test } from "vitest";
import type { SandboxOptions } from "../../src/sandbox/index.js";
import { startTestbed } from "./cli.js";

/** `it` with a sandbox for the file, and the environment of the program that uses it; each test starts without faults. */
export const testbedTest = (options: SandboxOptions = {}) =>
  test
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
    .extend("fileTestbed", { scope: "file" }, async ({}, { onCleanup }) => {
      const testbed = await startTestbed(options);
      onCleanup(() => testbed.sandbox.close());
      return testbed;
    })
    .extend("testbed", ({ fileTestbed }, { onCleanup }) => {
      onCleanup(() => fileTestbed.sandbox.faults.clear());
      return fileTestbed;
    });
