import { describe, expect } from "vitest";
import type { Grant } from "../../src/oauth/model/grant.js";
import { linesOf } from "../helpers/cli.js";
import { FETCH_BROWSER, flowTest, LOGIN_FLAGS, speedUpTimers } from "./support.js";

const it = flowTest({ revocation: true });

const revocationPath = async (me: { grant(): Promise<Grant> }) =>
  new URL((await me.grant()).endpoints.revocation ?? "").pathname;

describe("agentauth logout", () => {
  it("prints nothing on standard output without an output format", async ({ me, url }) => {
    await me.logIn();
    expect(await me.run(["logout", url])).toMatchObject({ code: 0, stdout: "", stderr: `logged out of ${url}\n` });
  });

  it("reports its result as JSON, also where no login is stored", async ({ me, url }) => {
    await me.logIn();
    const first = await me.run(["logout", url, "--json"]);
    const out = { server: url, profile: "default", account: null, removed: true, revoked: true, error: null };
    const apart = { session_ended: null, expires_at: null };
    expect([first.code, JSON.parse(first.stdout)]).toEqual([0, [{ ...out, ...apart }]]);
    const second = await me.run(["logout", url, "-o", "json"]);
    expect([second.code, JSON.parse(second.stdout)]).toMatchObject([0, [{ ...out, removed: false, revoked: null }]]);
    const all = await me.run(["logout", "--all", "--json"]);
    expect([all.code, all.stdout, all.stderr]).toEqual([0, "[]\n", "not logged in\n"]);
  });

  it("names the profile, and leaves the logins of other profiles", async ({ me, url }) => {
    await me.addProfile("work");
    await me.logIn();
    await me.logIn("--profile", "work");
    const { stdout } = await me.run(["logout", "--all", "--profile", "work", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject([{ server: url, profile: "work", removed: true }]);
    expect((await me.grants()).map(({ profile }) => profile)).toEqual(["default"]);
  });

  it("removes the login where the issuer fails, and reports why in a warning and in JSON", async ({
    faults,
    me,
    url,
  }) => {
    await me.logIn();
    faults.add({ kind: "status", status: 503, path: await revocationPath(me), times: 0 });
    const { code, stdout, stderr } = await me.run(["logout", url, "--json"]);
    expect([code, await me.grants()]).toEqual([0, []]);
    expect(JSON.parse(stdout)).toMatchObject([{ removed: true, revoked: false, error: expect.stringMatching(/\w/) }]);
    expect(stderr).toMatch(
      /^warning: logged out of \S+ locally, but its refresh token was not revoked \(.+\), nor was its access token: the next login or logout tries again; the access token stays valid until \d{4}-\S+Z$/m,
    );
  });

  it("is tried again by the next logout or login where the issuer failed", async ({ faults, me, url }) => {
    for (const next of [
      ["logout", url],
      ["login", url, "--browser", FETCH_BROWSER],
    ]) {
      await me.logIn();
      faults.add({ kind: "status", status: 503, path: await revocationPath(me), times: 2 });
      await me.run(["logout", url]);
      expect((await me.run(next)).stderr).toContain("revoked the tokens of 1 earlier logout\n");
    }
  });

  it("removes the login where the issuer does not answer in time", async ({ faults, me, url }) => {
    await me.logIn();
    faults.add({ kind: "slow-headers", ms: 60_000, path: await revocationPath(me), times: 0 });
    speedUpTimers(5);
    const { code, stdout } = await me.run(["logout", url, "--json"]);
    expect([code, await me.grants()]).toEqual([0, []]);
    expect(JSON.parse(stdout)).toMatchObject([
      { removed: true, revoked: false, error: expect.stringContaining("5 s") },
    ]);
  });

  it("--all logs out of everything and lists it", async ({ harness, me, url }) => {
    const other = `${url}/${harness.sandbox.ids.pool}`;
    await me.logIn();
    await me.run(["token", other, ...LOGIN_FLAGS]);
    const { code, stdout, stderr } = await me.run(["logout", "--all", "-o", "plain"]);
    expect(code).toBe(0);
    expect(
      linesOf(stdout)
        .map((line) => line.split("\t").slice(0, 3))
        .sort(),
    ).toEqual(expect.arrayContaining([expect.arrayContaining([url]), expect.arrayContaining([other])]));
    expect(linesOf(stderr)).toHaveLength(2);
    expect(await me.grants()).toEqual([]);
  });

  it("--all logs out of every account at a server, and of the login without one", async ({ me }) => {
    await me.logIn();
    await me.logIn("--account-hint", "alice");
    const { code, stdout } = await me.run(["logout", "--all", "--json"]);
    expect([code, JSON.parse(stdout)]).toMatchObject([0, [{ removed: true }, { removed: true }]]);
    expect(await me.grants()).toEqual([]);
  });

  it("--all is refused for one account, and then logs out of nothing", async ({ me, url }) => {
    await me.logIn();
    await me.logIn("--account-hint", "alice");
    const { code, stdout, stderr } = await me.run(["logout", "--all", "--account-hint", "alice"]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain("hint: leave out --all: agentauth logout <mcp_url> --account-hint alice\n");
    expect(await me.grants()).toHaveLength(2);
    expect((await me.run(["logout", url, "--account-hint", "alice"])).code).toBe(0);
    expect((await me.grants()).map(({ account }) => account)).toEqual([undefined]);
  });

  it("needs one server or --all, and not both", async ({ me, url }) => {
    expect((await me.run(["logout"])).code).toBe(2);
    expect((await me.run(["logout", url, "--all"])).code).toBe(2);
  });
});
