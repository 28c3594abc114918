import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { addAgentFlags } from "../../../src/cli/flags/agent.js";
import { addGlobalFlags } from "../../../src/cli/flags/global.js";
import { withHintFlags } from "../../../src/cli/runtime/hint-flags.js";
import { AgentAuthError } from "../../../src/errors.js";
import { loginCommand } from "../../../src/oauth/login/login-command.js";

const SERVER = "https://mcp.example/mcp";
const LOGIN = `agentauth login ${SERVER}`;

/** The hint of an error that ends a command line. */
function hintAfter(words: readonly string[], hint: string | undefined, which: "all" | "login" = "all") {
  const root = addGlobalFlags(new Command("agentauth")).exitOverride();
  const command = addAgentFlags(root.command("token"), which)
    .argument("<url>")
    .action(() => {});
  if (which === "login") command.option("--scope <scopes>").option("--resource <uri>");
  root.parse(["token", SERVER, ...words], { from: "user" });
  const error = new AgentAuthError("login_required", "sign-in is needed", { class: "auth", hint });
  return withHintFlags(error, command).hint;
}

describe("the command that signs in, after a command with flags", () => {
  it.each<[string[], string]>([
    [["--client-id", "abc"], "--client-id abc"],
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
    expect(hintAfter(words, LOGIN)).toBe(`${LOGIN} ${flags}`);
  });

  it("is for an AI agent the login in two steps, which does not keep it waiting", () => {
    const command = new Command("token");
    const error = (hint: string) => new AgentAuthError("login_required", "sign-in is needed", { class: "auth", hint });
    expect(withHintFlags(error(LOGIN), command, true).hint).toBe(`${LOGIN} --no-wait --json`);
    expect(withHintFlags(error(`${LOGIN} --no-wait --json`), command, true).hint).toBe(`${LOGIN} --no-wait --json`);
    expect(withHintFlags(error("agentauth status"), command, true).hint).toBe("agentauth status");
  });

  it("has no flag twice", () => {
    const key = { profile: "work", server: SERVER, account: "it's me" };
    const hint = loginCommand(key, { scope: "a b", dpop: "required" });
    const words = ["--profile", "work", "--account-hint", "it's me", "--scope", "b", "--dpop", "required"];
    expect(hintAfter(words, hint)).toBe(hint);
    expect(hintAfter([...words, "--flow", "paste"], hint)).toBe(`${hint} --flow paste`);
  });

  it("has no flag that says something about the command alone", () => {
    expect(hintAfter(["--debug", "--timeout", "3", "--retries", "0", "--no-input", "--no-color"], LOGIN)).toBe(LOGIN);
    expect(hintAfter(["--scope", "x", "--resource", "https://y.example"], LOGIN, "login")).toBe(LOGIN);
  });

  it.each([`to be asked again: ${LOGIN}`, `the login has to begin anew: ${LOGIN} --no-wait`])(
    "is found in %j",
    (hint) => {
      expect(hintAfter(["--client-id", "abc"], hint)).toBe(`${hint} --client-id abc`);
    },
  );

  it.each([
    undefined,
    "agentauth status lists the servers",
    `run ${LOGIN} again; --login-timeout <seconds> gives more time`,
    `${LOGIN} --no-wait starts one`,
    "agentauth login <mcp_url>",
    `${LOGIN}${' --a "b"'.repeat(2000)} \u0000'`,
  ])("is not taken for what it is not: %j", (hint) => {
    expect(hintAfter(["--client-id", "abc"], hint)).toBe(hint);
  });
});
