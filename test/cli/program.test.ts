import { Command } from "commander";
import { describe, expect } from "vitest";
import { COMMANDS } from "../../src/cli/commands/all.gen.js";
import { addLoginSettings } from "../../src/cli/flags/agent.js";
import { addGlobalFlags } from "../../src/cli/flags/global.js";
import { givenLoginFlags } from "../../src/cli/program.js";
import { cliHint, type HintContext } from "../../src/cli/runtime/hints.js";
import { AgentAuthError, type AgentAuthErrorOptions } from "../../src/errors.js";
import type { LoginRemedy } from "../../src/remedy.js";
import { declaredProgram } from "../helpers/program.js";
import { testbedTest } from "../helpers/testbed-test.js";

const it = testbedTest();

describe("AGENTAUTH_LOG", () => {
  it.for(["info", "debug"])("%s logs each request to stderr, and no token", async (level, { testbed }) => {
    const { code, stderr } = await testbed.run(testbed.pools, { env: { AGENTAUTH_LOG: level } });
    expect(code).toBe(0);
    expect(stderr).toContain(`> GET ${testbed.sandbox.baseUrl}/api/v1/pool`);
    expect(stderr.includes("authorization: Bearer")).toBe(level === "debug");
    expect(stderr).not.toContain(testbed.sandbox.apiToken);
  });

  it("is refused where it is no level", async ({ testbed }) => {
    const { code, stderr } = await testbed.run(testbed.pools, { env: { AGENTAUTH_LOG: "loud" } });
    expect(code).toBe(2);
    expect(stderr).toContain('AGENTAUTH_LOG "loud" must be one of info, debug');
    expect(testbed.deviceRequests()).toBe(0);
  });
});

const SERVER = "https://mcp.example/mcp";
const LOGIN = `agentauth login ${SERVER}`;

type About = Pick<AgentAuthErrorOptions, "hint" | "remedy">;

const login = (more: Partial<LoginRemedy> = {}, hint?: string): About => ({
  hint,
  remedy: { action: "login", server: SERVER, ...more },
});

/** The hint of an error that ends a command line. */
function hintAfter(
  words: readonly string[],
  details: About = login(),
  { as = "login", ...context }: HintContext & { as?: "login" | "exchange" } = {},
) {
  const root = addGlobalFlags(new Command("agentauth")).exitOverride();
  const command = addLoginSettings(root.command("token"), as)
    .argument("<url>")
    .option("--wait <id>")
    .action(() => {});
  if (as === "exchange") command.option("--scope <scopes>").option("--resource <uri>");
  root.parse(["token", SERVER, ...words], { from: "user" });
  const error = new AgentAuthError("login_required", "a login is required", { class: "auth", ...details });
  return cliHint(error, { flags: givenLoginFlags(command), ...context }).hint;
}

