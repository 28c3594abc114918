import { chmodSync, existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { linesOf } from "../helpers/cli.js";
import { ON_WINDOWS } from "../helpers/systems.js";
import { flowTest, LOGIN_FLAGS, type User } from "./support.js";

const it = flowTest();

const PRM = "GET /.well-known/oauth-protected-resource/mcp 200";
const REFRESH = "POST /<pool>/token refresh_token 200";

describe("agentauth token", () => {
  it("logs in, prints only the token, and prints the same token from then on", async ({ me, url }) => {
    const { code, stdout } = await me.logIn();
    const { tokens } = await me.grant();
    expect([code, stdout]).toEqual([0, `${tokens.accessToken.reveal()}\n`]);
    const before = me.requests().length;
    expect(await me.run(["token", url])).toMatchObject({ code: 0, stdout, stderr: "" });
    expect(me.requests().length).toBe(before);
  });

  it("gets a token that the server accepts, in at most seven requests, this use included", async ({ me, url }) => {
    const { stdout } = await me.logIn();
    expect(await listTools(url, stdout.trim())).toBe(200);
    const ofBrowser = "GET /<pool>/authorize 303";
    expect(me.requests().filter((request) => request !== ofBrowser)).toHaveLength(7);
    expect(me.requests().filter((request) => request === ofBrowser)).toHaveLength(1);
  });

  it("sends nothing to the server between its metadata and the end of the login", async ({ me }) => {
    await me.logIn();
    const requested = me.requests();
    expect(requested.slice(0, 2)).toEqual(["POST /mcp tools/list 401", PRM]);
    expect(requested.at(-1)).toBe("POST /<pool>/token authorization_code 200");
    expect(requested.slice(2).filter((request) => request.includes("/mcp"))).toEqual([]);
  });

  it("ends with 4 where no login is possible: an empty stdout, and the command to run", async ({ me, url }) => {
    const { code, stdout, stderr } = await me.run(["token", url]);
    expect([code, stdout]).toEqual([4, ""]);
    expect(stderr).toContain(`\nhint: agentauth login ${url}\n`);
    // Whether the server requires a login at all.
    expect(me.requests()).toEqual(["POST /mcp tools/list 401"]);
  });

  it("names the profile in that command, and prints the error as JSON with --format json", async ({ me, url }) => {
    await me.addProfile("work");
    const { code, stdout, stderr } = await me.run(["token", url, "--profile", "work", "--format", "json"]);
    expect([code, stdout]).toEqual([4, ""]);
    const { error } = JSON.parse(stderr) as { error: unknown };
    expect(error).toMatchObject({
      code: "login_required",
      class: "auth",
      exit_code: 4,
      hint: `agentauth login ${url} --profile work`,
    });
  });

  it("does not log in with --no-login, nor with AGENTAUTH_NO_INPUT, whatever other flags say", async ({ me, url }) => {
    expect((await me.run(["token", url, ...LOGIN_FLAGS.slice(1), "--no-login"])).code).toBe(4);
    expect((await me.run(["token", url, ...LOGIN_FLAGS], { env: { AGENTAUTH_NO_INPUT: "1" } })).code).toBe(4);
    expect(me.requests()).toEqual(["POST /mcp tools/list 401", "POST /mcp tools/list 401"]);
  });

  it("gets a new token with --force-refresh by one request, and stores the refresh token that came with it", async ({
    me,
    url,
  }) => {
    const first = await me.logIn();
    const before = { grant: await me.grant(), requested: me.requests().length };
    const second = await me.run(["token", url, "--force-refresh"]);
    const after = await me.grant();
    expect(second.code).toBe(0);
    expect(second.stdout).not.toBe(first.stdout);
    expect(me.requests().slice(before.requested)).toEqual([REFRESH]);
    expect(after.tokens.refreshToken?.reveal()).not.toBe(before.grant.tokens.refreshToken?.reveal());
    expect(await listTools(url, second.stdout.trim())).toBe(200);
  });

  it.for([
    ["more than a minute left", 90, [], false],
    ["less than a minute left", 50, [], true],
    ["enough left for --min-ttl 600", 660, ["--min-ttl", "600"], false],
    ["too little left for --min-ttl 600", 540, ["--min-ttl", "600"], true],
    ["little left, and --min-ttl 0", 30, ["--min-ttl", "0"], false],
    ["nothing left, and --min-ttl 0", -1, ["--min-ttl", "0"], true],
  ] as const)("with %s", async ([, secondsLeft, flags, isRenewed], { me, url }) => {
    const first = await me.logIn();
    await me.age(secondsLeft);
    const before = me.requests().length;
    const { code, stdout } = await me.run(["token", url, ...flags]);
    expect({ code, isRenewed: stdout !== first.stdout }).toEqual({ code: 0, isRenewed });
    expect(me.requests().slice(before)).toEqual(isRenewed ? [REFRESH] : []);
  });
});

describe("agentauth token --format", () => {
  const print = async ({ run, url }: User, format: string) => {
    const { code, stdout, stderr } = await run(["token", url, "--format", format]);
    expect([code, stderr]).toEqual([0, ""]);
    return stdout;
  };
  const expiryOf = async (user: User) => (await user.grant()).tokens.expiresAt ?? 0;

  it("prints the token in the form of every protocol", async ({ user }) => {
    const { token } = user;
    const expiresAt = await expiryOf(user);
    const second = new Date(expiresAt).toISOString().replace(".000Z", "Z");
    expect(await print(user, "raw")).toBe(`${token}\n`);
    expect(await print(user, "header")).toBe(`Authorization: Bearer ${token}\n`);
    expect(JSON.parse(await print(user, "headers-json"))).toEqual({ Authorization: `Bearer ${token}` });
    expect(await print(user, "env")).toBe(`AGENTAUTH_TOKEN=${token}\n`);
    expect(JSON.parse(await print(user, "k8s"))).toEqual({
      apiVersion: "client.authentication.k8s.io/v1",
      kind: "ExecCredential",
      status: { token, expirationTimestamp: second },
    });
    expect(linesOf(await print(user, "git"))).toEqual([
      "capability[]=authtype",
      "authtype=Bearer",
      "ephemeral=1",
      `credential=${token}`,
      `password_expiry_utc=${expiresAt / 1000}`,
    ]);
    expect(JSON.parse(await print(user, "bazel"))).toEqual({
      headers: { Authorization: [`Bearer ${token}`] },
      expires: second,
    });
  });

  it("prints every field of the token as JSON", async ({ harness, url, user }) => {
    const { expires_in, ...rest } = JSON.parse(await print(user, "json")) as Record<string, unknown>;
    expect(rest).toEqual({
      access_token: user.token,
      token_type: "Bearer",
      expires_at: new Date(await expiryOf(user)).toISOString(),
      scope: "mcp",
      resource: url,
      issuer: harness.sandbox.authUrl(harness.sandbox.ids.pool),
    });
    expect(Number(expires_in)).toBeGreaterThan(3500);
    expect(Number(expires_in)).toBeLessThanOrEqual(3600);
  });
});

describe("agentauth login, status and logout", () => {
  it.skipIf(ON_WINDOWS)("makes the folder private again that others can read", async ({ me, url }) => {
    await me.logIn();
    chmodSync(me.home, 0o755);
    expect((await me.run(["status"])).stderr).toContain(`${me.home}, which can be read by others`);
    const login = await me.run(["login", url, ...LOGIN_FLAGS.slice(1)]);
    expect(login.stderr).toContain(`${me.home} was readable by other users; it is private again`);
    expect((await me.run(["status"])).stderr).toContain(`${me.home}, readable by you alone`);
  });

  it("logs in, appears as a new device, and logs out", async ({ harness, me, url }) => {
    const login = await me.run(["login", url, ...LOGIN_FLAGS.slice(1)]);
    expect([login.code, login.stdout]).toEqual([0, ""]);
    expect(login.stderr).toMatch(/^logged in at http:.*\nthe token expires at \d{4}-/m);
    const devices = await me.run([...harness.devices, "--title", "agentauth*", "-o", "json"]);
    const { client } = await me.grant();
    const details = expect.objectContaining({ redirect_uris: [client.redirectUri] });
    const device = { title: "agentauth", status: "active", session_type: "mcp", dynamic_client_details: details };
    expect(JSON.parse(devices.stdout)).toContainEqual(expect.objectContaining(device));
    const out = await me.run(["logout", url]);
    expect(out).toMatchObject({ code: 0, stdout: "" });
    expect(out.stderr).toMatch(
      /^logged out of \S+; its issuer has no revocation endpoint: the access token stays valid/,
    );
    expect(await me.grants()).toEqual([]);
    expect((await me.run(["token", url])).code).toBe(4);
  });

  it("logs in again with the stored client although a token is stored", async ({ me, url }) => {
    await me.logIn();
    const before = await me.grant();
    const again = await me.run(["login", url, "--json", ...LOGIN_FLAGS.slice(1)]);
    const after = await me.grant();
    expect(JSON.parse(again.stdout)).toMatchObject({ logged_in: true, server: url, state: "valid", refreshable: true });
    expect(after.tokens.accessToken.reveal()).not.toBe(before.tokens.accessToken.reveal());
    expect(after.client.clientId).toBe(before.client.clientId);
    expect(me.requests().filter((request) => request.includes("/register"))).toHaveLength(1);
  });

  it("replaces what a crash of the system left of its files, and keeps it", async ({ me, url }) => {
    await me.logIn();
    const files = readdirSync(me.home, { recursive: true, encoding: "utf8" })
      .filter((name) => /^(?:grants|clients)\b.*\.json$/.test(name))
      .map((name) => join(me.home, name));
    expect(files).toHaveLength(2);
    for (const file of files) writeFileSync(file, "");
    const token = await me.run(["token", url, "--no-login"]);
    expect([token.code, token.stderr]).toEqual([4, expect.stringContaining(`hint: agentauth login ${url}`)]);
    const { code, stderr } = await me.run(["login", url, ...LOGIN_FLAGS.slice(1)]);
    expect(code).toBe(0);
    for (const file of files) {
      expect(token.stderr + stderr).toContain(
        `the file ${file} held nothing, and counts as missing: it is kept as ${file}.broken`,
      );
      expect(existsSync(`${file}.broken`)).toBe(true);
    }
    expect((await me.run(["token", url, "--no-login"])).code).toBe(0);
  });

  it("reports by its exit code whether a login is stored", async ({ me, url }) => {
    expect(await me.run(["status"])).toMatchObject({ code: 4, stdout: "" });
    expect(await me.run(["status", url, "--json"])).toMatchObject({ code: 4, stdout: "[]\n" });
    await me.logIn();
    const { code, stdout } = await me.run(["status", "-o", "json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject([{ server: url, state: "valid", scope: "mcp", stored_in: me.home }]);
    await me.age(-1);
    const aged = await me.run(["status", url, "--json"]);
    expect([aged.code, JSON.parse(aged.stdout)]).toMatchObject([0, [{ state: "expired", refreshable: true }]]);
    await me.addProfile("work");
    expect((await me.run(["status", url, "--profile", "work"])).code).toBe(4);
  });

  it("logs out of everything, and ends with 0 where no login is stored", async ({ harness, me, url }) => {
    const other = `${url}/${harness.sandbox.ids.pool}`;
    await me.logIn();
    await me.run(["token", other, ...LOGIN_FLAGS]);
    expect(linesOf((await me.run(["logout", "--all"])).stderr).sort()).toEqual([
      expect.stringContaining(`logged out of ${other};`),
      expect.stringContaining(`logged out of ${url};`),
    ]);
    expect(await me.grants()).toEqual([]);
    expect(await me.run(["logout", url])).toMatchObject({ code: 0, stderr: `not logged in at ${url}\n` });
  });
});

async function listTools(url: string, token: string): Promise<number> {
  const headers = {
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
  return (await fetch(url, { method: "POST", headers, body })).status;
}
