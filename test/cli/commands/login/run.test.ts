import { once } from "node:events";
import { chmodSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { newLoginId } from "../../../../src/cli/commands/login/two-step-login.js";
import { collect, type RunOptions, until } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { harnessTest, type User } from "../harness.js";

const it = harnessTest()
  /** The first step of a login in two steps. */
  .extend("begin", ({ harness, user }) => async (...flags: string[]) => {
    const { code, stdout } = await user.run(["login", harness.url, "--no-wait", "--json", ...flags]);
    expect(code).toBe(0);
    return JSON.parse(stdout) as { login_id: string; url: string; finish: string };
  });

/** Runs a login that waits for the user, who opens the URL that it prints. */
async function login(user: User, args: readonly string[], open?: string, options: RunOptions = {}) {
  const run = user.start(["login", ...args], options);
  const closed = once(run, "close");
  const [out, err] = [collect(run.stdout), collect(run.stderr)];
  const url = () => /^ {2}(https?:\S+)$/m.exec(err())?.[1];
  await until(() => url() !== undefined || run.exitCode !== null);
  if (run.exitCode === null) await (await fetch(open ?? url() ?? "")).text();
  await closed;
  return { code: run.exitCode, stdout: out(), stderr: err() };
}

it("logs in with the URL that it prints, and says for how long", async ({ harness, user }) => {
  const { code, stdout, stderr } = await login(user, [harness.url, "--browser", "none"]);
  expect([code, stdout]).toEqual([0, ""]);
  expect(stderr).toMatch(/^logged in at \S+ \(issuer \S+\)\nthe token expires at \S+$/m);
  expect(await user.store.list()).toHaveLength(1);
});

it("lists the servers that it knows where none is named", async ({ harness, user }) => {
  await user.logIn();
  const { code, stdout, stderr } = await user.run(["login"]);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toContain("error: no MCP server is named\nhint: agentauth login <mcp_url>, such as");
  expect(stderr).toContain(`; servers with a stored login: ${harness.url}\n`);
});

it("makes the profile that it names, which a token alone does not", async ({ harness, user }) => {
  const token = ["token", harness.url, "--profile", "work"];
  expect(await user.run(token)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`agentauth login ${harness.url} --profile work`),
  });
  const { code } = await login(user, [harness.url, "--browser", "none", "--profile", "work"]);
  expect(code).toBe(0);
  expect((await user.run(token)).code).toBe(0);
  expect((await user.run(["token", harness.url])).code).toBe(4);
  expect((await user.run(["profile", "list"])).stdout).toContain("work\tfalse");
  const begun = ["login", harness.url, "--no-wait", "--json", "--profile", "other"];
  const { finish, url } = JSON.parse((await user.run(begun)).stdout) as { finish: string; url: string };
  expect((await login(user, finish.split(" ").slice(2), url)).code).toBe(0);
  expect((await user.run(["login", harness.url, "--profile", "a b"])).stderr).toContain("is not a valid profile name");
});

it("uses the profile of the sandbox where none runs", async ({ harness, user }) => {
  const { code } = await login(user, [harness.url, "--browser", "none", "--profile", "sandbox"]);
  expect(code).toBe(0);
  expect((await user.run(["token", harness.url, "--profile", "sandbox"])).code).toBe(0);
  expect((await user.run(["profile", "list"])).stdout).not.toContain("sandbox");
});

it("prints the login as JSON", async ({ harness, user }) => {
  const { code, stdout } = await login(user, [harness.url, "--browser", "none", "--json"]);
  expect([code, JSON.parse(stdout)]).toMatchObject([0, { logged_in: true, server: harness.url, state: "valid" }]);
});

it("repairs a home folder that others can read", async ({ harness, user }) => {
  await user.logIn();
  chmodSync(user.home, 0o755);
  const { code, stderr } = await login(user, [harness.url, "--browser", "none"]);
  expect([code, stderr]).toEqual([0, expect.stringContaining("was readable by other users; it is private again")]);
  expect(statSync(user.home).mode & 0o777).toBe(0o700);
});

