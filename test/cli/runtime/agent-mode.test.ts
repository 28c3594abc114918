import { describe, expect } from "vitest";
import { benchTest } from "../../helpers/bench-test.js";
import { linesOf, runCli, temporaryFolder } from "../../helpers/cli.js";

const NOTE = (name: string) =>
  `for an AI agent (${name}): JSON, no prompt, no browser; AGENTAUTH_AGENT=0 turns that off`;
const CLAUDE = { CLAUDECODE: "1" };

const it = benchTest({ devices: 3 });

describe("where an AI agent runs the program", () => {
  it.for<[string, Record<string, string>, string]>([
    ["Claude Code", CLAUDE, "claude"],
    ["Codex", { CODEX_SANDBOX: "seatbelt" }, "codex"],
    ["Cursor", { CURSOR_AGENT: "1" }, "cursor"],
    ["one that names itself", { AI_AGENT: "mine" }, "mine"],
    ["one that somebody says is there", { AGENTAUTH_AGENT: "1" }, "AGENTAUTH_AGENT is set"],
  ])("lists are JSON and stderr says so: %s", async ([_who, env, name], { bench }) => {
    const { code, stdout, stderr } = await bench.run(bench.devices, { env });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toHaveLength(3);
    const [note, brief, ...more] = linesOf(stderr);
    expect([note, more]).toEqual([NOTE(name), []]);
    expect(JSON.parse(brief ?? "")).toMatchObject({ shown: 3, total: 3, next: null });
  });

  it.for<[string, Record<string, string>]>([
    ["nobody", {}],
    ["CI", { CI: "true", GITHUB_ACTIONS: "true" }],
    ["an agent that is not to count", { ...CLAUDE, AGENTAUTH_AGENT: "0" }],
  ])("and not for %s", async ([_who, env], { bench }) => {
    const { stdout, stderr } = await bench.run(bench.devices, { env });
    expect([stdout.startsWith("dev_"), stderr]).toEqual([true, ""]);
  });

  it("flags and the profile's format come first, and the line on stderr can be hushed", async ({ bench }) => {
    for (const flags of [["-o", "plain"], ["-o", "csv"], ["--output=id"]]) {
      const explicit = await bench.run([...bench.devices, ...flags], { env: CLAUDE });
      expect(explicit).toEqual(await bench.run([...bench.devices, ...flags]));
    }
    expect((await bench.run([...bench.devices, "--quiet"], { env: CLAUDE })).stderr).toBe("");
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    await bench.run(["config", "set", "output", "id"], { env });
    const { stdout, stderr } = await bench.run(bench.devices, { env: { ...env, ...CLAUDE } });
    expect([linesOf(stdout).every((line) => /^dev_\w+$/.test(line)), stderr]).toEqual([true, ""]);
  });

  it.each([["doctor"], ["config", "list"], ["profile", "list"], ["commands"], ["sandbox", "status"]])(
    "%s %s is JSON too",
    async (...args) => {
      const { stdout } = await runCli(args.filter(Boolean), { env: CLAUDE });
      expect(() => JSON.parse(stdout)).not.toThrow();
    },
  );

  it("a watched list is a JSON event a line", async ({ bench }) => {
    const { stdout } = await bench.run([...bench.devices, "--watch", "--until", "length > 0"], { env: CLAUDE });
    expect(linesOf(stdout).map((line) => JSON.parse(line).type)).toEqual(["added", "added", "added"]);
  });

  it("errors are JSON on the last line of stderr, those of the parser too", async () => {
    for (const args of [
      ["devices", "list"],
      ["devices", "list", "--lmit"],
      ["token", "https://mcp.example/mcp"],
    ]) {
      const { stdout, stderr } = await runCli(args, { env: { ...CLAUDE, HTTPS_PROXY: "http://127.0.0.1:9" } });
      const [note, json = "", ...more] = linesOf(stderr);
      expect([stdout, note, more]).toEqual(["", NOTE("claude"), []]);
      expect(JSON.parse(json)).toEqual({ error: expect.objectContaining({ message: expect.any(String) }) });
    }
    const text = await runCli(["devices", "list", "-o", "table"], { env: CLAUDE });
    expect(text.stderr).toMatch(/^error: .*no pool is named\nhint: /);
  });
});
