import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callbackOf, type Desk, filesBelow, type Newcomer, SIGN_IN, startDesk } from "./support.js";

const JSON_FORMAT = ["--format", "json"];
const tokenRequests = (me: Newcomer) => me.asked().filter((line) => line.includes("/token "));

/** The private part of the key that the one login is bound to. */
async function privatePart(me: Newcomer): Promise<string> {
  const { proofKey } = await me.grant();
  return (JSON.parse(proofKey?.reveal() ?? "{}") as { d: string }).d;
}

describe.each([
  { title: "", dpopNonces: false },
  { title: ", and nonces of its own in every proof", dpopNonces: true },
])("a service that wants bound tokens$title", ({ dpopNonces }) => {
  let desk: Desk;
  beforeAll(async () => {
    desk = await startDesk({ dpop: "required", dpopNonces, machineGrants: true });
  });
  afterAll(() => desk.close());

  it("gives one at the first sign-in, that other processes use", async () => {
    const me = desk.newcomer();
    const { stdout } = await me.signIn(...JSON_FORMAT);
    expect(JSON.parse(stdout)).toMatchObject({ token_type: "DPoP", resource: desk.url });
    const again = await me.run(["token", desk.url, ...JSON_FORMAT]);
    expect(JSON.parse(again.stdout)).toMatchObject({ access_token: JSON.parse(stdout).access_token });
    for (const args of [
      ["mcp", "tools", desk.url],
      ["mcp", "call", desk.url, "whoami"],
    ]) {
      expect(await me.run(args)).toMatchObject({ code: 0, stderr: "" });
    }
    // The token is good; it is the method that this server does not have.
    expect((await me.run(["request", desk.url])).stderr).toContain("HTTP 405");
    const [login] = JSON.parse((await me.run(["status", "-o", "json"])).stdout) as unknown[];
    expect(login).toMatchObject({ token_type: "DPoP", state: "valid" });
  });

  it("gives one to a sign-in in two steps, whose second half finds the key", async () => {
    const me = desk.newcomer();
    const begun = await me.run(["login", desk.url, "--no-wait", "--json"]);
    const { login_id: id, url } = JSON.parse(begun.stdout) as { login_id: string; url: string };
    expect(new URL(url).searchParams.get("dpop_jkt")).toMatch(/^[\w-]{43}$/);
    const stdin = `${await callbackOf(url)}\n`;
    const finished = await me.run(["login", desk.url, "--wait", id, "--flow", "paste"], { stdin });
    expect([finished.code, finished.stderr]).toEqual([0, expect.stringContaining("bound to a key of this machine")]);
    expect(await me.run(["mcp", "call", desk.url, "whoami"])).toMatchObject({ code: 0 });
  });

  it("does not take the token without its key", async () => {
    const me = desk.newcomer();
    const { access_token: token } = JSON.parse((await me.signIn(...JSON_FORMAT)).stdout) as { access_token: string };
    for (const scheme of ["Bearer", "DPoP"]) {
      const response = await fetch(desk.url, { method: "POST", headers: { authorization: `${scheme} ${token}` } });
      expect(response.status).toBe(401);
    }
  });

  it("is refreshed by one of ten runs, with one use of the refresh token", async () => {
    const me = desk.newcomer();
    await me.signIn(...JSON_FORMAT);
    const before = await me.grant();
    await me.age(-10);
    const since = tokenRequests(me).length;
    const all = await Promise.all(Array.from({ length: 10 }, () => me.run(["token", desk.url, ...JSON_FORMAT])));
    expect(new Set(all.map(({ code, stderr }) => `${code} ${stderr}`))).toEqual(new Set(["0 "]));
    const wanted = ["POST /<pool>/token refresh_token 200"];
    if (dpopNonces) wanted.unshift("POST /<pool>/token refresh_token 400");
    expect(tokenRequests(me).slice(since)).toEqual(wanted);
    expect((await me.grant()).proofKey?.reveal()).toBe(before.proofKey?.reveal());
  });

  it("hands over no token that is good for nothing alone, and starts no command with it", async () => {
    const me = desk.newcomer();
    await me.signIn(...JSON_FORMAT);
    const asked = me.asked().length;
    for (const args of [
      ["token", desk.url],
      ["token", desk.url, "--format", "header"],
      ["exec", desk.url, "--", "echo", "started"],
    ]) {
      const { code, stdout, stderr } = await me.run(args);
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr).toContain("bound to a key of this machine (DPoP");
      expect(stderr).toContain(`agentauth request ${desk.url}`);
    }
    expect(me.asked()).toHaveLength(asked);
  });

  it("never sees the key, and neither does anybody who looks on", async () => {
    const me = desk.newcomer();
    const { stdout, stderr } = await me.signIn(...JSON_FORMAT, "--debug");
    await me.age(-10);
    const later = await me.run(["mcp", "call", desk.url, "whoami", "--debug"]);
    expect(later.code).toBe(0);
    const key = await privatePart(me);
    expect(key).toHaveLength(43);
    for (const text of [stdout, stderr, later.stdout, later.stderr]) expect(text).not.toContain(key);
    const holders = filesBelow(me.home).filter(({ text }) => text.includes(key));
    expect(holders.map(({ mode }) => mode)).toEqual([0o600]);
  });

  it("gives one to a service without a user", async () => {
    const { secretClient } = desk.sandbox.machine ?? {};
    const me = desk.newcomer();
    const flags = ["--grant", "client-credentials", "--client-id", secretClient?.clientId ?? ""];
    flags.push("--issuer", desk.sandbox.authUrl(desk.sandbox.ids.pool));
    const env = { AGENTAUTH_CLIENT_SECRET: secretClient?.clientSecret ?? "" };
    const { code, stderr } = await me.run(["mcp", "call", desk.url, "whoami", ...flags], { env });
    expect([code, stderr]).toEqual([0, ""]);
    expect((await me.grant()).proofKey).toBeDefined();
  });

  it("is logged out of like any other", async () => {
    const me = desk.newcomer();
    await me.signIn(...JSON_FORMAT);
    expect(await me.run(["logout", desk.url])).toMatchObject({ code: 0 });
    expect(await me.grants()).toEqual([]);
  });
});

