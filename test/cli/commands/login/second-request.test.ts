import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { fileStore } from "../../../../src/store/file/file.js";
import { startRefusingIssuer } from "../../../flow/refusing-issuer.js";
import { collect, type RunOptions, runCli, startCli, temporaryFolder, until } from "../../../helpers/cli.js";

interface Begun {
  login_id: string;
  url: string;
  flow: string;
  finish: string;
}

/** An issuer that lists a scope and then rejects it, and a user who has started a login there. */
async function begin(...flags: string[]) {
  const { issuer, mcp } = await startRefusingIssuer();
  const home = temporaryFolder();
  const env = { AGENTAUTH_HOME: home };
  const run = (args: readonly string[], options: RunOptions = {}) =>
    runCli(args, { ...options, env: { ...env, ...options.env } });
  const first = await run(["login", mcp.url, "--no-wait", "--json", ...flags]);
  expect(first.code).toBe(0);
  const begun = JSON.parse(first.stdout) as Begun;
  const wait = (id: string, more: readonly string[] = [], options?: RunOptions) =>
    run(["login", mcp.url, "--wait", id, ...more], options);
  const start = (args: readonly string[]) => startCli(args, { env });
  return { issuer, mcp, home, begun, run, wait, start, logins: () => readdirSync(join(home, "logins")) };
}

const scopeOf = (url: string) => new URL(url).searchParams.get("scope");

async function callbackOf(url: string): Promise<string> {
  const { headers } = await fetch(url, { redirect: "manual" });
  return headers.get("location") ?? "";
}

describe("a login in two steps whose issuer rejects a scope that it lists", () => {
  it.each<[string, string[], (callback: string) => [string[], RunOptions]]>([
    ["--callback-url", [], (callback) => [["--callback-url", callback], {}]],
    ["a paste", ["--flow", "paste"], (callback) => [[], { stdin: `${callback}\n` }]],
  ])("prints another URL with fewer scopes, and ends with 4, where %s is refused", async (_what, flags, given) => {
    const { begun, wait, logins, home } = await begin(...flags);
    expect(scopeOf(begun.url)).toBe("tools offline_access");
    const [more, options] = given(await callbackOf(begun.url));
    const refused = await wait(begun.login_id, ["--json", ...more], options);
    expect(refused.code).toBe(4);
    expect(refused.stderr).toContain('lists "offline_access" but does not grant it');
    expect(refused.stderr).toContain("the user has to open another URL");
    const again = JSON.parse(refused.stdout) as Begun;
    expect(again).toMatchObject({ flow: begun.flow, finish: expect.stringContaining(`--wait ${again.login_id}`) });
    expect([scopeOf(again.url), again.login_id === begun.login_id]).toEqual(["tools", false]);
    expect(logins()).toEqual([`${again.login_id}.json`]);
    const [second, secondOptions] = given(await callbackOf(again.url));
    expect((await wait(again.login_id, second, secondOptions)).code).toBe(0);
    expect(await fileStore(home).list()).toMatchObject([{ requestedScope: "tools" }]);
  });

  it("prints the URL and the next command where no JSON is wanted, for the account of the first step", async () => {
    const { begun, wait, mcp } = await begin("--account-hint", "alice");
    const refused = await wait(begun.login_id, ["--callback-url", await callbackOf(begun.url)]);
    expect(refused.code).toBe(4);
    expect(scopeOf(refused.stdout.trim())).toBe("tools");
    expect(new URL(refused.stdout.trim()).searchParams.get("login_hint")).toBe("alice");
    expect(refused.stderr).toMatch(new RegExp(`: agentauth login ${mcp.url} --wait \\S{12} --account-hint alice\n`));
  });

  it("prints another URL where the process of the first step got the refusal", async () => {
    const { begun, wait, start, home } = await begin();
    const listener = start(["receive-callback"]);
    const [out, ended] = [collect(listener.stdout), once(listener, "close")];
    const { searchParams } = new URL(begun.url);
    listener.stdin?.write(`${JSON.stringify({ preferred: searchParams.get("redirect_uri") })}\n`);
    await until(() => out().includes("redirectUri"));
    const order = { id: begun.login_id, state: searchParams.get("state"), ttlMs: 60_000 };
    listener.stdin?.write(`${JSON.stringify(order)}\n`);
    await until(() => out().includes("isHeld"));
    await (await fetch(begun.url)).text();
    await ended;
    expect(existsSync(join(home, "logins", `${begun.login_id}.callback`))).toBe(true);
    const refused = await wait(begun.login_id, ["--json"]);
    const again = JSON.parse(refused.stdout) as Begun;
    expect([refused.code, again.flow, scopeOf(again.url)]).toEqual([4, "browser", "tools"]);
    expect((await wait(again.login_id, ["--callback-url", await callbackOf(again.url)])).code).toBe(0);
  });

  it("sends the browser on by itself where the second step listens", async () => {
    const { begun, mcp, start, issuer, home } = await begin();
    const waiting = start(["login", mcp.url, "--wait", begun.login_id]);
    const [err, ended] = [collect(waiting.stderr), once(waiting, "close")];
    await until(() => err().includes("Waiting for the login") || waiting.exitCode !== null);
    await (await fetch(begun.url)).text();
    await ended;
    expect([waiting.exitCode, err()]).toEqual([0, expect.stringContaining("logged in at")]);
    expect(issuer.to("/pool/authorize")).toHaveLength(2);
    expect(await fileStore(home).list()).toMatchObject([{ requestedScope: "tools" }]);
  });

  it("is an error where the scopes are those that the user asked for, and after the second refusal", async () => {
    const { begun, wait, issuer, run, mcp } = await begin();
    const refused = await wait(begun.login_id, ["--json", "--callback-url", await callbackOf(begun.url)]);
    const again = JSON.parse(refused.stdout) as Begun;
    issuer.routes["/pool/authorize"] = (request) => {
      issuer.callback = { error: "invalid_scope", code: null };
      return { status: 302, headers: { location: issuer.callbackTo(request) } };
    };
    const failed = await wait(again.login_id, ["--json", "--callback-url", await callbackOf(again.url)]);
    expect([failed.code, failed.stdout]).toEqual([4, ""]);
    expect(failed.stderr).toContain("invalid_scope");
    const requested = await run(["login", mcp.url, "--no-wait", "--json", "--scope", "tools offline_access"]);
    const { login_id, url } = JSON.parse(requested.stdout) as Begun;
    const own = await wait(login_id, ["--json", "--callback-url", await callbackOf(url)]);
    expect([own.code, own.stdout, own.stderr]).toEqual([4, "", expect.stringContaining("--scope")]);
  });
});