it.for<[string, Record<string, string>, string]>([
  ["there is no terminal", {}, "there is no terminal"],
  ["an AI agent runs it", { AGENTAUTH_AGENT: "1" }, "an AI agent runs it"],
])("stops after the first step where %s", async ([_what, env, reason], { harness, user }) => {
  const { code, stdout, stderr } = await user.run(["login", harness.url], { env });
  expect([code, JSON.parse(stdout)]).toMatchObject([0, { login_id: expect.stringMatching(/^[\w-]{12}$/) }]);
  expect(stderr).toContain(`login does not wait for the user, since ${reason}`);
});

it("prints the URL alone with --no-wait, and the second command on stderr", async ({ harness, user }) => {
  const { code, stdout, stderr } = await user.run(["login", harness.url, "--no-wait"]);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^http:\S+\n$/)]);
  expect(stderr).toMatch(
    /run this in another window before you open the URL to log in: agentauth login \S+ --wait \S+\n$/,
  );
});

it("finishes a login in two steps, for the account and the profile of the first", async ({ harness, user, begin }) => {
  await user.run(["config", "set", "pool", "p", "--profile", "work"]);
  const begun = await begin("--account-hint", "alice", "--profile", "work");
  expect(begun.finish).toBe(
    `agentauth login ${harness.url} --wait ${begun.login_id} --profile work --account-hint alice`,
  );
  const { code, stdout } = await login(user, [...begun.finish.split(" ").slice(2), "--json"], begun.url);
  expect([code, JSON.parse(stdout)]).toMatchObject([0, { account: "alice", profile: "work" }]);
});

it.for<[string, string[], string[], RegExp]>([
  [
    "another account",
    ["--account-hint", "alice"],
    ["--account-hint", "bob"],
    /is for "alice", not for --account-hint "bob"/,
  ],
  ["an account where none was named", [], ["--account-hint", "bob"], /was started without an account/],
  ["another profile", [], ["--profile", "work"], /belongs to the profile default/],
])("refuses to finish a login with %s", async ([_what, first, second, words], { harness, user, begin }) => {
  await user.run(["config", "set", "pool", "p", "--profile", "work"]);
  const { login_id } = await begin(...first);
  const { code, stdout, stderr } = await user.run(["login", harness.url, "--wait", login_id, ...second]);
  expect([code, stdout, stderr]).toEqual([2, "", expect.stringMatching(words)]);
  expect(fixedText(stderr)).toMatchSnapshot();
  const env = { AGENTAUTH_ERRORS: "json" };
  const json = await user.run(["login", harness.url, "--wait", login_id, ...second], { env });
  expect(JSON.parse(json.stderr).error).toMatchObject({ code: "usage", class: "usage", exit_code: 2 });
});

it("refuses to finish the login of another server, one that is not stored, and one that is damaged", async ({
  harness,
  user,
  begin,
}) => {
  const { login_id } = await begin();
  const other = await user.run(["login", "https://other.example/mcp", "--wait", login_id]);
  expect([other.code, other.stderr]).toEqual([2, expect.stringContaining(`is for ${harness.url}, not for`)]);
  const absent = await user.run(["login", harness.url, "--wait", "AAAAAAAAAAAA"]);
  expect([absent.code, absent.stderr]).toEqual([
    2,
    expect.stringContaining('no started login "AAAAAAAAAAAA" is stored'),
  ]);
  const wrong = await user.run(["login", harness.url, "--wait", "../x"]);
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('--wait "../x" is not a login id')]);
  writeFileSync(join(user.home, "logins", `${login_id}.json`), "{}", { mode: 0o600 });
  const damaged = await user.run(["login", harness.url, "--wait", login_id]);
  expect([damaged.code, damaged.stderr]).toEqual([8, expect.stringContaining("start the login again")]);
});

/** Starts the process that receives the callback of a login. */
async function listen(user: User, id: string, url: string) {
  const { searchParams } = new URL(url);
  const run = user.start(["receive-callback"]);
  const [out, listened] = [collect(run.stdout), once(run, "close")];
  run.stdin?.write(`${JSON.stringify({ preferred: searchParams.get("redirect_uri") })}\n`);
  await until(() => out().includes("redirectUri"));
  run.stdin?.write(`${JSON.stringify({ id, state: searchParams.get("state"), ttlMs: 60_000 })}\n`);
  await until(() => out().includes("isHeld"));
  return { listened };
}

