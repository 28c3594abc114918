import { describe, expect, it } from "vitest";
import {
  AccessToken,
  coversScope,
  type Grant,
  hasExpired,
  hasSameTokens,
  isFresh,
  mergeResponse,
  retire,
  type TokenResponse,
  toGrantTokens,
} from "../../../src/oauth/model/grant.js";
import { Secret } from "../../../src/redact.js";
import { madeGrant, plainGrant } from "../../helpers/grant.js";
import { fc } from "../../helpers/properties.js";

const YEAR_MS = 365 * 24 * 3600 * 1000;
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const scope = fc.stringMatching(/^[a-z]{1,5}( [a-z]{1,5}){0,3}$/);
const token = fc.stringMatching(/^[!-~]{1,20}$/);
const time = fc.integer({ min: 0, max: 4e12 });

const answers: fc.Arbitrary<TokenResponse> = fc.record({
  accessToken: token,
  refreshToken: maybe(token),
  idToken: maybe(token),
  expiresIn: maybe(fc.double({ min: 1, max: 1e300, noNaN: true })),
  scope: maybe(scope),
  at: time,
});

const grants: fc.Arbitrary<Grant> = fc
  .record({
    generation: fc.nat(),
    requestedScope: maybe(scope),
    refresh: maybe(token),
    id: maybe(token),
    expiresAt: maybe(time),
    obtainedAt: time,
    granted: maybe(scope),
    retired: maybe(fc.record({ at: time, reason: fc.string() })),
  })
  .map(({ generation, requestedScope, refresh, id, expiresAt, obtainedAt, granted, retired }) =>
    madeGrant({
      generation,
      requestedScope,
      retired,
      tokens: {
        accessToken: new Secret("before"),
        refreshToken: refresh === undefined ? undefined : new Secret(refresh),
        idToken: id === undefined ? undefined : new Secret(id),
        expiresAt,
        obtainedAt,
        scope: granted,
      },
    }),
  );

describe("mergeAnswer", () => {
  it("takes what the answer brings, keeps what it leaves out, and changes nothing else", () => {
    fc.assert(
      fc.property(grants, answers, (grant, answer) => {
        const before = plainGrant(grant);
        const merged = plainGrant(mergeResponse(grant, answer));
        const { refreshToken } = before.tokens;
        const isReused = refreshToken !== undefined && (answer.refreshToken ?? refreshToken) === refreshToken;
        expect(plainGrant(grant)).toEqual(before);
        expect(merged).toEqual({
          ...before,
          generation: grant.generation + 1,
          retired: undefined,
          reusesRefreshToken: isReused || undefined,
          tokens: {
            accessToken: answer.accessToken,
            refreshToken: answer.refreshToken ?? before.tokens.refreshToken,
            idToken: answer.idToken ?? before.tokens.idToken,
            expiresAt:
              answer.expiresIn === undefined ? undefined : answer.at + Math.min(answer.expiresIn * 1000, YEAR_MS),
            obtainedAt: answer.at,
            scope: answer.scope ?? before.tokens.scope,
          },
        });
      }),
    );
  });
});

describe("tokensOf", () => {
  it("takes scopes that the response omits for those that were requested", () => {
    const answer = {
      accessToken: "a",
      refreshToken: undefined,
      idToken: undefined,
      expiresIn: undefined,
      scope: undefined,
      at: 1,
    };
    expect(toGrantTokens(answer, "a b").scope).toBe("a b");
    expect(toGrantTokens({ ...answer, scope: "a" }, "a b").scope).toBe("a");
    expect(toGrantTokens(answer, undefined).scope).toBeUndefined();
  });
});

