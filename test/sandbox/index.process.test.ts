import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";

it("is imported without an HTTP server of Node, which only a sandbox that starts needs", () => {
  const entry = new URL("../../dist/sandbox/index.js", import.meta.url).href;
  const script = `await import(${JSON.stringify(entry)}); console.log(JSON.stringify(process.moduleLoadList));`;
  const output = execFileSync(process.execPath, ["--input-type=module", "--eval", script], { encoding: "utf8" });
  const loaded = JSON.parse(output) as string[];
  expect(loaded).toContain("NativeModule net");
  expect(loaded).not.toContain("NativeModule http");
});
