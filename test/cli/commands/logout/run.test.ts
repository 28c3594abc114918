import { describe, expect } from "vitest";
import { logout, logoutOfAll } from "../../../../src/cli/commands/logout/run.js";
import { AgentAuthError } from "../../../../src/errors.js";
import type { AgentClient } from "../../../../src/oauth/agent.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { writeGrantFile } from "../../../helpers/grant-files.js";
import { harnessTest } from "../harness.js";
import { failureOf, memoryContext } from "../request/support.js";

const it = harnessTest();

const ROW = { profile: "default", account: null, removed: true, revoked: null, session_ended: null, error: null };

it("deletes the login, and names the time until which the token stays valid that the service cannot revoke", async ({
  harness,
  user,
}) => {
  const { value, expiresAt } = await user.logIn();
  const requests = () => harness.sandbox.requests.length;
  const before = requests();
  const expected = `logged out of ${harness.url}; its issuer has no revocation endpoint: the access token stays valid until ${expiresAt?.toISOString()}\n`;
  expect(await user.run(["logout", harness.url])).toMatchObject({ code: 0, stdout: "", stderr: expected });
  expect(requests()).toBe(before);
  expect(await user.store.list()).toEqual([]);
  const headers = { authorization: `Bearer ${value}`, "content-type": "application/json", accept: "*/*" };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
  expect((await fetch(harness.url, { method: "POST", headers, body })).status).not.toBe(401);
  const again = await user.run(["logout", harness.url, "--json"]);
  const row = { ...ROW, server: harness.url, removed: false, expires_at: null };
  expect([again.code, JSON.parse(again.stdout)]).toEqual([0, [row]]);
  expect(again.stderr).toBe(`not logged in at ${harness.url}\n`);
});

it("has the session of an ID token ended, which it reports apart", async ({ harness, user }) => {
  const { expiresAt } = await user.logIn("openid");
  const { stdout, stderr } = await user.run(["logout", harness.url, "--json"]);
  const row = { ...ROW, server: harness.url, session_ended: true, expires_at: expiresAt?.toISOString() };
  expect(JSON.parse(stdout)).toEqual([row]);
  expect(stderr).toBe(
    `logged out of ${harness.url}; its issuer accepted the request to end the session, but has no revocation endpoint: the access token stays valid until ${expiresAt?.toISOString()}\n`,
  );
});

it("--all logs out of every server", async ({ harness, user }) => {
  const { expiresAt } = await user.logIn();
  const { code, stdout } = await user.run(["logout", "--all", "--json"]);
  const row = { ...ROW, server: harness.url, expires_at: expiresAt?.toISOString() };
  expect([code, JSON.parse(stdout)]).toEqual([0, [row]]);
  expect(await user.run(["logout", "--all"])).toMatchObject({ code: 0, stderr: "not logged in\n" });
});

it("prints a row of columns on request", async ({ harness, user }) => {
  const { expiresAt } = await user.logIn("openid");
  const { stdout } = await user.run(["logout", harness.url, "-o", "csv"]);
  expect(stdout.split(/\r?\n/)).toEqual([
    "server,removed,revoked,error,session_ended,expires_at,account,profile",
    `${harness.url},true,,,true,${expiresAt?.toISOString()},,default`,
    "",
  ]);
});

it("prints a table of what matters, and a wide one of the rest", async ({ harness, user }) => {
  const tableOf = async (format: string) => {
    const { expiresAt } = await user.logIn();
    const { stdout } = await user.run(["logout", harness.url, "-o", format]);
    return stdout
      .replace(harness.url, "<server>")
      .replace(expiresAt?.toISOString() ?? "", "<time>")
      .replace(/ +/g, " ");
  };
  expect([await tableOf("table"), await tableOf("wide")]).toMatchSnapshot();
});

it("exits with 0 where the session is not ended, and warns of it", async ({ harness, faults, user }) => {
  await user.logIn("openid");
  faults.add({ kind: "status", status: 503, path: "end_session", times: 0 });
  const { code, stderr } = await user.run(["logout", harness.url]);
  expect([code, await user.store.list()]).toEqual([0, []]);
  expect(stderr).toMatch(/^warning: logged out of \S+ locally, but its session was not ended \(.+\)/m);
});

