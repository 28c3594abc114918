import { test } from "vitest";
import { type SandboxOptions, startSandbox } from "../../src/sandbox/index.js";

/** `it` with a sandbox for the file. */
export const sandboxTest = (options: SandboxOptions) =>
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
  test.extend("sandbox", { scope: "file" }, async ({}, { onCleanup }) => {
    const sandbox = await startSandbox(options);
    onCleanup(() => sandbox.close());
    return sandbox;
  });
