import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCli } from "../helpers/cli.js";
import { until } from "../helpers/server.js";
import { type Desk, startDesk } from "./support.js";

const onUnix = describe.skipIf(process.platform === "win32");

describe("agentauth token, when the token has expired", () => {
  let desk: Desk;
  beforeAll(async () => {
    desk = await startDesk();
  });
  afterAll(() => desk.close());

  const renewals = (asked: readonly string[]) => asked.filter((line) => line.includes("refresh_token"));

  it("says with -v what it does, and shows nothing secret by it", async () => {
    const user = desk.newcomer();
    await user.signIn();
    await user.age(-10);
    const { stdout, stderr } = await user.run(["token", desk.url, "-v"]);
    expect(stderr).toMatch(/refreshing the token for http:\S+ at http:\S+\/token/);
    const { tokens } = await user.grant();
    for (const secret of [stdout.trim(), tokens.refreshToken?.reveal() ?? "?"]) expect(stderr).not.toContain(secret);
  });

  it("asks once more where the answer was lost, and goes on where the issuer allows for that", async () => {
    const kind = await startDesk({ refreshReuseGrace: 5 });
    try {
      const user = kind.newcomer();
      await user.signIn();
      await user.age(-10);
      kind.sandbox.faults.add({ kind: "reset-after", path: "token", times: 1 });
      expect(await user.run(["token", kind.url])).toMatchObject({ code: 0 });
      expect(renewals(user.asked())).toHaveLength(2);
      expect((await user.grant()).retired).toBeUndefined();
    } finally {
      await kind.close();
    }
  });

  it("ends with 4 and the cause where the answer was lost and the issuer allows for nothing", async () => {
    const user = desk.newcomer();
    await user.signIn();
    await user.age(-10);
    desk.sandbox.faults.add({ kind: "reset-after", path: "token", times: 1 });
    const { code, stdout, stderr } = await user.run(["token", desk.url]);
    expect([code, stdout]).toEqual([4, ""]);
    expect(stderr).toContain("invalid_grant; the response to the first attempt was lost");
    expect(stderr).toContain(`agentauth login ${desk.url}`);
  });

  it("prints the token that still lives where the answer was lost, and status warns of what may follow", async () => {
    const user = desk.newcomer();
    await user.signIn();
    await user.age(30);
    const { accessToken } = (await user.grant()).tokens;
    desk.sandbox.faults.add({ kind: "reset-after", path: "token", times: 1 });
    const first = await user.run(["token", desk.url, "-v"]);
    expect(first).toMatchObject({ code: 0, stdout: `${accessToken.reveal()}\n` });
    expect(first.stderr).toContain("was lost (connection_reset): the stored token is used until it expires");
    expect(await user.run(["token", desk.url])).toMatchObject({ code: 0, stdout: `${accessToken.reveal()}\n` });
    expect(renewals(user.asked())).toHaveLength(1);
    const status = await user.run(["status", "-o", "json"]);
    expect(status.stderr).toMatch(/warning: the answer to the refresh of the token for "\S+" was lost at \S+Z: /);
    expect(JSON.parse(status.stdout)).toMatchObject([{ state: "valid", refresh_lost_at: expect.any(String) }]);
  });

  it("keeps two profiles and two accounts of a server apart", async () => {
    const user = desk.newcomer();
    await user.addProfile("work");
    for (const flags of [[], ["--profile", "work"], ["--account-hint", "bob"]]) await user.signIn(...flags);
    expect(await user.grants()).toHaveLength(3);
    const token = async (...flags: string[]) => (await user.run(["token", desk.url, ...flags])).stdout;
    const tokens = await Promise.all([token(), token("--profile", "work"), token("--account-hint", "bob")]);
    expect(new Set(tokens).size).toBe(3);
    await user.run(["logout", desk.url, "--account-hint", "bob"]);
    expect((await user.grants()).map(({ account }) => account)).toEqual([undefined, undefined]);
  });
});

onUnix("agentauth token, when it is ended during a refresh", () => {
  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("finishes and stores the refresh after %s, then ends with %i", async (signal, exitCode) => {
    const desk = await startDesk();
    try {
      const user = desk.newcomer();
      await user.signIn();
      const before = await user.grant();
      desk.sandbox.faults.add({ kind: "slow-headers", ms: 1500, path: "token", times: 1 });
      const { child, out } = user.start(["token", desk.url, "--force-refresh"]);
      const ended = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
      const isAsking = () => desk.sandbox.faults.list().some(({ fired }) => fired > 0);
      await until(isAsking);
      child.kill(signal);
      expect(await ended).toBe(exitCode);
      expect(out()).toBe("");
      const after = await user.grant();
      expect(after.generation).toBe(before.generation + 1);
      expect(after.tokens.accessToken.reveal()).not.toBe(before.tokens.accessToken.reveal());
      const next = await runCli(["token", desk.url], { env: { AGENTAUTH_HOME: user.home } });
      expect(next.stdout.trim()).toBe(after.tokens.accessToken.reveal());
    } finally {
      await desk.close();
    }
  });
});
