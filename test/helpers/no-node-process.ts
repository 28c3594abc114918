import type { ChildProcess } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { basename } from "node:path";
import { expect } from "vitest";

const started: string[] = [];

// Each Node process costs as much CPU time as ten cases in this process.
subscribe("child_process", (message) => {
  const { process: child } = message as { process: ChildProcess };
  const announced = child as unknown as { spawn(options: { file?: string; args?: string[] }): unknown };
  const { spawn } = announced;
  announced.spawn = (options) => {
    const words = (options.args ?? []).join(" ");
    // The program reads the keychain in a Node process, since the native module blocks its thread.
    const isKeychain = words.includes("keyring.Entry");
    if (/^(?:node|npm|npx)$/.test(basename(options.file ?? "")) && !isKeychain) started.push(words);
    return spawn.call(child, options);
  };
});

/** Fails the test that started a Node process. */
export function checkNoNodeProcess(): void {
  expect(started.splice(0), "a test that starts Node belongs in a *.process.test.ts").toEqual([]);
}