it("waits for the callback that another process receives, and says so once", async ({ user, harness, begin }) => {
  const { login_id, url } = await begin();
  const { listened } = await listen(user, login_id, url);
  const waiting = user.start(["login", harness.url, "--wait", login_id, "--quiet"]);
  const [err, closed] = [collect(waiting.stderr), once(waiting, "close")];
  await until(() => err().includes("Waiting for the login") || waiting.exitCode !== null);
  // It looks for the callback more than once.
  await new Promise((resolve) => setTimeout(resolve, 450));
  await (await fetch(url)).text();
  await Promise.all([closed, listened]);
  expect([waiting.exitCode, err().match(/Waiting for the login/g)?.length, err().split(url).length]).toEqual([0, 1, 2]);
  expect(await user.store.list()).toHaveLength(1);
});

it("ends the wait for a callback that another process receives when its time is up", async ({
  user,
  harness,
  begin,
}) => {
  const { login_id, url } = await begin();
  const { listened } = await listen(user, login_id, url);
  const late = await user.run(["login", harness.url, "--wait", login_id, "--login-timeout", "0.3"]);
  expect([late.code, late.stderr]).toEqual([4, expect.stringContaining("was not finished within 0 seconds")]);
  rmSync(join(user.home, "logins", `${login_id}.json`));
  await listened;
});

it("lists by status the started logins of the choice alone", async ({ harness, user, begin }) => {
  await user.run(["config", "set", "pool", "p", "--profile", "work"]);
  const own = (await begin()).login_id;
  const alice = (await begin("--account-hint", "alice")).login_id;
  const work = (await begin("--profile", "work")).login_id;
  const listed = async (...args: string[]) => {
    const { stderr } = await user.run(["status", ...args]);
    expect(stderr.match(/ is pending until /g)).toHaveLength(
      [own, alice, work].filter((id) => stderr.includes(id)).length,
    );
    return [own, alice, work].filter((id) => stderr.includes(id));
  };
  expect(await listed()).toEqual([own, alice]);
  expect(await listed(harness.url)).toEqual([own, alice]);
  expect(await listed("--account-hint", "alice")).toEqual([alice]);
  expect(await listed("--profile", "work")).toEqual([work]);
  expect(await listed("--all")).toEqual([own, alice, work]);
  const { stderr } = await user.run(["status", "https://other.example/mcp"]);
  expect(stderr).not.toContain("is pending until");
});

it("removes the files of logins that have expired", async ({ harness, user, begin }) => {
  const { login_id } = await begin();
  const later = Date.now() + 11 * 60_000;
  const clock = { now: () => performance.now(), epoch: () => later, sleep: async () => {} };
  await user.run(["login", harness.url, "--no-wait"], { clock });
  const { code } = await user.run(["login", harness.url, "--wait", login_id]);
  expect(code).toBe(2);
});

it.for<[string, string[], number, RegExp]>([
  [
    "a machine grant in two steps",
    ["--no-wait", "--grant", "client-credentials", "--client-id", "x"],
    2,
    /no user logs in/,
  ],
  [
    "a device login where the issuer has none",
    ["--no-wait", "--flow", "device"],
    4,
    /does not support login on another/,
  ],
])("refuses %s", async ([_what, flags, exitCode, words], { harness, user }) => {
  const { code, stdout, stderr } = await user.run(["login", harness.url, ...flags]);
  expect([code, stdout, stderr]).toEqual([exitCode, "", expect.stringMatching(words)]);
  expect(fixedText(stderr)).toMatchSnapshot();
});

it.for<[string, string[]]>([
  ["a callback without its login", ["https://mcp.example/mcp", "--callback-url", "http://127.0.0.1:1/?code=c"]],
  ["a callback of a login that begins", ["https://mcp.example/mcp", "--no-wait", "--callback-url", "x"]],
  ["an identity provider and a server", ["https://mcp.example/mcp", "--idp", "https://idp.example"]],
  [
    "an identity provider and a grant",
    ["--idp", "https://idp.example", "--grant", "client-credentials", "--client-id", "c"],
  ],
  ["the client of a server at an identity provider", ["--idp", "https://idp.example", "--client-id", "c"]],
  ["an identity provider without an address", ["--idp", "idp"]],
  ["no server", []],
])("refuses %s, and says what helps", async ([_what, args], { user }) => {
  const { code, stdout, stderr } = await user.run(["login", ...args]);
  expect([code, stdout]).toEqual([2, ""]);
  expect(fixedText(stderr)).toMatchSnapshot();
});