it.for<[string, string[], RegExp]>([
  ["neither a server nor --all", [], /give one MCP server, --idp, --hand-over, or --all/],
  ["both", ["URL", "--all"], /give one MCP server, --idp, --hand-over, or --all/],
  ["one account of all", ["--all", "--account-hint", "bob"], /--all covers every account/],
  ["an address that is none", ["nowhere"], /nowhere/],
])("refuses %s", async ([_what, args, words], { harness, user }) => {
  await user.logIn();
  const { code, stdout, stderr } = await user.run(["logout", ...args.map((one) => one.replace("URL", harness.url))]);
  expect([code, stdout, stderr]).toEqual([2, "", expect.stringMatching(words)]);
  expect(fixedText(stderr)).toMatchSnapshot();
  expect(await user.store.list()).toHaveLength(1);
});

it("--all exits with 8 where a login cannot be read", async ({ user }) => {
  writeGrantFile(user.home, '{"schema": 99}');
  const { code, stdout, stderr } = await user.run(["logout", "--all", "--json"]);
  expect([code, stdout, stderr]).toEqual([8, "[]\n", expect.stringContaining("a stored login cannot be used")]);
});

type Outcome = Awaited<ReturnType<AgentClient["disconnect"]>>;

const agentThat = (outcomes: Record<string, Outcome | Error>): Pick<AgentClient, "disconnect"> => ({
  async disconnect(server) {
    const outcome = outcomes[String(server)];
    if (outcome === undefined || outcome instanceof Error) throw outcome;
    return outcome;
  },
});
const store = (message: string) => new AgentAuthError("store_failed", message, { class: "store", hint: "chmod it" });

/** What the SDK reports of a logout. */
const outcome = (over: Partial<Outcome> = {}): Outcome => ({
  removed: true,
  revoked: true,
  sessionEnded: null,
  ...over,
});
const EXPIRES = new Date("2099-01-01T00:00:00Z");
const NO_REVOCATION = { revoked: null, expiresAt: EXPIRES };

