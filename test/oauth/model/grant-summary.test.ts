import { describe, expect, it } from "vitest";
import type { Grant } from "../../../src/oauth/model/grant.js";
import { connectionOf, markOf, summaryOf } from "../../../src/oauth/model/grant-summary.js";
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
    const summary = summaryOf(madeGrant(over));
    expect(connectionOf(summary, NOW)).toMatchObject({ state, refreshable });
    expect(markOf(summary)).toBe(mark);
  });
});
