import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { until } from "../helpers/cli.js";
import { CLOSED_PORT } from "../helpers/port.js";
import { callbackOf, fastClock, flowTest, type User } from "./support.js";

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
