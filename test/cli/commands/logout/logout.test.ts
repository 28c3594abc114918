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

describe("signing out of one server", () => {
  it.each<[string, Outcome, RegExp, object]>([
    ["the issuer takes it", { removed: true, revoked: true }, /^logged out of S\n$/, { revoked: true, error: null }],
    [
      "it cannot be told",
      { removed: true, revoked: undefined },
      /has no revocation endpoint\n$/,
      { revoked: null, error: null },
    ],
    ["nobody was signed in", { removed: false, revoked: undefined }, /^not logged in at S\n$/, { removed: false }],
    [
      "the issuer fails",
      { removed: true, revoked: false },
      /^warning: logged out of S locally, but revocation failed \(it responded with an error\): the token stays valid until it expires\n$/,
      { removed: true, revoked: false, error: "it responded with an error" },
    ],
    [
      "the issuer says something hostile",
      { removed: true, revoked: false, error: new AgentAuthError("http_error", "no \u001b[31m", { class: "remote" }) },
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
    await logout(agentThat({ S: { removed: true, revoked: false, error } }), { server: "S" }, "default", context);
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
    const agent = agentThat({ A: store("A is locked"), B: { removed: true, revoked: true }, C: store("C is locked") });
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
    const agent = agentThat({ A: { removed: true, revoked: false }, B: { removed: true, revoked: true } });
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
        return { removed: true, revoked: true };
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
