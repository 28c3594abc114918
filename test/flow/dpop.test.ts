import { describe, expect } from "vitest";
import { callbackOf, filesBelow, flowTest, LOGIN_FLAGS, type User } from "./support.js";

const JSON_FORMAT = ["--format", "json"];
const tokenRequests = (me: User) => me.requests().filter((line) => line.includes("/token "));

/** The private part of the key that the one login is bound to. */
async function privatePart(me: User): Promise<string> {
  const { proofKey } = await me.grant();
  return (JSON.parse(proofKey?.reveal() ?? "{}") as { d: string }).d;
}

const BOUND = { dpop: "required", machineGrants: true } as const;
const withoutNonces = flowTest(BOUND);
const withNonces = flowTest({ ...BOUND, dpopNonces: true });
const withBoth = flowTest({ dpop: "supported" });
const withBearerOnly = flowTest();

describe.each([
  { title: "", it: withoutNonces, dpopNonces: false },
  { title: ", with a nonce in every proof", it: withNonces, dpopNonces: true },
])("a service that requires bound tokens$title", ({ it, dpopNonces }) => {
  it("issues one at the first login, which other processes use", async ({ me, url }) => {
    const { stdout } = await me.logIn(...JSON_FORMAT);
    expect(JSON.parse(stdout)).toMatchObject({ token_type: "DPoP", resource: url });
    const again = await me.run(["token", url, ...JSON_FORMAT]);
    expect(JSON.parse(again.stdout)).toMatchObject({ access_token: JSON.parse(stdout).access_token });
    for (const args of [
      ["mcp", "tools", url],
      ["mcp", "call", url, "whoami"],
    ]) {
      expect(await me.run(args)).toMatchObject({ code: 0, stderr: "" });
    }
    // The token is valid; this server does not support the method.
    expect((await me.run(["request", url])).stderr).toContain("HTTP 405");
    const [login] = JSON.parse((await me.run(["status", "-o", "json"])).stdout) as unknown[];
    expect(login).toMatchObject({ token_type: "DPoP", state: "valid" });
  });

  it("issues one to a login in two steps, whose second step finds the key", async ({ me, url }) => {
    const begun = await me.run(["login", url, "--no-wait", "--json"]);
    const { login_id: id, url: address } = JSON.parse(begun.stdout) as { login_id: string; url: string };
    expect(new URL(address).searchParams.get("dpop_jkt")).toMatch(/^[\w-]{43}$/);
    const stdin = `${await callbackOf(address)}\n`;
    const finished = await me.run(["login", url, "--wait", id, "--flow", "paste"], { stdin });
    expect([finished.code, finished.stderr]).toEqual([0, expect.stringContaining("bound to a key of this machine")]);
    expect(await me.run(["mcp", "call", url, "whoami"])).toMatchObject({ code: 0 });
  });

  it("rejects the token without its key", async ({ me, url }) => {
    const { access_token: token } = JSON.parse((await me.logIn(...JSON_FORMAT)).stdout) as { access_token: string };
    for (const scheme of ["Bearer", "DPoP"]) {
      const response = await fetch(url, { method: "POST", headers: { authorization: `${scheme} ${token}` } });
      expect(response.status).toBe(401);
    }
  });

  it("refreshes for one of ten runs, with one use of the refresh token", async ({ me, url }) => {
    await me.logIn(...JSON_FORMAT);
    const before = await me.grant();
    await me.age(-10);
    const since = tokenRequests(me).length;
    const all = await Promise.all(Array.from({ length: 10 }, () => me.run(["token", url, ...JSON_FORMAT])));
    expect(new Set(all.map(({ code, stderr }) => `${code} ${stderr}`))).toEqual(new Set(["0 "]));
    const wanted = ["POST /<pool>/token refresh_token 200"];
    if (dpopNonces) wanted.unshift("POST /<pool>/token refresh_token 400");
    expect(tokenRequests(me).slice(since)).toEqual(wanted);
    expect((await me.grant()).proofKey?.reveal()).toBe(before.proofKey?.reveal());
  });

  it("is refused by commands that would print the token without its key or pass it to a command", async ({
    me,
    url,
  }) => {
    await me.logIn(...JSON_FORMAT);
    const requested = me.requests().length;
    for (const args of [
      ["token", url],
      ["token", url, "--format", "header"],
      ["exec", url, "--", "echo", "started"],
    ]) {
      const { code, stdout, stderr } = await me.run(args);
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr).toContain("bound to a key of this machine (DPoP");
      expect(stderr).toContain(`agentauth request ${url}`);
    }
    expect(me.requests()).toHaveLength(requested);
  });

  it("never receives the key, and no output contains it", async ({ me, url }) => {
    const { stdout, stderr } = await me.logIn(...JSON_FORMAT, "--debug");
    await me.age(-10);
    const later = await me.run(["mcp", "call", url, "whoami", "--debug"]);
    expect(later.code).toBe(0);
    const key = await privatePart(me);
    expect(key).toHaveLength(43);
    for (const text of [stdout, stderr, later.stdout, later.stderr]) expect(text).not.toContain(key);
    const holders = filesBelow(me.home).filter(({ text }) => text.includes(key));
    expect(holders.map(({ mode }) => mode)).toEqual([0o600]);
  });

  it("issues one to a machine client", async ({ harness, me, url }) => {
    const { secretClient } = harness.sandbox.machine ?? {};
    const flags = ["--grant", "client-credentials", "--client-id", secretClient?.clientId ?? ""];
    flags.push("--issuer", harness.sandbox.authUrl(harness.sandbox.ids.pool));
    const env = { AGENTAUTH_CLIENT_SECRET: secretClient?.clientSecret ?? "" };
    expect(await me.run(["login", url, ...flags], { env })).toMatchObject({ code: 0 });
    const { code, stderr } = await me.run(["mcp", "call", url, "whoami"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect((await me.grant()).proofKey).toBeDefined();
  });

  it("is logged out of like any other service", async ({ me, url }) => {
    await me.logIn(...JSON_FORMAT);
    expect(await me.run(["logout", url])).toMatchObject({ code: 0 });
    expect(await me.grants()).toEqual([]);
  });
});

describe("a service that accepts both kinds of tokens", () => {
  withBoth("issues bearer tokens, and bound ones on request", async ({ me, url }) => {
    expect(JSON.parse((await me.logIn(...JSON_FORMAT)).stdout)).toMatchObject({ token_type: "Bearer" });
    const bound = ["login", url, "--dpop", "required", ...LOGIN_FLAGS.slice(1)];
    expect((await me.run(bound)).code).toBe(0);
    expect((await me.run(["mcp", "call", url, "whoami"])).code).toBe(0);
    expect(await me.grant()).toMatchObject({ proofKey: expect.anything() });
  });
});

describe("a service that does not support bound tokens", () => {
  withBearerOnly("is refused where --dpop requires them, before the browser opens", async ({ me, url }) => {
    const { code, stderr } = await me.run(["login", url, "--dpop", "required", ...LOGIN_FLAGS.slice(1)]);
    expect([code, me.requests().filter((line) => line.includes("authorize"))]).toEqual([3, []]);
    expect(stderr).toContain("dpop_signing_alg_values_supported");
    expect(stderr).toContain("--dpop auto");
  });

  withBearerOnly(
    "does not change the error for a wrong value of --dpop, which names the valid ones",
    async ({ me, url }) => {
      const { code, stderr } = await me.run(["login", url, "--dpop", "always"]);
      expect(code).toBe(2);
      expect(stderr).toMatch(/off, auto, required/);
    },
  );
});
