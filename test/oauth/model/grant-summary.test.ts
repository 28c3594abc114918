import { describe, expect, it } from "vitest";
import { AgentAuthError, type ErrorClass } from "../../../src/errors.js";
import type { Grant } from "../../../src/oauth/model/grant.js";
import {
  checkPageLimit,
  connectionPages,
  decodeSummary,
  encodeSummary,
  markedState,
  matchesQuery,
  readUsable,
  summarizeGrant,
  toConnection,
} from "../../../src/oauth/model/grant-summary.js";
import { madeGrant } from "../../helpers/grant.js";

const NOW = 1_800_000_000_000;
const { tokens } = madeGrant();
const living = { ...tokens, expiresAt: NOW + 3_600_000 };
const expired = { ...tokens, expiresAt: NOW - 3_600_000 };
const once = { refreshToken: undefined };
const retired = { at: NOW, reason: "invalid_grant" };
const lostRefresh = { at: NOW, code: "timeout", generation: 1 };
const machine = { account: "grant:client_credentials:c" };

describe("a connection", () => {
  it.each<[string, Partial<Grant>, string, string | undefined, boolean]>([
    ["a token that lives", { tokens: living }, "valid", undefined, true],
    ["a token that lives and no refresh token", { tokens: { ...living, ...once } }, "valid", "needs_login", false],
    ["an expired token", { tokens: expired }, "expired", undefined, true],
    ["an expired token and no refresh token", { tokens: { ...expired, ...once } }, "needs_login", "needs_login", false],
    ["an expired token of a machine", { tokens: { ...expired, ...once }, ...machine }, "expired", undefined, true],
    ["a refusal", { tokens: living, retired }, "needs_login", "needs_login", false],
    ["a lost refresh", { tokens: living, lostRefresh }, "lost_refresh", "lost_refresh", true],
    ["a lost refresh and an expired token", { tokens: expired, lostRefresh }, "lost_refresh", "lost_refresh", true],
    ["a refusal after a lost refresh", { tokens: living, retired, lostRefresh }, "needs_login", "needs_login", false],
  ])("with %s has its state", (_what, over, state, mark, refreshable) => {
    const summary = summarizeGrant(madeGrant(over));
    expect(toConnection(summary, NOW)).toMatchObject({ state, refreshable });
    expect(markedState(summary)).toBe(mark);
  });
});

describe("the summary of a login", () => {
  it("is what a connection says, with its times, and is read as it was written", () => {
    const grant = madeGrant({ account: "alice", tokens: living, usedAt: NOW - 1000, retired });
    const summary = summarizeGrant(grant);
    expect(decodeSummary(encodeSummary(summary))).toEqual(summary);
    expect(toConnection(summary, NOW)).toEqual({
      profile: "default",
      server: "https://mcp.example/mcp",
      account: "alice",
      issuer: "https://as.example/pool",
      state: "needs_login",
      scope: "tools",
      logged_in_at: "2023-11-14T22:13:20.000Z",
      issued_at: "2023-11-14T22:13:20.000Z",
      expires_at: "2027-01-15T09:00:00.000Z",
      last_used_at: "2027-01-15T07:59:59.000Z",
      refreshable: false,
      reason: "invalid_grant",
    });
  });

  it("has null for what is not known, and the time of its tokens for its use", () => {
    const grant = madeGrant({ tokens: { ...living, scope: undefined, expiresAt: undefined } });
    expect(toConnection(summarizeGrant(grant), NOW)).toMatchObject({
      account: null,
      scope: null,
      expires_at: null,
      last_used_at: "2023-11-14T22:13:20.000Z",
      reason: null,
    });
  });

  it("that another version wrote can be refreshed, as far as this one knows", () => {
    const text = encodeSummary(summarizeGrant(madeGrant({ retired }))).replace('"refused"', '"of a newer version"');
    expect(decodeSummary(text).renewal).toBe("possible");
    expect(() => decodeSummary(text.replace('"summary"', '"grant"'))).toThrow("it contains no summary");
  });
});

describe("a query for connections", () => {
  const connection = toConnection(summarizeGrant(madeGrant({ tokens: living })), NOW);

  it.each([
    [{}, true],
    [{ state: "valid", profile: "default" }, true],
    [{ state: "expired" }, false],
    [{ profile: "other" }, false],
    [{ server: "https://other.example" }, false],
    [{ issuer: "https://other.example" }, false],
  ] as const)("%j is for this one: %s", (query, matches) => {
    expect(matchesQuery(connection, query)).toBe(matches);
  });

  it.each([
    [{ limit: 0 }, 'of connections, limit is "0"; it is a whole number from 1 to 1000'],
    [{ limit: 1001 }, 'of connections, limit is "1001"; it is a whole number from 1 to 1000'],
    [{ limit: 1.5 }, 'of connections, limit is "1.5"; it is a whole number from 1 to 1000'],
    [
      { state: "gone" as never },
      'of connections, state is "gone"; it is one of valid, expired, needs_login, lost_refresh',
    ],
  ])("%j is refused", (query, message) => {
    expect(() => checkPageLimit(query)).toThrow(expect.objectContaining({ code: "usage", class: "usage", message }));
  });

  it("has a limit of 100, or from 1 to 1,000", () => {
    expect([{}, { limit: 1 }, { limit: 1000 }].map(checkPageLimit)).toEqual([100, 1, 1000]);
  });

  const pagesOf = async (query: object, names: readonly string[], read = async (name: string) => named(name)) => {
    const pages = [];
    for await (const { items, cursor } of connectionPages(query, names, read))
      pages.push([items.map(({ profile }) => profile), cursor]);
    return pages;
  };
  const named = (name: string): Grant | undefined => (name === "gone" ? undefined : madeGrant({ profile: name }));

  it("gets pages of as many records as its limit, each with where the next one begins", async () => {
    expect(await pagesOf({ limit: 2 }, ["a", "b", "c"])).toEqual([
      [["a", "b"], "b"],
      [["c"], undefined],
    ]);
    expect(await pagesOf({ limit: 2 }, ["a", "gone"])).toEqual([[["a"], undefined]]);
    expect(await pagesOf({ limit: 1, profile: "b" }, ["a", "b"])).toEqual([
      [[], "a"],
      [["b"], undefined],
    ]);
    expect(await pagesOf({}, [])).toEqual([[[], undefined]]);
  });

  it("for a tenant is refused by a store without tenants", async () => {
    await expect(pagesOf({ tenant: "acme" }, [])).rejects.toMatchObject({
      code: "usage",
      message: 'of connections, tenant is "acme", and this store has no tenants',
    });
  });

  it.each<[ErrorClass, boolean]>([
    ["store", true],
    ["auth", true],
    ["unavailable", false],
    ["aborted", false],
  ])("leaves out a record that fails with the class %s: %s", async (kind, isLeftOut) => {
    const error = new AgentAuthError("x", "m", { class: kind });
    const unusable: unknown[] = [];
    const work = pagesOf({ onUnusable: (one: unknown) => unusable.push(one) }, ["a"], () => Promise.reject(error));
    if (isLeftOut) expect(await work).toEqual([[[], undefined]]);
    else await expect(work).rejects.toBe(error);
    expect(unusable).toEqual(isLeftOut ? [error] : []);
  });

  it("hides no bug, and needs no observer of a record that cannot be read", async () => {
    const bug = new Error("a bug");
    await expect(readUsable(() => Promise.reject(bug))).rejects.toBe(bug);
    const error = new AgentAuthError("x", "m", { class: "store" });
    expect(await readUsable(() => Promise.reject(error))).toBeUndefined();
  });
});
