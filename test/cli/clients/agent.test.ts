import { describe, expect } from "vitest";
import { QUESTION, questionTest } from "../../flow/issuer-question-support.js";
import { type RunOptions, runCli } from "../../helpers/cli.js";

const it = questionTest.extend("run", ({ args, env }) => (flags: readonly string[], options: RunOptions) => {
  return runCli([...args, ...flags], { ...options, env });
});

describe("a login by a client with a secret", () => {
  it("sends nothing where the answer is no", async ({ run, scene }) => {
    const { code, stderr } = await run([], { tty: true, stdin: "no\n" });
    expect([code, stderr]).toEqual([3, expect.stringContaining(QUESTION)]);
    expect(stderr).toContain(`--issuer ${scene.issuer.issuer}`);
    expect(scene.issuer.to("/pool/authorize")).toEqual([]);
    expect(scene.issuer.to("/pool/token")).toEqual([]);
  });

  it("asks no question with --no-input, or without a terminal", async ({ run }) => {
    const quiet = await run(["--no-input"], { tty: true });
    expect(quiet.code).toBe(3);
    expect(quiet.stdout + quiet.stderr).not.toContain(QUESTION);
    const piped = await run([], {});
    expect([piped.code, piped.stderr]).toEqual([3, expect.stringContaining("--issuer")]);
  });
});