/** What a run prints, without what no two logins have in common. */
const shown = (text: string) =>
  fixedText(text)
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
    .replace(/(--wait |"login_id":")[\w-]{12}/g, "$1<login_id>")
    .replace(/(\?|&|\\u0026)(state|code_challenge|client_id|nonce)=[\w.~-]+/g, "$1$2=<$2>")
    .replace(/"client_id":"[^"]+"/g, '"client_id":"<client_id>"')
    .replace(/127\.0\.0\.1%3A\d+/g, "<address>")
    // What a container adds.
    .replace(/This looks like a container\..*?--flow paste\.\n/s, "");

it.for<[string, string[]]>([
  ["a terminal", []],
  ["JSON", ["--json"]],
  ["-o json", ["-o", "json"]],
  ["a paste", ["--flow", "paste"]],
  ["a paste as JSON", ["--flow", "paste", "--json"]],
])("prints the first step whole, for %s", async ([_what, flags], { harness, user }) => {
  const { code, stdout, stderr } = await user.run([
    "login",
    harness.url,
    "--no-wait",
    "--login-timeout",
    "60",
    ...flags,
  ]);
  expect([code, shown(`${stdout}---\n${stderr}`)]).toMatchSnapshot();
});

it("prints a login in one step whole, as text and as JSON", async ({ harness, user }) => {
  for (const flags of [[], ["--json"], ["-o", "text"]]) {
    const { code, stdout, stderr } = await login(user, [harness.url, "--browser", "none", ...flags]);
    expect([code, shown(`${stdout}---\n${stderr}`).replaceAll(user.home, "<home>")]).toMatchSnapshot();
  }
});

it("names no flow that the issuer does not have", async ({ harness, user }) => {
  const more = { env: { container: "docker" } };
  const { stderr } = await login(user, [harness.url, "--browser", "none"], undefined, more);
  expect(stderr).toContain("Otherwise log in with --flow paste.\n");
});

it("fits its sentences to a terminal, and breaks no line to copy", async ({ harness, user }) => {
  const env = { SSH_CONNECTION: "192.0.2.1 50000 192.0.2.2 22", NO_COLOR: "1", TERM: "dumb" };
  const run = await login(user, [harness.url, "--browser", "none"], undefined, { tty: true, columns: 40, env });
  const lines = run.stderr.split("\n");
  expect([
    run.code,
    lines.filter((line) => !line.startsWith(" ") && line.length > 40 && line.includes(" for ")),
  ]).toEqual([0, []]);
  expect(lines.filter((line) => line.startsWith(" "))).toEqual([
    expect.stringMatching(/^ {2}http\S+$/),
    expect.stringMatching(/^ {2}ssh \S.*\S \S+$/),
  ]);
});

it("says when a started login can be finished until", async ({ harness, user }) => {
  const now = Date.UTC(2030, 0, 1);
  const clock = { now: () => performance.now(), epoch: () => now, sleep: async () => {} };
  const until = async (...flags: string[]) => {
    const { stdout } = await user.run(["login", harness.url, "--no-wait", "--json", ...flags], { clock });
    return JSON.parse(stdout).expires_at;
  };
  expect([await until(), await until("--login-timeout", "60")]).toEqual([
    ...["2030-01-01T00:10:00.000Z", "2030-01-01T00:01:00.000Z"],
  ]);
});

it("refuses an address that is none", async ({ user }) => {
  expect(await user.run(["login", "nowhere"])).toMatchObject({ code: 2, stdout: "" });
});

it("begins no id of a login with a dash, which the parser reads as a flag", () => {
  const [dashes, others] = [Buffer.from("-zr1_oJ5gMZa", "base64url"), Buffer.alloc(9, 7)];
  expect(dashes.toString("base64url")).toMatch(/^-/);
  expect([newLoginId(dashes), newLoginId(others)]).toEqual(["_zr1_oJ5gMZa", "BwcHBwcHBwcH"]);
});
