import { once } from "node:events";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { until } from "../helpers/cli.js";
import { type Desk, type Newcomer, signInUrl, startDesk } from "./support.js";

let desk: Desk;
let me: Newcomer;
let url: string;

beforeAll(async () => {
  desk = await startDesk();
  url = desk.url;
});
afterAll(() => desk.close());
beforeEach(() => {
  me = desk.newcomer();
});

interface Begun {
  login_id: string;
  url: string;
  finish: string;
}

async function begin(...flags: string[]): Promise<Begun> {
  const { code, stdout, stderr } = await me.run(["login", url, "--no-wait", "--json", ...flags]);
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as Begun;
}

const fileOf = ({ login_id }: Begun) => join(me.home, "logins", `${login_id}.json`);

/** Runs a command that waits for a person, who then comes. */
async function finish(args: readonly string[], address: string) {
  const waiting = me.start(args);
  await until(() => signInUrl(waiting.err()) !== undefined || waiting.child.exitCode !== null);
  if (waiting.child.exitCode === null) await fetch(address);
  if (waiting.child.exitCode === null) await once(waiting.child, "close");
  return { code: waiting.child.exitCode, stdout: waiting.out(), stderr: waiting.err() };
}

const accounts = async () => (await me.grants()).map(({ account }) => account ?? "").sort();

describe("a login in two steps of one account of several", () => {
  it("leaves the other one as it is, finished by the command that was printed", async () => {
    await me.signIn();
    const { tokens } = await me.grant();
    const begun = await begin("--account-hint", "alice");
    expect(begun.finish).toBe(`agentauth login ${url} --wait ${begun.login_id} --account-hint alice`);
    const { code, stdout } = await finish([...begun.finish.split(" ").slice(1), "--json"], begun.url);
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { signed_in: true, account: "alice" }]);
    expect(await accounts()).toEqual(["", "alice"]);
    const first = (await me.grants()).find(({ account }) => account === undefined);
    expect(first?.tokens.accessToken.reveal()).toBe(tokens.accessToken.reveal());
  });

  it("is for that account also where the second command does not name it", async () => {
    await me.signIn();
    const begun = await begin("--account-hint", "alice");
    expect((await finish(["login", url, "--wait", begun.login_id], begun.url)).code).toBe(0);
    expect(await accounts()).toEqual(["", "alice"]);
  });

  it("is not finished by a command that names another account, and can be finished after that", async () => {
    const ofAlice = await begin("--account-hint", "alice");
    const ofNobody = await begin();
    const asBob = await me.run(["login", url, "--wait", ofAlice.login_id, "--account-hint", "bob"]);
    expect([asBob.code, asBob.stderr]).toEqual([2, expect.stringContaining('is for "alice", not for')]);
    expect(asBob.stderr).toContain(`agentauth login ${url} --no-wait --account-hint bob\n`);
    const named = await me.run(["login", url, "--wait", ofNobody.login_id, "--account-hint", "bob"]);
    expect([named.code, named.stderr]).toEqual([2, expect.stringContaining("was started without an account")]);
    expect((await finish(ofAlice.finish.split(" ").slice(1), ofAlice.url)).code).toBe(0);
    expect(await accounts()).toEqual(["alice"]);
  });
});

describe("a login in two steps whose file is damaged", () => {
  it.each([
    ["lacks what was lifted", (members: Record<string, unknown>) => delete members["overrides"], "overrides is not"],
    [
      "has no redirect address",
      (members: Record<string, unknown>) => Object.assign(members["pending"] as object, { redirectUri: "" }),
      "redirectUri is not an address",
    ],
  ])("ends at once with the file and the way on where it %s", async (_what, damage, why) => {
    const begun = await begin();
    const members = JSON.parse(readFileSync(fileOf(begun), "utf8")) as Record<string, unknown>;
    damage(members);
    writeFileSync(fileOf(begun), JSON.stringify(members));
    const { code, stdout, stderr } = await me.run(["login", url, "--wait", begun.login_id]);
    expect([code, stdout]).toEqual([8, ""]);
    expect(stderr).toContain(`error: the file ${fileOf(begun)} cannot be used: ${why}`);
    expect(stderr).toContain(`hint: start the login again: agentauth login ${url} --no-wait\n`);
    expect(existsSync(fileOf(begun))).toBe(true);
  });
});

describe("a login in two steps that cannot be kept", () => {
  it("is an error of the store where the folder of logins cannot be read", async () => {
    writeFileSync(join(me.home, "logins"), "this is no folder");
    const { code, stdout, stderr } = await me.run(["login", url, "--no-wait"]);
    expect([code, stdout]).toEqual([8, ""]);
    expect(stderr).toMatch(/^error: the files in \S+logins cannot be used: scandir failed \(ENOTDIR\)/);
  });

  it("does not begin where its grant could not be kept", async () => {
    writeFileSync(join(me.home, "grants"), "this is no folder");
    const { code, stdout } = await me.run(["login", url, "--no-wait"]);
    expect([code, stdout]).toEqual([8, ""]);
    expect(me.asked().filter((request) => request.includes("/register"))).toEqual([]);
    expect(existsSync(join(me.home, "logins"))).toBe(false);
  });

  it("does not finish where its grant cannot be kept any more, and can be finished later", async () => {
    const begun = await begin();
    rmSync(join(me.home, "grants"), { recursive: true, force: true });
    writeFileSync(join(me.home, "grants"), "this is no folder");
    expect((await me.run(begun.finish.split(" ").slice(1))).code).toBe(8);
    rmSync(join(me.home, "grants"));
    expect((await finish(begun.finish.split(" ").slice(1), begun.url)).code).toBe(0);
    expect(await accounts()).toEqual([""]);
  });
});
