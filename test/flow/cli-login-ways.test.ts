import { once } from "node:events";
import { existsSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { until } from "../helpers/cli.js";
import { freePort } from "../helpers/port.js";
import { isFree, raw } from "../login/support.js";
import { callbackOf, fastClock, flowTest, loginUrl, type User } from "./support.js";

const it = flowTest({ deviceFlow: true });

type Running = ReturnType<User["start"]>;

/** Waits until a program says where to log in; one that ends before that has failed. */
async function shownUrl({ child, err }: Running): Promise<URL> {
  await until(() => loginUrl(err()) !== undefined || child.exitCode !== null);
  const shown = loginUrl(err());
  if (shown === undefined) throw new Error(err());
  return shown;
}

async function codeOf({ child }: Running): Promise<number | null> {
  if (child.exitCode !== null) return child.exitCode;
  return (await once(child, "close"))[0] as number | null;
}

describe("a login in two steps", () => {
  interface Begun {
    login_id: string;
    url: string;
    expires_at: string;
    finish: string;
  }
  const begin = async (me: User, ...flags: string[]): Promise<Begun> => {
    const { code, stdout, stderr } = await me.run(["login", me.url, "--no-wait", "--json", ...flags]);
    if (code !== 0) throw new Error(stderr);
    return JSON.parse(stdout) as Begun;
  };
  const pending = (home: string, id: string) => join(home, "logins", `${id}.json`);

  it("is begun by one process and finished by another", async ({ me, url }) => {
    const { login_id: id, url: address, finish, expires_at } = await begin(me);
    expect(finish).toBe(`agentauth login ${url} --wait ${id}`);
    expect(new Date(expires_at).getTime()).toBeGreaterThan(Date.now());
    const waiting = me.start(finish.split(" ").slice(1));
    expect((await shownUrl(waiting)).href).toBe(address);
    const page = await fetch(address);
    expect(await codeOf(waiting)).toBe(0);
    expect(await page.text()).toContain("You are logged in");
    expect((await me.run(["status", url])).code).toBe(0);
    expect(existsSync(pending(me.home, id))).toBe(false);
    expect((await me.run(["login", url, "--wait", id])).code).toBe(2);
  });

  it("removes an expired unfinished login when the next one begins", async ({ me }) => {
    const old = await begin(me);
    const recent = await begin(me);
    const longAgo = new Date(Date.now() - 11 * 60 * 1000);
    utimesSync(pending(me.home, old.login_id), longAgo, longAgo);
    await begin(me);
    expect(existsSync(pending(me.home, old.login_id))).toBe(false);
    expect(existsSync(pending(me.home, recent.login_id))).toBe(true);
  });

  it("names the profile in the command that finishes it", async ({ me, url }) => {
    await me.addProfile("work");
    const { login_id: id, finish, url: address } = await begin(me, "--profile", "work");
    expect(finish).toBe(`agentauth login ${url} --wait ${id} --profile work`);
    const without = await me.run(["login", url, "--wait", id]);
    expect([without.code, without.stderr]).toEqual([2, expect.stringContaining("hint: add --profile work")]);
    const waiting = me.start(finish.split(" ").slice(1));
    await shownUrl(waiting);
    await fetch(address);
    expect(await codeOf(waiting)).toBe(0);
    expect((await me.grant()).profile).toBe("work");
  });

  it("redirects to the address that the client is registered with", async ({ me }) => {
    await me.logIn();
    const { client } = await me.grant();
    const { url: address } = await begin(me);
    expect(new URL(address).searchParams.get("redirect_uri")).toBe(client.redirectUri);
    expect(new URL(address).searchParams.get("client_id")).toBe(client.clientId);
  });

  it("can be finished by another command after the first was interrupted", async ({ me, url }) => {
    const { login_id: id, url: address } = await begin(me);
    const first = me.start(["login", url, "--wait", id]);
    await shownUrl(first);
    first.child.kill("SIGINT");
    expect(await codeOf(first)).toBe(130);
    const second = me.start(["login", url, "--wait", id]);
    await shownUrl(second);
    await fetch(address);
    expect(await codeOf(second)).toBe(0);
  });
});

describe("--flow paste", () => {
  it("takes the address of the callback from standard input, and listens to nothing", async ({ me, url }) => {
    const login = me.start(["login", url, "--flow", "paste"]);
    const address = await shownUrl(login);
    const port = Number(new URL(address.searchParams.get("redirect_uri") ?? "").port);
    expect(await isFree(port)).toBe(true);
    login.child.stdin?.write("this is no address\n");
    await until(() => login.err().includes("That was not accepted: it is not an address"));
    login.child.stdin?.write("done\n");
    await until(() => login.err().includes("That was not accepted: it is neither"));
    login.child.stdin?.write(`${await callbackOf(address)}\n`);
    expect(await codeOf(login)).toBe(0);
    expect((await me.run(["mcp", "call", url, "whoami"])).code).toBe(0);
  });

  it("ends with 4 where the input ends before an address", async ({ me, url }) => {
    const { code, stderr } = await me.run(["login", url, "--flow", "paste"], { stdin: "" });
    expect([code, stderr]).toEqual([4, expect.stringContaining("the input ended before the redirect address")]);
    expect(await me.grants()).toEqual([]);
  });
});

describe("--redirect-uri", () => {
  const URI = "https://dev.example/oauth/cb";
  /** A proxy that forwards the callback of a login to `/in` of a port, as the browser sees it: its last address. */
  async function throughProxy(address: string, port: number): Promise<string> {
    const forward = (target: string) => raw(port, `GET ${target} HTTP/1.1\r\nHost: dev.example\r\n\r\n`);
    const callback = new URL(await callbackOf(address));
    if (callback.origin + callback.pathname !== URI) throw new Error(callback.href);
    const [, next = ""] = /location: \/oauth\/cb(\S+)/i.exec(await forward(`/in${callback.search}`)) ?? [];
    return forward(`/in${next}`);
  }
  const flagsFor = (port: number) => ["--redirect-uri", URI, "--redirect-port", `${port}`, "--redirect-path", "/in"];

  it("is registered, sent as it is written, and listened for at the port that a proxy forwards to", async ({
    me,
    url,
  }) => {
    const port = await freePort();
    const login = me.start(["login", url, "--browser", "none", ...flagsFor(port)]);
    const address = await shownUrl(login);
    expect(address.searchParams.get("redirect_uri")).toBe(URI);
    expect(login.err()).toContain(`listens at http://localhost:${port}/in of this machine alone`);
    expect(await throughProxy(address.href, port)).toContain("You are logged in");
    expect(await codeOf(login)).toBe(0);
    expect((await me.grant()).client.redirectUri).toBe(URI);
  });

  it("is waited for by the second step, at the same port", async ({ me, url }) => {
    const port = await freePort();
    const begun = await me.run(["login", url, "--no-wait", "--json", ...flagsFor(port)]);
    const { finish, url: address } = JSON.parse(begun.stdout) as { finish: string; url: string };
    expect(begun.stderr).toContain(`listens at http://localhost:${port}/in`);
    const waiting = me.start(finish.split(" ").slice(1));
    await shownUrl(waiting);
    expect(await throughProxy(address, port)).toContain("You are logged in");
    expect(await codeOf(waiting)).toBe(0);
  });

  it("needs no port where the callback is pasted, in one step and in two", async ({ me, url }) => {
    const login = me.start(["login", url, "--flow", "paste", "--redirect-uri", URI]);
    login.child.stdin?.write(`${await callbackOf(await shownUrl(login))}\n`);
    expect(await codeOf(login)).toBe(0);
    const begun = await me.run(["login", url, "--no-wait", "--json", "--flow", "paste", "--redirect-uri", URI]);
    const { login_id: id, url: address } = JSON.parse(begun.stdout) as { login_id: string; url: string };
    const stdin = `${await callbackOf(address)}\n`;
    expect((await me.run(["login", url, "--wait", id], { stdin })).code).toBe(0);
  });

  it.for([
    [[], "--redirect-port <port>"],
    [["--no-wait"], "--redirect-port <port>"],
  ] as const)("without a port to listen at is wrong: %j", async ([more, hint], { me, url }) => {
    const { code, stderr } = await me.run(["login", url, "--browser", "none", "--redirect-uri", URI, ...more]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(hint)]);
    expect(me.requests().filter((one) => one.includes("register"))).toEqual([]);
  });

  it.for(["http://dev.example/cb", "https://u:p@dev.example/cb", "javascript:alert(1)"])(
    "refuses %s",
    async (uri, { me, url }) => {
      const { code, stderr } = await me.run(["login", url, "--redirect-uri", uri]);
      expect([code, stderr]).toEqual([2, expect.stringContaining("--redirect-uri")]);
    },
  );
});