describe("isFresh", () => {
  const grant = (over: Partial<Grant["tokens"]>, retired?: Grant["retired"]) =>
    madeGrant({ retired, tokens: { ...madeGrant().tokens, ...over } });

  it("asks for at most nine tenths of the token's life", () => {
    fc.assert(
      fc.property(time, fc.integer({ min: 1, max: 1e8 }), fc.nat(1e5), fc.nat(2e8), (obtainedAt, life, minTtl, age) => {
        const fresh = isFresh(grant({ obtainedAt, expiresAt: obtainedAt + life }), obtainedAt + age, minTtl);
        const left = life - age;
        expect(fresh).toBe(left > Math.min(minTtl * 1000, life * 0.9));
      }),
    );
  });

  it.each([
    [3600, 61, true],
    [3600, 60, false],
    [100, 51, true],
    [100, 50, false],
  ])("without a requested minimum, a token that lives for %d s is fresh with %d s left: %s", (life, left, fresh) => {
    expect(isFresh(grant({ obtainedAt: 0, expiresAt: life * 1000 }), (life - left) * 1000, undefined)).toBe(fresh);
  });

  it("is false for a token that came in what is now the future: the clock was wrong, or is", () => {
    const tokens = grant({ obtainedAt: 1e12, expiresAt: 1e12 + 3_600_000 });
    expect(isFresh(tokens, 1e12 - 60_000, 60)).toBe(true);
    expect(isFresh(tokens, 1e12 - 60_001, 60)).toBe(false);
    expect(isFresh(tokens, 0, 0)).toBe(false);
    expect(isFresh(grant({ obtainedAt: 1e12, expiresAt: undefined }), 0, 60)).toBe(true);
  });

  it.each([
    [59_999, 60, false],
    [60_000, 60, false],
    [60_001, 60, true],
    [1, 0, true],
    [0, 0, false],
    [-1, 0, false],
  ])("with %d ms left and %d s requested: %s", (left, minTtl, fresh) => {
    expect(isFresh(grant({ obtainedAt: 0, expiresAt: 1_000_000 }), 1_000_000 - left, minTtl)).toBe(fresh);
  });

  it("is true for a token whose end is not known, however old it is", () => {
    expect(isFresh(grant({ obtainedAt: 0, expiresAt: undefined }), Number.MAX_SAFE_INTEGER, 3600)).toBe(true);
  });

  it("is false for a grant that is over", () => {
    expect(isFresh(grant({ expiresAt: undefined }, { at: 1, reason: "x" }), 0, 0)).toBe(false);
    expect(isFresh(grant({ obtainedAt: 0, expiresAt: 1e12 }, { at: 1, reason: "x" }), 0, 0)).toBe(false);
  });
});

describe("coversScope", () => {
  const granted = (scopes: string | undefined) => madeGrant({ tokens: { ...madeGrant().tokens, scope: scopes } });

  it.each<[string | undefined, string[] | undefined, boolean]>([
    [undefined, undefined, true],
    [undefined, [], true],
    [undefined, ["a"], false],
    ["", ["a"], false],
    ["a b", ["b"], true],
    ["a b", ["b", "a"], true],
    ["a b", ["a", "c"], false],
    ["files:write", ["files"], false],
    ["files", ["files:write"], false],
    ["A", ["a"], false],
  ])("granted %j, wanted %j: %s", (scopes, wanted, covers) => {
    expect(coversScope(granted(scopes), wanted)).toBe(covers);
  });
});

describe("retire", () => {
  it("marks a grant as over and keeps everything in it", () => {
    fc.assert(
      fc.property(grants, fc.string(), time, (grant, reason, at) => {
        expect(plainGrant(retire(grant, reason, at))).toEqual({
          ...plainGrant(grant),
          generation: grant.generation + 1,
          retired: { at, reason },
        });
      }),
    );
  });
});

describe("the tokens of a grant", () => {
  const lostRefresh = { at: 1, code: "timeout", generation: 3 };

  it("are the same until they are replaced, whatever marks the grant has", () => {
    const grant = madeGrant({ generation: 3 });
    expect(hasSameTokens(grant, { ...grant, generation: 4, lostRefresh })).toBe(true);
    expect(hasSameTokens(grant, { ...grant, generation: 4 })).toBe(false);
    expect(hasSameTokens(grant, { ...grant, signedInAt: 1 })).toBe(false);
  });

  it("lose the mark of a lost refresh with the next answer, and with a refusal", () => {
    const answer = { accessToken: "a", refreshToken: undefined, idToken: undefined, expiresIn: 1, scope: "a", at: 1 };
    const marked = madeGrant({ lostRefresh, usedAt: 5 });
    expect(mergeResponse(marked, answer)).toMatchObject({ lostRefresh: undefined, usedAt: undefined });
    expect(retire(marked, "x", 1)).toMatchObject({ lostRefresh: undefined, usedAt: 5 });
  });

  it.each([
    [{ expiresAt: undefined, obtainedAt: 0 }, 1, false],
    [{ expiresAt: 1000, obtainedAt: 0 }, 999, false],
    [{ expiresAt: 1000, obtainedAt: 0 }, 1000, true],
    [{ expiresAt: 1e9, obtainedAt: 100_000 }, 40_000, false],
    [{ expiresAt: 1e9, obtainedAt: 100_000 }, 39_999, true],
  ])("%j have expired at %d: %s", (tokens, now, expired) => {
    expect(hasExpired(tokens, now)).toBe(expired);
  });

  it("are given with what they are for, and print as a mask", () => {
    const token = new AccessToken(madeGrant({ account: "alice" }));
    expect({ ...token }).toEqual({
      server: "https://mcp.example/mcp",
      account: "alice",
      tokenType: "Bearer",
      resource: "https://mcp.example/mcp",
      issuer: "https://as.example/pool",
      expiresAt: new Date(2_000_000_000_000),
      scope: "tools",
    });
    expect([token.value, `${token}`.includes("access-token-1")]).toEqual(["access-token-1", false]);
    const tokens = { ...madeGrant().tokens, expiresAt: undefined };
    const bound = new AccessToken(madeGrant({ proofKey: new Secret("key"), tokens }));
    expect([bound.tokenType, bound.expiresAt]).toEqual(["DPoP", undefined]);
  });
});
