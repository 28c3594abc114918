import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { loginCommand, loginRequired } from "../../../src/oauth/login/login-command.js";

const server = "https://mcp.example/mcp";
const STRANGE = ["a; touch x #", "$(touch x)", "it's", "two words", "`id`", 'a"b', "\u202etxt"];

/** What a shell makes of a command: its words. */
function words(command: string): string[] {
  const program = `agentauth() { for word in "$@"; do printf '%s\\n' "$word"; done; }; ${command}`;
  return execFileSync("sh", ["-c", program], { encoding: "utf8" }).trimEnd().split("\n");
}

describe.skipIf(process.platform === "win32")("the command that signs in", () => {
  it.each(STRANGE)("is for the profile that is named, and for the shell one word: %j", (profile) => {
    expect(words(loginCommand({ profile, server }))).toEqual(["login", server, "--profile", profile]);
    expect(words(loginRequired({ profile, server }, "no login").hint ?? "")).toContain(profile);
  });

  it.each(STRANGE)("is for the account that is named: %j", (account) => {
    expect(words(loginCommand({ profile: "default", server, account }))).toEqual([
      "login",
      server,
      "--account-hint",
      account,
    ]);
  });

  it("has scopes as one word, and none that read as a command", () => {
    const key = { profile: "default", server };
    expect(words(loginCommand(key, { scope: "a files:read" }))).toEqual(["login", server, "--scope", "a files:read"]);
    expect(words(loginCommand(key, { scope: "a $(touch)" }))).toEqual(["login", server]);
  });
});
