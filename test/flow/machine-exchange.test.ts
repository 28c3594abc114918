import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeJwt } from "jose";
import { describe, expect } from "vitest";
import { temporaryFolder } from "../helpers/cli.js";
import { machineTest } from "./machine-support.js";
import { LOGIN_FLAGS } from "./support.js";

const API = "https://api.example";
/** `alice` has logged in with the scopes "a b". */
const it = machineTest({ exchangeAudiences: [API, "billing"] }).extend(
  "alice",
  { scope: "file" },
  async ({ harness }) => {
    const alice = harness.user();
    await alice.logIn("--scope", "a b");
    return alice;
  },
);

describe("exchange", () => {
  it("prints a token of the user for another audience, and nothing else", async ({ alice, url }) => {
    const { code, stdout, stderr } = await alice.run(["exchange", url, "--audience", API]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout.endsWith("\n")).toBe(true);
    expect(decodeJwt(stdout.trim())).toMatchObject({ sub: "alice", aud: API, scope: "a b" });
  });

  it("requests fewer scopes, and names a resource with --resource", async ({ alice, machine, url }) => {
    const flags = ["--resource", API, "--scope", "a", "--format", "json"];
    const { stdout } = await alice.run(["exchange", url, ...flags]);
    const said = JSON.parse(stdout) as Record<string, unknown>;
    expect(said).toMatchObject({
      issued_token_type: "urn:ietf:params:oauth:token-type:access_token",
      token_type: "Bearer",
      scope: "a",
      issuer: machine.issuer,
    });
    expect(said["expires_in"]).toBeGreaterThan(3500);
  });

  it.for([
    ["header", /^Authorization: Bearer eyJ\S+\n$/],
    ["headers-json", /^\{"Authorization":"Bearer eyJ[^"]+"\}\n$/],
    ["env", /^AGENTAUTH_TOKEN=eyJ\S+\n$/],
  ] as const)("prints it as %s", async ([format, expected], { alice, url }) => {
    expect((await alice.run(["exchange", url, "--audience", API, "--format", format])).stdout).toMatch(expected);
  });

  it("exchanges a machine's own token", async ({ as, machine, me, secretEnv, url }) => {
    await me.run(["login", url, ...as.service()], { env: secretEnv });
    const { stdout } = await me.run(["exchange", url, "--audience", "billing"]);
    expect(decodeJwt(stdout.trim())).toMatchObject({ sub: machine.secretClient.clientId, aud: "billing" });
  });

  it("logs the user in first, with --login", async ({ me, url }) => {
    const { code, stdout } = await me.run(["exchange", url, "--audience", API, ...LOGIN_FLAGS]);
    expect(code).toBe(0);
    expect(decodeJwt(stdout.trim())).toMatchObject({ sub: "alice" });
  });

  it.for(["file", "stdin", "environment"] as const)(
    "reads the subject token from %s, and does not store it",
    async (from, { alice, machine, me, secretEnv, url }) => {
      const subject = (await alice.run(["token", url])).stdout.trim();
      const path = join(temporaryFolder(), "subject");
      writeFileSync(path, `${subject}\n`, { mode: 0o600 });
      const named = { file: ["--subject-token-file", path], stdin: ["--subject-token-file", "-"], environment: [] };
      const env = { ...secretEnv, ...(from === "environment" && { AGENTAUTH_SUBJECT_TOKEN: subject }) };
      const flags = [
        ...named[from],
        "--client-id",
        machine.secretClient.clientId,
        "--issuer",
        machine.issuer,
        "--audience",
        API,
      ];
      const { code, stdout, stderr } = await me.run(["exchange", url, ...flags], { env, stdin: subject });
      expect([code, stderr]).toEqual([0, ""]);
      expect(decodeJwt(stdout.trim())).toMatchObject({ sub: "alice", aud: API });
      expect(await me.grants()).toEqual([]);
    },
  );

  it.for<[string, string[], number, RegExp]>([
    ["an audience that the issuer does not serve", ["--audience", "other"], 6, /invalid_target/],
    ["scopes that the token does not have", ["--audience", API, "--scope", "c"], 6, /invalid_scope/],
    ["no audience", [], 2, /--audience/],
    ["a type that is none", ["--audience", API, "--subject-token-type", "paper"], 2, /"paper" is not a token type/],
    ["a type of nothing", ["--audience", API, "--subject-token-type", "jwt"], 2, /--subject-token-file/],
  ])("ends for %s, with nothing on standard output", async ([, flags, exit, said], { alice, url }) => {
    const { code, stdout, stderr } = await alice.run(["exchange", url, ...flags]);
    expect([code, stdout]).toEqual([exit, ""]);
    expect(stderr).toMatch(said);
  });

  it("of a token from another issuer does not print the token", async ({ alice, url }) => {
    const flags = ["--subject-token-file", "-", "--audience", API, "-v"];
    const { code, stdout, stderr } = await alice.run(["exchange", url, ...flags], { stdin: "canary-subject-token" });
    expect([code, stdout]).toEqual([6, ""]);
    expect(stderr).toContain("invalid_request");
    expect(stderr).not.toContain("canary-subject-token");
  });

  it("needs a client where no login is stored", async ({ me, url }) => {
    const { code, stderr } = await me.run(["exchange", url, "--audience", API], {
      env: { AGENTAUTH_SUBJECT_TOKEN: "some-subject-token" },
    });
    expect(code).toBe(4);
    expect(stderr).toMatch(/--client-id/);
    expect(me.requests()).toEqual([]);
  });
});
