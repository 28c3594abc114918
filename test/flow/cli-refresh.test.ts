import { describe, expect } from "vitest";
import { runCli } from "../helpers/cli.js";
import { until } from "../helpers/server.js";
import { ON_WINDOWS } from "../helpers/systems.js";
import { flowTest } from "./support.js";

const it = flowTest();

const onUnix = describe.skipIf(ON_WINDOWS);

describe("agentauth token, when the token has expired", () => {
  const refreshes = (requested: readonly string[]) => requested.filter((line) => line.includes("refresh_token"));

  it("logs the refresh with -v, without a secret", async ({ me, url }) => {
    await me.logIn();
    await me.age(-10);
    const { stdout, stderr } = await me.run(["token", url, "-v"]);
    expect(stderr).toMatch(/refreshing the token for http:\S+ at http:\S+\/token/);
    const { tokens } = await me.grant();
    for (const secret of [stdout.trim(), tokens.refreshToken?.reveal() ?? "?"]) expect(stderr).not.toContain(secret);
  });

  it("prints the token that is still valid where the answer was lost, and status warns", async ({
    faults,
    me,
    url,
  }) => {
    await me.logIn();
    await me.age(30);
    const { accessToken } = (await me.grant()).tokens;
    faults.add({ kind: "reset-after", path: "token", times: 1 });
    const first = await me.run(["token", url, "-v"]);
    expect(first).toMatchObject({ code: 0, stdout: `${accessToken.reveal()}\n` });
    expect(first.stderr).toContain("was lost (connection_reset): the stored token is used until it expires");
    expect(await me.run(["token", url])).toMatchObject({ code: 0, stdout: `${accessToken.reveal()}\n` });
    expect(refreshes(me.requests())).toHaveLength(1);
    const status = await me.run(["status", "-o", "json"]);
    expect(status.stderr).toMatch(/warning: the answer to the refresh of the token for "\S+" was lost at \S+Z: /);
    expect(JSON.parse(status.stdout)).toMatchObject([{ state: "valid", refresh_lost_at: expect.any(String) }]);
  });

  it("keeps two profiles and two accounts of a server apart", async ({ me, url }) => {
    await me.addProfile("work");
    for (const flags of [[], ["--profile", "work"], ["--account-hint", "bob"]]) await me.logIn(...flags);
    expect(await me.grants()).toHaveLength(3);
    const token = async (...flags: string[]) => (await me.run(["token", url, ...flags])).stdout;
    const tokens = await Promise.all([token(), token("--profile", "work"), token("--account-hint", "bob")]);
    expect(new Set(tokens).size).toBe(3);
    await me.run(["logout", url, "--account-hint", "bob"]);
    expect((await me.grants()).map(({ account }) => account)).toEqual([undefined, undefined]);
  });
});

onUnix("agentauth token, interrupted during a refresh", () => {
  it.for([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)(
    "finishes and stores the refresh after %s, then ends with %i",
    async ([signal, exitCode], { faults, me, url }) => {
      await me.logIn();
      const before = await me.grant();
      faults.add({ kind: "slow-headers", ms: 1500, path: "token", times: 1 });
      const { child, out } = me.start(["token", url, "--force-refresh"]);
      const ended = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
      const isAsking = () => faults.list().some(({ fired }) => fired > 0);
      await until(isAsking);
      child.kill(signal);
      expect(await ended).toBe(exitCode);
      expect(out()).toBe("");
      const after = await me.grant();
      expect(after.generation).toBe(before.generation + 1);
      expect(after.tokens.accessToken.reveal()).not.toBe(before.tokens.accessToken.reveal());
      const next = await runCli(["token", url], { env: { AGENTAUTH_HOME: me.home } });
      expect(next.stdout.trim()).toBe(after.tokens.accessToken.reveal());
    },
  );
});
