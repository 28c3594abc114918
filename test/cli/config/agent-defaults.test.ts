import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { withAgentDefaults } from "../../../src/cli/config/agent-defaults.js";
import { linesOf, runCli, temporaryFolder } from "../../helpers/cli.js";
import { declaredProgram } from "../../helpers/program.js";
import { startRun } from "../run-support.js";

const NOTE = "for an AI agent (AGENTAUTH_AGENT is set): JSON, no prompt, no browser; AGENTAUTH_AGENT=0 turns that off";
const AGENT = { AGENTAUTH_AGENT: "1" };

it("prints JSON for an agent, and says so", async () => {
  const { code, stdout, stderr } = await runCli(["config", "list"], { env: AGENT });
  expect([code, JSON.parse(stdout)[0].key, linesOf(stderr)]).toEqual([0, "profile", [NOTE]]);
});

it.each([[["-o", "plain"]], [["--json"]], [["--jq", ".[0].key"]]])("leaves the format to %j", async (flags) => {
  const args = ["config", "list", ...flags];
  expect(await runCli(args, { env: AGENT })).toEqual(await runCli(args));
});

it("leaves the format to the profile, and to the error of settings that are broken", async () => {
  const env = { ...AGENT, AGENTAUTH_HOME: temporaryFolder() };
  await runCli(["config", "set", "output", "plain"], { env });
  const chosen = await runCli(["config", "list"], { env });
  expect([chosen.stdout.split("\n")[0], chosen.stderr]).toEqual([
    expect.stringMatching(/^profile\tdefault\tline 3 of /),
    "",
  ]);
  writeFileSync(join(env.AGENTAUTH_HOME, "config.json"), "{");
  const { code, stdout, stderr } = await runCli(["config", "list"], { env });
  expect([code, stdout]).toEqual([2, ""]);
  expect(JSON.parse(linesOf(stderr).at(-1) ?? "").error.message).toContain("is not valid JSON");
});

it("leaves the browser to the flag that names one", async () => {
  const args = ["token", "https://mcp.example/mcp", "--browser", "x '"];
  const { code, stderr } = await runCli(args, { env: { ...AGENT, HTTPS_PROXY: "http://127.0.0.1:9" } });
  expect(code).toBe(2);
  expect(JSON.parse(linesOf(stderr).at(-1) ?? "").error.message).toBe(
    `the browser command "x '" has an unterminated '`,
  );
});

describe("what an agent gets that a flag does not name", () => {
  /** The defaults of a command, and whether the mode was announced. */
  function added(line: string, given: object, isRedirected = false) {
    const command = line.split(" ").reduce((parent, name) => {
      const found = parent.commands.find((one) => one.name() === name);
      if (found === undefined) throw new Error(`there is no ${line}`);
      return found;
    }, declaredProgram());
    let announced = 0;
    const { context } = startRun();
    const run = { ...context, io: { ...context.io, isRedirected: () => isRedirected } };
    const { ...options } = withAgentDefaults(command, given, { announce: () => void announced++ }, run);
    expect(announced).toBe("output" in options && !("output" in given) ? 1 : 0);
    return options;
  }
  const JSON_FORM = { output: "json" };
  const SHORT = { output: "json", brief: true };
  const NO_BROWSER = { browser: "none", input: false };

  it.each<[string, object, object]>([
    ["devices list", {}, SHORT],
    ["devices list", { limit: 5 }, JSON_FORM],
    ["devices list", { output: "id" }, {}],
    ["devices list", { json: true }, {}],
    ["devices list", { jq: "." }, {}],
    ["devices list", { columns: "id" }, {}],
    ["devices report", { html: "x" }, {}],
    ["devices report", {}, JSON_FORM],
    ["devices get", {}, JSON_FORM],
    ["commands", {}, SHORT],
    ["commands", { path: [] }, SHORT],
    ["commands", { path: ["devices"] }, JSON_FORM],
    ["commands", { path: "devices" }, SHORT],
    ["config list", {}, JSON_FORM],
    ["config path", {}, {}],
    ["token", {}, NO_BROWSER],
    ["token", { browser: "x" }, {}],
    ["token", { flow: "paste" }, {}],
    ["token", { grant: "jwt-bearer" }, {}],
    ["token", { login: true }, {}],
    ["token", { login: false }, NO_BROWSER],
    ["login", {}, { ...NO_BROWSER, isForAgent: true, ...JSON_FORM }],
    ["login", { wait: "id" }, { ...NO_BROWSER, isForAgent: true, ...JSON_FORM }],
    ["mcp tools", {}, { ...NO_BROWSER, ...JSON_FORM }],
  ])("%s with %j", (line, given, expected) => {
    expect(added(line, given)).toEqual({ ...given, ...expected });
  });

  it("is no format for an output into a file", () => {
    expect(added("devices list", {}, true)).toEqual({});
  });
});
