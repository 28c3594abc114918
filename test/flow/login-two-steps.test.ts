import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { until } from "../helpers/cli.js";
import { CLOSED_PORT } from "../helpers/port.js";
import { callbackOf, fastClock, flowTest, loginUrl, type User } from "./support.js";

const it = flowTest({ deviceFlow: true });

interface Started {
  login_id: string;
  flow: string;
  url: string;
  user_code: string;
  verification_uri: string;
  verification_uri_complete: string;
  finish: string;
}

async function begin(me: User, ...flags: string[]): Promise<Started> {
  const { code, stdout, stderr } = await me.run(["login", me.url, "--no-wait", "--json", ...flags]);
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as Started;
}

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

const wait = (me: User, { login_id }: Started, ...flags: string[]) =>
  me.run(["login", me.url, "--wait", login_id, ...flags]);

describe("a device login in two steps", () => {
  it("prints the code, and polls for the tokens at the issuer's interval", async ({ me }) => {
    const started = await begin(me, "--flow", "device");
    expect(started).toMatchObject({
      flow: "device",
      login_id: expect.stringMatching(/^[\w-]{12}$/),
      user_code: expect.stringMatching(/\S/),
      verification_uri: expect.stringContaining("http"),
      url: started.verification_uri_complete,
      finish: `agentauth login ${me.url} --wait ${started.login_id}`,
    });
    const status = await me.run(["status"]);
    expect(status.stderr).toContain(`a login with the flow device is pending until`);
    expect(status.stderr).toContain(started.finish);
    await (await fetch(started.verification_uri_complete)).text();
    const args = ["login", me.url, "--wait", started.login_id, "--json"];
    const { code, stdout } = await me.run(args, { clock: fastClock(20) });
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { logged_in: true, state: "valid" }]);
    expect(readdirSync(join(me.home, "logins"))).toEqual([]);
  });

  it("stores the device code in a private file alone, and refuses a callback", async ({ me }) => {
    const started = await begin(me, "--flow", "device");
    const { code, stderr } = await wait(me, started, "--callback-url", "http://127.0.0.1:1/callback?code=c&state=s");
    expect([code, stderr]).toEqual([2, expect.stringContaining("a device code, which has no callback")]);
    expect(existsSync(join(me.home, "logins", `${started.login_id}.json`))).toBe(true);
  });
});

describe("a login in two steps that is finished by a callback", () => {
  it("takes it from stdin where the first step said paste, for an agent too", async ({ me }) => {
    const started = await begin(me, "--flow", "paste");
    expect(started).toMatchObject({ flow: "paste" });
    const stdin = `${await callbackOf(started.url)}\n`;
    const args = ["login", me.url, "--wait", started.login_id];
    const { code } = await me.run(args, { stdin, env: { AGENTAUTH_AGENT: "1" } });
    expect([code, (await me.grants()).length]).toEqual([0, 1]);
  });

  it("takes it from stdin with --callback-url -, and with --no-input", async ({ me }) => {
    const started = await begin(me);
    const args = ["login", me.url, "--wait", started.login_id, "--callback-url", "-", "--no-input"];
    const { code } = await me.run(args, { stdin: `${await callbackOf(started.url)}\n` });
    expect([code, (await me.grants()).length]).toEqual([0, 1]);
  });

  it("takes it from --callback-url, once, and prints no code", async ({ me }) => {
    const started = await begin(me);
    const callback = await callbackOf(started.url);
    const first = await wait(me, started, "--callback-url", callback);
    expect([first.code, (await me.grants()).length]).toEqual([0, 1]);
    const second = await wait(me, started, "--callback-url", callback);
    expect(second.code).toBe(2);
    const code = new URL(callback).searchParams.get("code") ?? "?";
    expect(first.stderr + second.stderr).not.toContain(code);
  });

  it("refuses --callback-url without --wait", async ({ me }) => {
    const { code, stderr } = await me.run(["login", me.url, "--callback-url", "-"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("add --wait <login_id>")]);
  });
});

describe("the file of a callback that another process wrote", () => {
  it("is removed with its login where it says to try later", async ({ me }) => {
    const started = await begin(me);
    const state = new URL(started.url).searchParams.get("state") ?? "";
    const path = join(me.home, "logins", `${started.login_id}.callback`);
    writeFileSync(path, `error=temporarily_unavailable&state=${state}\n`, { mode: 0o600 });
    const { code, stderr } = await wait(me, started);
    expect([code, stderr]).toEqual([5, expect.stringContaining("temporarily_unavailable")]);
    const again = await wait(me, started);
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("no started login")]);
    expect(readdirSync(join(me.home, "logins"))).toEqual([]);
  });

  it("serves the next try where the issuer could not be reached", async ({ me }) => {
    const started = await begin(me);
    const [file, path] = ["json", "callback"].map((kind) => join(me.home, "logins", `${started.login_id}.${kind}`)) as [
      string,
      string,
    ];
    writeFileSync(path, `${new URL(await callbackOf(started.url)).searchParams}\n`, { mode: 0o600 });
    const login = readFileSync(file, "utf8");
    writeFileSync(file, login.replace(/("tokenEndpoint": "http:\/\/[^:]+:)\d+/, `$1${CLOSED_PORT}`));
    const { code, stderr } = await wait(me, started);
    expect([code, stderr]).toEqual([5, expect.stringContaining("refused")]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    writeFileSync(file, login);
    expect([(await wait(me, started)).code, (await me.grants()).length]).toEqual([0, 1]);
  });

  it("is removed with its login where the issuer answered and failed", async ({ me, faults }) => {
    const started = await begin(me);
    const path = join(me.home, "logins", `${started.login_id}.callback`);
    writeFileSync(path, `${new URL(await callbackOf(started.url)).searchParams}\n`, { mode: 0o600 });
    faults.add({ kind: "status", status: 503, path: "token", times: 0 });
    expect((await wait(me, started)).code).toBe(5);
    expect(readdirSync(join(me.home, "logins"))).toEqual([]);
  });
});

describe("the process that waits for a callback", () => {
  it("ends where its starter leaves", async ({ me }) => {
    const { child } = me.start(["receive-callback"]);
    child.stdin?.end("{}\n");
    await until(() => child.exitCode !== null);
    expect(child.exitCode).toBe(0);
  });
});
