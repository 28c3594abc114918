import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));

describe("npm run generate", () => {
  const missing = ["src/api/schema.gen.ts", "src/api/shapes.gen.ts"];
  const stale = ["src/cli/commands/schema/service.gen.json"];
  const others = ["src/cli/commands/schema/outputs.gen.json", "src/cli/commands/all.gen.ts", "docs/lists.md"];
  const pages = [
    "docs/man/agentauth.1",
    "docs/cli.md",
    "docs/cli-tokens.md",
    "docs/performance.md",
    "lab/bench/README.md",
  ];
  const generate = (...args: string[]) =>
    spawnSync(process.execPath, [join(copy, "scripts/generate.mjs"), ...args], { encoding: "utf8" });
  let copy: string;

  beforeAll(() => {
    copy = mkdtempSync(join(tmpdir(), "agentauth-contract-"));
    const sources = [
      "scripts/generate.mjs",
      "scripts/generate",
      "src",
      "test/vendors",
      "lab/bench/lib",
      "lab/bench/README.md",
      "lab/bench/results.json",
      "docs/conformance.md",
      "docs/events.md",
      "docs/lists.md",
      "docs/performance.md",
      "lab/foreign/results.json",
      "openapi.yaml",
      "package.json",
    ];
    for (const file of [...sources, "tsconfig.json"]) cpSync(join(root, file), join(copy, file), { recursive: true });
    symlinkSync(join(root, "node_modules"), join(copy, "node_modules"), "junction");
    for (const file of missing) rmSync(join(copy, file));
  });
  afterAll(() => rmSync(copy, { recursive: true, force: true }));

  const complaint = (file: string) => `${file} differs from openapi.yaml: run "npm run generate"`;

  it("finds files missing and stale, leaves them as they are, and writes them", () => {
    for (const file of stale) writeFileSync(join(copy, file), "{}\n");
    const check = generate("--check");
    expect(check.status).toBe(1);
    for (const file of [...missing, ...stale]) expect(check.stderr).toContain(complaint(file));
    for (const file of missing) expect(existsSync(join(copy, file))).toBe(false);
    for (const file of stale) expect(readFileSync(join(copy, file), "utf8")).toBe("{}\n");

    expect(generate()).toMatchObject({ status: 0, stderr: "" });
    for (const file of [...missing, ...stale, ...others, ...pages])
      expect(readFileSync(join(copy, file), "utf8")).toBe(readFileSync(join(root, file), "utf8"));
  });

  it("fails on a constraint that the table of shapes does not support", () => {
    const text = readFileSync(join(root, "openapi.yaml"), "utf8");
    const pattern = "          pattern: ^[A-Z]{2}$\n";
    writeFileSync(join(copy, "openapi.yaml"), text.replace(pattern, `${pattern}          maxLength: 2\n`));
    const run = generate();
    expect(run.status).toBe(1);
    expect(run.stderr).toContain('InteractionDetails.country_code: the table of shapes does not support "maxLength"');
  });
});