describe("a service that takes both kinds of tokens", () => {
  let desk: Desk;
  beforeAll(async () => {
    desk = await startDesk({ dpop: "supported" });
  });
  afterAll(() => desk.close());

  it("gives bearer tokens, and bound ones to whoever wants them", async () => {
    const me = desk.newcomer();
    expect(JSON.parse((await me.signIn(...JSON_FORMAT)).stdout)).toMatchObject({ token_type: "Bearer" });
    const wanted = await me.run(["token", desk.url, ...JSON_FORMAT, "--dpop", "required"]);
    expect([wanted.code, wanted.stdout]).toEqual([4, ""]);
    expect(wanted.stderr).toContain("not bound to a key (DPoP)");
    expect(wanted.stderr).toContain(`agentauth login ${desk.url} --dpop required`);
    const bound = await me.run(["mcp", "call", desk.url, "whoami", "--dpop", "required", ...SIGN_IN]);
    expect(bound.code).toBe(0);
    expect(await me.grant()).toMatchObject({ proofKey: expect.anything() });
  });
});

describe("a service that knows nothing of keys", () => {
  let desk: Desk;
  beforeAll(async () => {
    desk = await startDesk();
  });
  afterAll(() => desk.close());

  it("is refused where they are required, before anybody is sent off", async () => {
    const me = desk.newcomer();
    const { code, stderr } = await me.run(["login", desk.url, "--dpop", "required", ...SIGN_IN.slice(1)]);
    expect([code, me.asked().filter((line) => line.includes("authorize"))]).toEqual([3, []]);
    expect(stderr).toContain("dpop_signing_alg_values_supported");
    expect(stderr).toContain("--dpop auto");
  });

  it("is a wrong value of the flag away from an error that names the right ones", async () => {
    const { code, stderr } = await desk.newcomer().run(["token", desk.url, "--dpop", "always"]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/off, auto, required/);
  });
});
