import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { deskTest } from "../desk.js";

const it = deskTest();

const ROW = { profile: "default", account: null, removed: true, revoked: true, error: null };

it("deletes the login and revokes its tokens; it prints on standard output only in a format", async ({
  desk,
  user,
}) => {
  await user.logIn();
  expect(await user.run(["logout", desk.url])).toMatchObject({
    code: 0,
    stdout: "",
    stderr: `logged out of ${desk.url}\n`,
  });
  expect(await user.store.list()).toEqual([]);
  const again = await user.run(["logout", desk.url, "--json"]);
  expect([again.code, JSON.parse(again.stdout)]).toEqual([
    0,
    [{ ...ROW, server: desk.url, removed: false, revoked: null }],
  ]);
  expect(again.stderr).toBe(`not logged in at ${desk.url}\n`);
});

it("--all logs out of every server", async ({ desk, user }) => {
  await user.logIn();
  const { code, stdout } = await user.run(["logout", "--all", "--json"]);
  expect([code, JSON.parse(stdout)]).toEqual([0, [{ ...ROW, server: desk.url }]]);
  expect(await user.run(["logout", "--all"])).toMatchObject({ code: 0, stderr: "not logged in\n" });
});

it("exits with 0 where the revocation fails, and warns of it", async ({ desk, faults, user }) => {
  await user.logIn();
  faults.add({ kind: "status", status: 503, path: "end_session", times: 0 });
  const { code, stderr } = await user.run(["logout", desk.url]);
  expect([code, await user.store.list()]).toEqual([0, []]);
  expect(stderr).toMatch(/^warning: logged out of \S+ locally, but revocation failed \(.+\)/m);
});

it.for<[string, string[], RegExp]>([
  ["neither a server nor --all", [], /give one MCP server, or --all/],
  ["both", ["URL", "--all"], /give one MCP server, or --all/],
  ["one account of all", ["--all", "--account-hint", "bob"], /--all covers every account/],
  ["an address that is none", ["nowhere"], /nowhere/],
])("refuses %s", async ([_what, args, words], { desk, user }) => {
  await user.logIn();
  const { code, stdout, stderr } = await user.run(["logout", ...args.map((one) => one.replace("URL", desk.url))]);
  expect([code, stdout, stderr]).toEqual([2, "", expect.stringMatching(words)]);
  expect(await user.store.list()).toHaveLength(1);
});

it("--all exits with 8 where a login cannot be read", async ({ user }) => {
  mkdirSync(join(user.home, "grants"), { mode: 0o700 });
  writeFileSync(join(user.home, "grants", `${"0".repeat(40)}.1.json`), '{"schema": 99}', { mode: 0o600 });
  const { code, stdout, stderr } = await user.run(["logout", "--all", "--json"]);
  expect([code, stdout, stderr]).toEqual([8, "[]\n", expect.stringContaining("a stored login cannot be used")]);
});