describe("signing out of one server", () => {
  it.each<[string, Outcome, RegExp, object]>([
    ["the issuer revokes the tokens", outcome(), /^logged out of S\n$/, { revoked: true, error: null }],
    [
      "the issuer cannot revoke a token",
      outcome(NO_REVOCATION),
      /^logged out of S; its issuer has no revocation endpoint: the access token stays valid until 2099-01-01T00:00:00.000Z\n$/,
      { revoked: null, session_ended: null, expires_at: "2099-01-01T00:00:00.000Z", error: null },
    ],
    [
      "it does not say when the token expires",
      outcome({ revoked: null }),
      /endpoint: the access token stays valid until it expires\n$/,
      { expires_at: null },
    ],
    [
      "the token has expired",
      outcome({ revoked: null, expiresAt: new Date("2020-01-01T00:00:00Z") }),
      /endpoint: the access token expired at 2020-01-01T00:00:00.000Z\n$/,
      { expires_at: "2020-01-01T00:00:00.000Z" },
    ],
    [
      "the issuer ends the session",
      outcome({ ...NO_REVOCATION, sessionEnded: true }),
      /its issuer accepted the request to end the session, but has no revocation endpoint: the access token stays valid/,
      { revoked: null, session_ended: true, error: null },
    ],
    [
      "the issuer does not end the session",
      outcome({ ...NO_REVOCATION, sessionEnded: false }),
      /^warning: logged out of S locally, but its session was not ended \(it responded with an error\), and its issuer has no revocation endpoint: the access token stays valid until 2099/,
      { revoked: null, session_ended: false, error: "it responded with an error" },
    ],
    [
      "no user was logged in",
      outcome({ removed: false, revoked: null }),
      /^not logged in at S\n$/,
      { removed: false, revoked: null },
    ],
    [
      "the issuer fails",
      outcome({ revoked: false, notRevoked: ["refresh_token"] }),
      /^warning: logged out of S locally, but its refresh token was not revoked \(it responded with an error\): the next login or logout tries again\n$/,
      { removed: true, revoked: false, error: "it responded with an error" },
    ],
    [
      "the issuer says something hostile",
      outcome({
        revoked: false,
        notRevoked: ["access_token"],
        error: new AgentAuthError("http_error", "no \u001b[31m", { class: "remote" }),
      }),
      /\(no \\e\[31m\)/,
      { revoked: false },
    ],
  ])("says so where %s", async (_what, outcome, said, expected) => {
    const context = memoryContext();
    const out = await logout(agentThat({ S: outcome }), { server: "S" }, "work", context);
    expect(out).toMatchObject({ server: "S", profile: "work", ...expected });
    expect([context.io.out(), context.io.err()]).toEqual(["", expect.stringMatching(said)]);
    expect(fixedText(context.io.err())).toMatchSnapshot();
  });

  it("takes a token for expired from the moment on that its issuer named", async () => {
    for (const [ago, words] of [
      [0, "expired at"],
      [1, "stays valid until"],
    ] as const) {
      const context = Object.assign(memoryContext(), { now: () => EXPIRES.getTime() - ago });
      await logout(agentThat({ S: outcome(NO_REVOCATION) }), { server: "S" }, "work", context);
      expect(context.io.err()).toContain(`the access token ${words} 2099-`);
    }
  });

  it("gives a reason in few words, without secrets", async () => {
    const context = memoryContext();
    const error = new AgentAuthError("http_error", `refresh_token=hush-hush ${"x".repeat(500)}`, { class: "remote" });
    await logout(agentThat({ S: outcome({ revoked: false, error }) }), { server: "S" }, "default", context);
    expect(context.io.err()).not.toContain("hush-hush");
    expect(context.io.err().length).toBeLessThan(320);
  });

  it("fails where the login cannot be removed here", async () => {
    const error = store("it cannot be removed");
    expect(await failureOf(logout(agentThat({ S: error }), { server: "S" }, "default", memoryContext()))).toBe(error);
  });
});

describe("signing out of all", () => {
  it("continues after a failure, reports each, and ends with one error", async () => {
    const context = memoryContext();
    const agent = agentThat({ A: store("A is locked"), B: outcome(), C: store("C is locked") });
    const { logouts, failure } = await logoutOfAll(
      agent,
      [{ server: "A" }, { server: "B" }, { server: "C" }],
      "default",
      context,
    );
    expect(logouts.map(({ server, removed, error }) => [server, removed, error])).toEqual([
      ["A", false, "A is locked"],
      ["B", true, null],
      ["C", false, "C is locked"],
    ]);
    expect(context.io.err()).toContain("warning: still logged in at A: A is locked\n");
    expect(failure).toMatchObject({
      class: "store",
      hint: "chmod it",
      message: "2 of 3 logins could not be removed, the first of them: A is locked",
    });
  });

  it("is no failure where only an issuer could not be reached", async () => {
    const context = memoryContext();
    const agent = agentThat({ A: outcome({ revoked: false }), B: outcome() });
    const { failure } = await logoutOfAll(agent, [{ server: "A" }, { server: "B" }], "default", context);
    expect(failure).toBeUndefined();
    expect(context.io.err()).toContain("1 of 2 issuers\n");
  });

  it("does not wait for one issuer before it goes to the next", async () => {
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const agent: Pick<AgentClient, "disconnect"> = {
      async disconnect(server) {
        if (server === "A") await gate;
        else release();
        return outcome();
      },
    };
    const { logouts } = await logoutOfAll(agent, [{ server: "A" }, { server: "B" }], "default", memoryContext());
    expect(logouts.map(({ server }) => server)).toEqual(["A", "B"]);
  });

  it("lets a bug through", async () => {
    const bug = new TypeError("oops");
    expect(await failureOf(logoutOfAll(agentThat({ A: bug }), [{ server: "A" }], "default", memoryContext()))).toBe(
      bug,
    );
  });
});
