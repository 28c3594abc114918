import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import { LOGIN_HINT } from "../../../src/oauth/grant/grant-requirements.js";
import {
  chooseRecovery,
  isStorm,
  noteRefusal,
  recoverToken,
  wasRequested,
} from "../../../src/oauth/grant/token-fetch.js";
import type { BearerChallenge } from "../../../src/oauth/model/challenge.js";
import { madeGrant } from "../../helpers/grant.js";

const NOW = 1_000_000;
const NONE = { refresh: false, login: false, stepUp: false };
const withoutRefresh = { tokens: { ...madeGrant().tokens, refreshToken: undefined } };
const lacking = (scope: string | undefined, error = "insufficient_scope"): BearerChallenge => ({
  resourceMetadata: [],
  scope,
  error,
  schemes: ["bearer"],
});

/** What is tried next: by a client that may ask the user or not, after a login for the same reason or not. */
function choose(
  status: number,
  { challenge = undefined as BearerChallenge | undefined, over = {}, tried = {}, may = true, futile = false } = {},
) {
  const rejected = { status, challenge, grant: madeGrant(over), tried: { ...NONE, ...tried } };
  return chooseRecovery(rejected, { mayLogin: () => may, followsRefusal: () => futile });
}

describe("a rejected token", () => {
  it.each<[string, Parameters<typeof choose>, string | undefined]>([
    ["with a refresh token", [401], "refresh"],
    ["without one", [401, { over: withoutRefresh }], "login"],
    ["that was refreshed", [401, { tried: { refresh: true } }], "login"],
    ["after a login", [401, { tried: { login: true } }], undefined],
    ["after both", [401, { tried: { refresh: true, login: true } }], undefined],
    ["without one, where no user can log in", [401, { over: withoutRefresh, may: false }], undefined],
    ["with one, where no user can log in", [401, { may: false }], "refresh"],
    ["right after a login for that", [401, { over: withoutRefresh, futile: true }], undefined],
    ["with one, right after a login for that", [401, { futile: true }], "refresh"],
    ["that lacks scopes", [403, { challenge: lacking("write") }], "stepUp"],
    ["that lacks scopes after a login for others", [403, { challenge: lacking("write"), futile: true }], "stepUp"],
    ["that lacks scopes after a step-up", [403, { challenge: lacking("write"), tried: { stepUp: true } }], undefined],
    ["that is forbidden for another reason", [403, { challenge: lacking("write", "invalid_token") }], undefined],
    ["that is forbidden without a reason", [403], undefined],
    ["that another status is about", [400, { challenge: lacking("write") }], undefined],
    ["that was accepted", [200], undefined],
  ])("%s is replaced by this way", (_what, parameters, expected) => {
    expect(choose(...parameters)).toBe(expected);
  });

  const error = (text: string, scope: string) =>
    expect.objectContaining({
      code: "insufficient_scope",
      class: "auth",
      status: 403,
      message: `the token for "https://mcp.example/mcp" ${text}`,
      hint: LOGIN_HINT,
      remedy: { action: "login", server: "https://mcp.example/mcp", scope },
    });

  it("that lacks scopes is an error where no login may request them, or did so in vain", () => {
    expect(() => choose(403, { challenge: lacking("write"), may: false })).toThrow(
      error('lacks scopes: "write"', "tools write"),
    );
    expect(() => choose(403, { challenge: lacking(undefined), may: false })).toThrow(
      error('lacks scopes: "(unspecified)"', "tools"),
    );
    expect(() => choose(403, { challenge: lacking("tools"), futile: true })).toThrow(
      error('still lacks scopes after a login that requested them: "tools"', "tools"),
    );
  });
});

it.each([
  ["a b", "a", true],
  ["a b", "b a", true],
  ["a b", "a c", false],
  ["a b", undefined, true],
  [undefined, "a", false],
])("a login for %j requested %j: %s", (requestedScope, missing, expected) => {
  expect(wasRequested(madeGrant({ requestedScope }), missing)).toBe(expected);
});