describe("the command that logs in, after a command with flags", () => {
  it.each<[string[], string]>([
    [["--client-id", "abc"], "--client-id abc"],
    [["--client-name", "My Agent"], "--client-name 'My Agent'"],
    [["--client-id=a b"], "--client-id 'a b'"],
    [["--resource", "https://mcp.example/"], "--resource https://mcp.example/"],
    [["--legacy-discovery", "--strict-resource"], "--legacy-discovery --strict-resource"],
    [["--same-origin-endpoints"], "--same-origin-endpoints"],
    [["--allow-missing-pkce-metadata"], "--allow-missing-pkce-metadata"],
    [["--allow-private-network"], "--allow-private-network"],
    [["--allow-cross-origin-metadata"], "--allow-cross-origin-metadata"],
    [["--allow-cross-origin-endpoints"], "--allow-cross-origin-endpoints"],
    [["--flow", "device"], "--flow device"],
    [["--redirect-host", "localhost", "--redirect-port", "4000"], "--redirect-host localhost --redirect-port 4000"],
    [["--client-metadata-url", "https://x.example/c"], "--client-metadata-url https://x.example/c"],
    [["--browser", "open '$1'"], "--browser 'open '\\''$1'\\'''"],
    [["--proxy", "http://p.example:1"], "--proxy http://p.example:1"],
    [["--ca-file", "/a b.pem"], "--ca-file '/a b.pem'"],
    [["--login-timeout", "2.5"], "--login-timeout 2.5"],
    [["--client-secret-file", "/secret"], "--client-secret-file /secret"],
    [["--scope", "$(x)"], "--scope '$(x)'"],
    [["--profile", "default"], "--profile default"],
  ])("has %j in it", (words, flags) => {
    expect(hintAfter(words)).toBe(`${LOGIN} ${flags}`);
  });

  it("is for an AI agent the login in two steps, which does not keep it waiting", () => {
    expect(hintAfter([], login(), { isForAgent: true })).toBe(`${LOGIN} --no-wait --json`);
    expect(hintAfter(["--wait", "id"], login(), { isForAgent: true })).toBe(`${LOGIN} --no-wait --json`);
    expect(hintAfter([], { hint: "agentauth status" }, { isForAgent: true })).toBe("agentauth status");
  });

  it("is the first of two steps, after the second one", () => {
    expect(hintAfter(["--wait", "id"])).toBe(`${LOGIN} --no-wait`);
    expect(hintAfter(["--wait", "id", "--client-id", "abc"])).toBe(`${LOGIN} --client-id abc --no-wait`);
    expect(hintAfter(["--wait", "id"], login({ account: "ann" }, "start another login"))).toBe(
      `start another login: ${LOGIN} --account-hint ann --no-wait`,
    );
  });

  it("has no flag twice", () => {
    const remedy = { profile: "work", account: "it's me", scope: "a b", dpop: "required" } as const;
    const hint = `${LOGIN} --profile work --account-hint 'it'\\''s me' --scope 'a b' --dpop required`;
    const words = ["--profile", "work", "--account-hint", "it's me", "--scope", "b", "--dpop", "required"];
    expect(hintAfter([], login(remedy))).toBe(hint);
    expect(hintAfter(words, login(remedy))).toBe(hint);
    expect(hintAfter([...words, "--flow", "paste"], login(remedy))).toBe(`${hint} --flow paste`);
  });

  it("has no flag that says something about the command alone", () => {
    expect(hintAfter(["--debug", "--timeout", "3", "--retries", "0", "--no-input", "--no-color"])).toBe(LOGIN);
    expect(hintAfter(["--scope", "x", "--resource", "https://y.example"], login(), { as: "exchange" })).toBe(LOGIN);
  });

  it("comes after what the error says beside it", () => {
    expect(hintAfter(["--client-id", "abc"], login({}, "log in to be asked again"))).toBe(
      `log in to be asked again: ${LOGIN} --client-id abc`,
    );
    expect(hintAfter(["--profile", "work"], login({ option: "clientId" }))).toBe(
      `name one with --client-id, or log in first: ${LOGIN} --profile work`,
    );
  });

  it("has no flags inside a sentence", () => {
    expect(hintAfter(["--client-id", "abc"], login({ option: "loginTimeoutMs" }, "log in again"))).toBe(
      `run ${LOGIN} again; --login-timeout <seconds> gives more time`,
    );
    expect(hintAfter(["--client-id", "abc"], login({ option: "scope" }))).toBe(
      `${LOGIN} --scope "<scopes>" asks for others`,
    );
  });

  it.each([undefined, "agentauth status lists them", LOGIN, `${LOGIN} --no-wait begins one`])(
    "is not looked for in a text: %j",
    (hint) => {
      expect(hintAfter(["--client-id", "abc"], { hint })).toBe(hint);
    },
  );
});

it("each declaration names the words that its command lines begin with", () => {
  const words = COMMANDS.flatMap(({ names, hiddenNames = [] }) => [...names, ...hiddenNames]);
  expect([...new Set(words)].sort()).toEqual(
    declaredProgram()
      .commands.map((command) => command.name())
      .sort(),
  );
});
