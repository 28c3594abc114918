import { describe, expect, it } from "vitest";
import { logout, logoutOfAll } from "../../../../src/cli/commands/logout/logout.js";
import { AgentAuthError } from "../../../../src/errors.js";
import type { AgentClient } from "../../../../src/oauth/agent.js";
import { failureOf, memoryContext } from "../request/support.js";

type Outcome = Awaited<ReturnType<AgentClient["logout"]>>;

const agentThat = (outcomes: Record<string, Outcome | Error>): Pick<AgentClient, "logout"> => ({
  async logout(server) {
    const outcome = outcomes[server];
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
      "nobody was signed in",
      outcome({ removed: false, revoked: null }),
      /^not logged in at S\n$/,
      { removed: false, revoked: null },
    ],
    [
      "the issuer fails",
      outcome({ revoked: false, expiresAt: EXPIRES }),
      /^warning: logged out of S locally, but revocation failed \(it responded with an error\): the access token stays valid until 2099-01-01T00:00:00.000Z\n$/,
      { removed: true, revoked: false, error: "it responded with an error" },
    ],
    [
      "the issuer says something hostile",
      outcome({ revoked: false, error: new AgentAuthError("http_error", "no \u001b[31m", { class: "remote" }) }),
      /\(no \\e\[31m\)/,
      { revoked: false },
    ],
  ])("says so where %s", async (_what, outcome, said, expected) => {
    const context = memoryContext();
    const out = await logout(agentThat({ S: outcome }), { server: "S" }, "work", context);
    expect(out).toMatchObject({ server: "S", profile: "work", ...expected });
    expect([context.io.out(), context.io.err()]).toEqual(["", expect.stringMatching(said)]);
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
    const agent: Pick<AgentClient, "logout"> = {
      async logout(server) {
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