describe("the rejections of a minute", () => {
  it("are noted, without older ones and those of a clock that was wrong", () => {
    const refusals = [NOW - 60_000, NOW - 59_999, NOW, NOW + 1];
    expect(noteRefusal(madeGrant({ refusals }), NOW).refusals).toEqual([NOW - 59_999, NOW, NOW]);
  });

  it.each([
    [[NOW, NOW], false],
    [[NOW - 59_999, NOW - 1, NOW], true],
    [[NOW - 60_000, NOW - 1, NOW], false],
    [[NOW + 1, NOW - 1, NOW], false],
  ])("at %j are too many: %s", (refusals, expected) => {
    expect(isStorm(madeGrant({ refusals }), NOW)).toBe(expected);
  });
});

describe("the replacement of a rejected token", () => {
  const grant = madeGrant();
  const required = new AgentAuthError("login_required", "over", { class: "auth" });
  const other = new AgentAuthError("timeout", "late", { class: "unavailable" });

  /** What is called for a way, by a client whose refresh ends like this. */
  async function recover(
    recovery: "refresh" | "login" | "stepUp",
    { challenge = undefined as BearerChallenge | undefined, refreshed = grant as unknown, may = true } = {},
  ) {
    const calls: unknown[] = [];
    const tried = { ...NONE };
    const { signal } = new AbortController();
    const context = {
      refresh: async (...parameters: unknown[]) => {
        calls.push(["refresh", ...parameters]);
        if (refreshed instanceof Error) throw refreshed;
        return refreshed;
      },
      replace: async (...parameters: unknown[]) => {
        calls.push(["replace", ...parameters]);
        return grant;
      },
      mayLogin: () => may,
    };
    const work = recoverToken(context as never, recovery, { status: 401, challenge, grant, tried, signal });
    const error = await work.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    return { calls, tried, error, signal };
  }

  it.each([undefined, lacking("write"), lacking(undefined)])(
    "by a login names the scopes in the challenge alone: %j",
    async (challenge) => {
      const { calls, tried, signal } = await recover("login", { challenge });
      const options = { previousScope: undefined, ...(challenge && { challenge }), signal };
      expect(calls).toEqual([["replace", grant, options]]);
      expect(Object.keys((calls as object[][])[0]?.[2] ?? {}).sort()).toEqual(Object.keys(options).sort());
      expect(tried).toEqual({ ...NONE, login: true });
    },
  );

  it.each([lacking("write"), lacking(undefined)])(
    "by a step-up requests those of before too: %j",
    async (challenge) => {
      const { calls, tried, signal } = await recover("stepUp", { challenge });
      const { scope } = challenge;
      const options = { ...(scope !== undefined && { scope }), previousScope: "tools", challenge, signal };
      expect(calls).toEqual([["replace", grant, options]]);
      expect(tried).toEqual({ ...NONE, stepUp: true });
    },
  );

  it("by a refresh needs no login", async () => {
    const { calls, tried, signal } = await recover("refresh");
    expect(calls).toEqual([["refresh", grant, signal]]);
    expect(tried).toEqual({ ...NONE, refresh: true });
  });

  it("is a login where the issuer refuses the refresh, if a user may log in", async () => {
    const { calls, tried } = await recover("refresh", { refreshed: required, challenge: lacking("write") });
    expect((calls as string[][]).map(([name]) => name)).toEqual(["refresh", "replace"]);
    expect(tried).toEqual({ ...NONE, refresh: true, login: true });
    expect((await recover("refresh", { refreshed: required, may: false })).error).toBe(required);
    expect((await recover("refresh", { refreshed: other })).error).toBe(other);
    expect((await recover("refresh", { refreshed: new RangeError("oops") })).error).toBeInstanceOf(RangeError);
  });
});
