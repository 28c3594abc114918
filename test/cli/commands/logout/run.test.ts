import { expect } from "vitest";
import { writeGrantFile } from "../../../helpers/grant-files.js";
import { deskTest } from "../desk.js";

const it = deskTest();

const ROW = { profile: "default", account: null, removed: true, revoked: null, session_ended: null, error: null };

it("deletes the login, and names the time until which the token stays valid that the service cannot revoke", async ({
  desk,
  user,
}) => {
  const { value, expiresAt } = await user.logIn();
  const requests = () => desk.sandbox.requests.length;
  const before = requests();
  const expected = `logged out of ${desk.url}; its issuer has no revocation endpoint: the access token stays valid until ${expiresAt?.toISOString()}\n`;
  expect(await user.run(["logout", desk.url])).toMatchObject({ code: 0, stdout: "", stderr: expected });
  expect(requests()).toBe(before);
  expect(await user.store.list()).toEqual([]);
  const headers = { authorization: `Bearer ${value}`, "content-type": "application/json", accept: "*/*" };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
  expect((await fetch(desk.url, { method: "POST", headers, body })).status).not.toBe(401);
  const again = await user.run(["logout", desk.url, "--json"]);
  const row = { ...ROW, server: desk.url, removed: false, expires_at: null };
  expect([again.code, JSON.parse(again.stdout)]).toEqual([0, [row]]);
  expect(again.stderr).toBe(`not logged in at ${desk.url}\n`);
});

it("has the session of an ID token ended, which it reports apart", async ({ desk, user }) => {
  const { expiresAt } = await user.logIn("openid");
  const { stdout, stderr } = await user.run(["logout", desk.url, "--json"]);
  const row = { ...ROW, server: desk.url, session_ended: true, expires_at: expiresAt?.toISOString() };
  expect(JSON.parse(stdout)).toEqual([row]);
  expect(stderr).toContain("accepted the request to end the session, but has no revocation endpoint");
});

it("--all logs out of every server", async ({ desk, user }) => {
  const { expiresAt } = await user.logIn();
  const { code, stdout } = await user.run(["logout", "--all", "--json"]);
  const row = { ...ROW, server: desk.url, expires_at: expiresAt?.toISOString() };
  expect([code, JSON.parse(stdout)]).toEqual([0, [row]]);
  expect(await user.run(["logout", "--all"])).toMatchObject({ code: 0, stderr: "not logged in\n" });
});

it("exits with 0 where the session is not ended, and warns of it", async ({ desk, faults, user }) => {
  await user.logIn("openid");
  faults.add({ kind: "status", status: 503, path: "end_session", times: 0 });
  const { code, stderr } = await user.run(["logout", desk.url]);
  expect([code, await user.store.list()]).toEqual([0, []]);
  expect(stderr).toMatch(/^warning: logged out of \S+ locally, but its session was not ended \(.+\)/m);
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
  writeGrantFile(user.home, '{"schema": 99}');
  const { code, stdout, stderr } = await user.run(["logout", "--all", "--json"]);
  expect([code, stdout, stderr]).toEqual([8, "[]\n", expect.stringContaining("a stored login cannot be used")]);
});