describe("--flow device", () => {
  it("is named where the issuer has it, and no browser may reach this machine", async ({ me, url }) => {
    const login = me.start(["login", url, "--browser", "none"], { container: "docker" });
    await shownUrl(login);
    await until(() => login.err().includes("Waiting for the login"));
    expect(login.err()).toContain("Otherwise log in with --flow paste or --flow device.\n");
    login.child.kill("SIGINT");
    expect(await codeOf(login)).toBe(130);
  });

  it("shows a code, and finishes once the user entered it in a browser", async ({ me, url }) => {
    const login = me.start(["login", url, "--flow", "device"], {}, { clock: fastClock(20) });
    await shownUrl(login);
    const complete = /^ {2}(http\S+user_code=\S+)$/m.exec(login.err())?.[1] ?? "";
    const page = await fetch(complete);
    expect(await page.text()).toContain("Your device is connected");
    expect(await codeOf(login)).toBe(0);
    expect((await me.run(["mcp", "call", url, "whoami"])).code).toBe(0);
  });
});

describe("SIGINT during a login", () => {
  it.for([
    ["with a listener", ["--browser", "none"]],
    ["with a browser that never comes back", ["--browser", "true"]],
    ["by paste", ["--flow", "paste"]],
    ["on another device", ["--flow", "device"]],
  ] as const)("%s leaves nothing behind", async ([, flags], { me, url }) => {
    const login = me.start(["login", url, ...flags]);
    const redirect = (await shownUrl(login)).searchParams.get("redirect_uri");
    login.child.kill("SIGINT");
    expect([await codeOf(login), login.out()]).toEqual([130, ""]);
    expect(login.err()).toMatch(/^error: ended by SIGINT$/m);
    if (redirect !== null) expect(await isFree(Number(new URL(redirect).port))).toBe(true);
    expect(existsSync(join(me.home, "logins"))).toBe(false);
    expect(await me.grants()).toEqual([]);
    expect(me.requests().filter((request) => request.includes("authorization_code"))).toEqual([]);
  });

  it("frees the port of the redirect address", async ({ me, url }) => {
    const login = me.start(["login", url, "--browser", "none"]);
    const { port } = new URL((await shownUrl(login)).searchParams.get("redirect_uri") ?? "");
    expect(await isFree(Number(port))).toBe(false);
    login.child.kill("SIGTERM");
    expect(await codeOf(login)).toBe(143);
    expect(await isFree(Number(port))).toBe(true);
  });
});
