import { afterAll, beforeAll, describe, expect } from "vitest";
import { type CliResult, runProcess } from "../helpers/cli.js";
import { HAS_SECRET_SERVICE, type SecretService, startSecretService } from "../helpers/secret-service.js";
import { filesBelow, flowTest, LOGIN_FLAGS, storedLogins } from "./support.js";

const it = flowTest();

async function succeed(args: readonly string[], env: Record<string, string>): Promise<CliResult> {
  const result = await runProcess(args, { env });
  expect(result.code, result.stderr).toBe(0);
  return result;
}

describe.skipIf(!HAS_SECRET_SERVICE)("a stored login with a key in the keychain", () => {
  let service: SecretService;

  beforeAll(async () => {
    service = await startSecretService();
  });
  afterAll(() => service.close());

  it("is sealed on the disk, and found again by the next command", async ({ me }) => {
    const env = { AGENTAUTH_HOME: me.home, AGENTAUTH_STORE: "keyring", ...service.env };
    const { stdout: token } = await succeed(["token", me.url, ...LOGIN_FLAGS], env);
    expect(storedLogins(me.home)).toHaveLength(2);
    for (const { text } of storedLogins(me.home))
      expect(text).toMatch(/^\{"schema":1,"kind":"sealed","alg":"A256GCM",/);
    for (const { text } of filesBelow(me.home)) expect(text).not.toContain(token.trim());
    expect((await succeed(["token", me.url], env)).stdout).toBe(token);
    const refreshed = await succeed(["token", me.url, "--force-refresh"], env);
    expect(refreshed.stdout).not.toBe(token);
    expect((await succeed(["token", me.url], env)).stdout).toBe(refreshed.stdout);
  });

  it("is one key for two commands that log in at once", async ({ me }) => {
    const env = { AGENTAUTH_HOME: me.home, AGENTAUTH_STORE: "keyring", ...service.env };
    for (const name of ["a", "b"]) await me.addProfile(name);
    await Promise.all(["a", "b"].map((name) => succeed(["token", me.url, "--profile", name, ...LOGIN_FLAGS], env)));
    for (const name of ["a", "b"]) await succeed(["token", me.url, "--profile", name], env);
  });
});
