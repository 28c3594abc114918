import { once } from "node:events";
import { lstatSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { McpOAuthCredential } from "../../../../src/oauth/hand-over.js";
import { collect, type RunOptions, temporaryFolder, until } from "../../../helpers/cli.js";
import { harnessTest, type User } from "../harness.js";

const it = harnessTest({ revocation: true, deviceFlow: true });

/** Runs a login whose user opens an address, by default the last one that it prints. */
async function login(user: User, args: readonly string[], open?: string) {
  const run = user.start(["login", ...args]);
  const closed = once(run, "close");
  const [stdout, stderr] = [collect(run.stdout), collect(run.stderr)];
  await until(() => stderr().includes("Waiting for the login") || run.exitCode !== null);
  const url = open ?? [...stderr().matchAll(/^ {2}(https?:\S+)$/gm)].at(-1)?.[1];
  if (url !== undefined) await (await fetch(url)).text();
  await closed;
  return { code: run.exitCode, stdout: stdout(), stderr: stderr() };
}

const parse = (text: string) => JSON.parse(text) as McpOAuthCredential;

/** The status of a request with the token of a login. */
const use = async ({ mcp_server_url: url, access_token: token }: McpOAuthCredential) =>
  (await fetch(url, { method: "POST", headers: { authorization: `Bearer ${token}` } })).status;

const FLOWS = [
  ["a browser", ["--browser", "none"]],
  ["another device", ["--flow", "device"]],
] as const;

it.for(FLOWS)("prints a login with %s, and stores nothing of it", async ([_flow, flags], { harness, user }) => {
  const { code, stdout, stderr } = await login(user, [harness.url, "--hand-over", ...flags]);
  expect([code, stderr]).toEqual([0, expect.stringContaining(`handed over a login at ${harness.url} (issuer `)]);
  const made = parse(stdout);
  expect(await use(made)).not.toBe(401);
  expect(await user.store.list()).toEqual([]);
  expect(stderr).not.toContain(made.access_token);
  const logout = await user.run(["logout", "--hand-over", "-", "--json"], { stdin: stdout });
  expect([logout.code, JSON.parse(logout.stdout)]).toMatchObject([0, [{ server: harness.url, revoked: true }]]);
  const refresh = { refresh_token: made.refresh?.refresh_token ?? "", grant_type: "refresh_token" };
  const { client_id = "", token_endpoint = "", token_endpoint_auth } = made.refresh ?? {};
  const secret = token_endpoint_auth?.type === "none" ? "" : (token_endpoint_auth?.client_secret ?? "");
  const headers = { authorization: `Basic ${btoa(`${client_id}:${secret}`)}` };
  const answer = await fetch(token_endpoint, { method: "POST", headers, body: new URLSearchParams(refresh) });
  expect(await answer.json()).toMatchObject({ error: "invalid_grant" });
});

it("writes it into a new file of the user alone, in the form of a vendor, which logout reads", async ({
  harness,
  user,
}) => {
  const file = join(temporaryFolder(), "credential.json");
  const flags = ["--hand-over-format", "anthropic", "--browser", "none"];
  const { code, stdout } = await login(user, [harness.url, `--hand-over=${file}`, ...flags]);
  expect([code, stdout, lstatSync(file).mode & 0o777]).toEqual([0, "", 0o600]);
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({
    display_name: harness.url,
    auth: { type: "mcp_oauth" },
  });
  expect(await user.run(["logout", "--hand-over", file])).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`logged out of ${harness.url}\n`),
  });
});

it("takes the server after --hand-over, which has no value then", async ({ harness, user }) => {
  const { code, stdout } = await login(user, ["--hand-over", harness.url, "--browser", "none"]);
  expect([code, parse(stdout).mcp_server_url]).toEqual([0, harness.url]);
});

it("hands over in two steps what was begun so, and nothing else", async ({ harness, user }) => {
  const file = join(temporaryFolder(), "credential.json");
  const begin = async (...flags: string[]) =>
    JSON.parse((await user.run(["login", harness.url, "--no-wait", "--json", ...flags])).stdout);
  const begun = await begin(`--hand-over=${file}`, "--hand-over-format", "openai");
  expect(begun.finish).toBe(
    `agentauth login ${harness.url} --wait ${begun.login_id} --hand-over=${file} --hand-over-format openai`,
  );
  const plain = await user.run(["login", harness.url, "--wait", begun.login_id]);
  expect(plain).toMatchObject({ code: 2, stderr: expect.stringContaining(begun.finish) });
  expect(await login(user, begun.finish.split(" ").slice(2), begun.url)).toMatchObject({ code: 0, stdout: "" });
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ name: harness.url });
  expect(await user.store.list()).toEqual([]);
  const { login_id } = await begin();
  const other = await user.run(["login", harness.url, "--wait", login_id, "--hand-over"]);
  expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining("is to be stored") });
});

it.for<[string, string[], RunOptions, string]>([
  ["a terminal", ["--hand-over"], { tty: true }, "--show-secrets"],
  ["standard output of a login that only begins", ["--hand-over"], {}, "--no-wait"],
  ["a folder that is missing", ["--hand-over=/nonexistent/file"], {}, "has no folder"],
  ["a machine grant", ["--hand-over", "--grant", "client-credentials"], {}, "--grant do not go together"],
  ["a format without it", ["--hand-over-format", "openai"], {}, "add --hand-over"],
])("refuses %s before a request", async ([_what, flags, options, says], { harness, user }) => {
  const before = harness.sandbox.requests.length;
  const { code, stdout, stderr } = await user.run(["login", harness.url, ...flags], options);
  expect([code, stdout, stderr]).toEqual([2, "", expect.stringContaining(says)]);
  expect(harness.sandbox.requests.length).toBe(before);
});

it.for<[string, string]>([
  ["no JSON", "secret"],
  ["no credential", '{"type":"static_bearer","token":"secret"}'],
  ["no token", '{"type":"mcp_oauth","mcp_server_url":"https://mcp.example/mcp"}'],
  ["no client", '{"type":"mcp_oauth","mcp_server_url":"https://mcp.example/mcp","access_token":"secret","refresh":{}}'],
])("refuses to revoke %s, and does not show it", async ([_what, stdin], { user }) => {
  const { code, stderr } = await user.run(["logout", "--hand-over", "-"], { stdin });
  expect([code, stderr]).toEqual([2, expect.stringContaining("standard input")]);
  expect(stderr).not.toContain("secret");
});
