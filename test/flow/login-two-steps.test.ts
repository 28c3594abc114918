import { once } from "node:events";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { until } from "../helpers/cli.js";
import { flowTest, loginUrl, type User } from "./support.js";

const it = flowTest();

interface Begun {
  login_id: string;
  url: string;
  finish: string;
}

async function begin(me: User, ...flags: string[]): Promise<Begun> {
  const { code, stdout, stderr } = await me.run(["login", me.url, "--no-wait", "--json", ...flags]);
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as Begun;
}

const fileOf = (me: User, { login_id }: Begun) => join(me.home, "logins", `${login_id}.json`);

/** Runs a command that waits for the user, who then logs in. */
async function finish(me: User, args: readonly string[], address: string) {
  const waiting = me.start(args);
  await until(() => loginUrl(waiting.err()) !== undefined || waiting.child.exitCode !== null);
  if (waiting.child.exitCode === null) await fetch(address);
  if (waiting.child.exitCode === null) await once(waiting.child, "close");
  return { code: waiting.child.exitCode, stdout: waiting.out(), stderr: waiting.err() };
}

const accounts = async (me: User) => (await me.grants()).map(({ account }) => account ?? "").sort();

describe("a login in two steps of one account of several", () => {
  it("leaves the other account as it is, finished by the command that was printed", async ({ me, url }) => {
    await me.logIn();
    const { tokens } = await me.grant();
    const begun = await begin(me, "--account-hint", "alice");
    expect(begun.finish).toBe(`agentauth login ${url} --wait ${begun.login_id} --account-hint alice`);
    const { code, stdout } = await finish(me, [...begun.finish.split(" ").slice(1), "--json"], begun.url);
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { logged_in: true, account: "alice" }]);
    expect(await accounts(me)).toEqual(["", "alice"]);
    const first = (await me.grants()).find(({ account }) => account === undefined);
    expect(first?.tokens.accessToken.reveal()).toBe(tokens.accessToken.reveal());
  });

  it("is for that account also where the second command does not name it", async ({ me, url }) => {
    await me.logIn();
    const begun = await begin(me, "--account-hint", "alice");
    expect((await finish(me, ["login", url, "--wait", begun.login_id], begun.url)).code).toBe(0);
    expect(await accounts(me)).toEqual(["", "alice"]);
  });

  it("is not finished by a command that names another account, and can be finished after that", async ({ me, url }) => {
    const ofAlice = await begin(me, "--account-hint", "alice");
    const ofNobody = await begin(me);
    const asBob = await me.run(["login", url, "--wait", ofAlice.login_id, "--account-hint", "bob"]);
    expect([asBob.code, asBob.stderr]).toEqual([2, expect.stringContaining('is for "alice", not for')]);
    expect(asBob.stderr).toContain(`agentauth login ${url} --account-hint bob --no-wait\n`);
    const named = await me.run(["login", url, "--wait", ofNobody.login_id, "--account-hint", "bob"]);
    expect([named.code, named.stderr]).toEqual([2, expect.stringContaining("was started without an account")]);
    expect((await finish(me, ofAlice.finish.split(" ").slice(1), ofAlice.url)).code).toBe(0);
    expect(await accounts(me)).toEqual(["alice"]);
  });
});

describe("a login in two steps whose file is damaged", () => {
  it.for([
    [
      "lacks the disabled checks",
      (members: Record<string, unknown>) => delete members["overrides"],
      "overrides is not",
    ],
    [
      "has no redirect address",
      (members: Record<string, unknown>) => Object.assign(members["pending"] as object, { redirectUri: "" }),
      "redirectUri is not an address",
    ],
  ] as const)(
    "ends at once, and the error names the file and the remedy, where it %s",
    async ([, damage, why], { me, url }) => {
      const begun = await begin(me);
      const members = JSON.parse(readFileSync(fileOf(me, begun), "utf8")) as Record<string, unknown>;
      damage(members);
      writeFileSync(fileOf(me, begun), JSON.stringify(members));
      const { code, stdout, stderr } = await me.run(["login", url, "--wait", begun.login_id]);
      expect([code, stdout]).toEqual([8, ""]);
      expect(stderr).toContain(`error: the file ${fileOf(me, begun)} cannot be used: ${why}`);
      expect(stderr).toContain(`hint: start the login again: agentauth login ${url} --no-wait\n`);
      expect(existsSync(fileOf(me, begun))).toBe(true);
    },
  );
});

describe("a login in two steps that cannot be stored", () => {
  it("is an error of the store where the folder of logins cannot be read", async ({ me, url }) => {
    writeFileSync(join(me.home, "logins"), "this is no folder");
    const { code, stdout, stderr } = await me.run(["login", url, "--no-wait"]);
    expect([code, stdout]).toEqual([8, ""]);
    expect(stderr).toMatch(/^error: the files in \S+logins cannot be used: scandir failed \(ENOTDIR\)/);
  });

  it("does not begin where its grant could not be stored", async ({ me, url }) => {
    writeFileSync(join(me.home, "grants"), "this is no folder");
    const { code, stdout } = await me.run(["login", url, "--no-wait"]);
    expect([code, stdout]).toEqual([8, ""]);
    expect(me.requests().filter((request) => request.includes("/register"))).toEqual([]);
    expect(existsSync(join(me.home, "logins"))).toBe(false);
  });

  it("does not finish where its grant can no longer be stored, and can be finished later", async ({ me }) => {
    const begun = await begin(me);
    rmSync(join(me.home, "grants"), { recursive: true, force: true });
    writeFileSync(join(me.home, "grants"), "this is no folder");
    expect((await me.run(begun.finish.split(" ").slice(1))).code).toBe(8);
    rmSync(join(me.home, "grants"));
    expect((await finish(me, begun.finish.split(" ").slice(1), begun.url)).code).toBe(0);
    expect(await accounts(me)).toEqual([""]);
  });
});
