import { describe, expect, it } from "vitest";
import {
  canBeKept,
  type Due,
  dueOf,
  gapMsFor,
  hashOf,
  insert,
  isDone,
  millisecondsOf,
} from "../../src/oauth/keep-alive-plan.js";
import type { Connection } from "../../src/oauth/model/connection.js";
import { madeGrant } from "../helpers/grant.js";

const HOUR = 3_600_000;
const CONNECTION = {
  profile: "ann",
  server: "https://mcp.example",
  account: null,
  issuer: "https://as.example",
  issued_at: "2030-01-01T00:00:00.000Z",
  refreshable: true,
} as Connection;
const ISSUED = Date.UTC(2030, 0, 1);

describe("the time in which each login is refreshed", () => {
  it.each([
    ["10s", 10_000],
    ["90m", 90 * 60_000],
    ["1.5h", 1.5 * HOUR],
    ["90d", 90 * 24 * HOUR],
  ])("%s is %d ms", (text, ms) => {
    expect(millisecondsOf(text)).toBe(ms);
  });

  it.each(["9.9s", "91d", "1", "h", "1.h", ".5h", "-1h", " 1h", "1h ", "1hx", "1w", ""])("is not %j", (text) => {
    expect(() => millisecondsOf(text)).toThrow(
      new TypeError("every must be a time such as 24h, 90m or 7d, from 10s to 90d"),
    );
  });
});

it.each([
  [1, HOUR, 0.5, 6000],
  [1000, HOUR, 0.5, (HOUR * 0.75) / 1000 / 1.75],
  [1000, HOUR, 0.1, (HOUR * 0.95) / 1000 / 1.75],
])("of %i logins in %d ms with the jitter %d, two are %d ms apart", (logins, everyMs, jitter, gap) => {
  expect(gapMsFor(logins, { everyMs, jitter })).toBeCloseTo(gap);
});

describe("the turn of a login", () => {
  it("comes in the last part of the time, the same in every worker, and another one each time", () => {
    const rhythm = { everyMs: HOUR, jitter: 0.5 };
    const due = dueOf("acme", CONNECTION, rhythm);
    expect(due).toEqual({
      tenant: "acme",
      key: { profile: "ann", server: "https://mcp.example", account: undefined },
      issuer: "https://as.example",
      issuedAt: ISSUED,
      due: due.at,
      at: due.at,
    });
    const share = hashOf('["acme","ann","https://mcp.example",null,"2030-01-01T00:00:00.000Z"]') / 2 ** 32;
    expect(due.due).toBeCloseTo(ISSUED + HOUR * (1 - 0.5 * share));
    expect(dueOf("acme", { ...CONNECTION, account: "a" }, rhythm).key.account).toBe("a");
    const dues = Array.from(
      { length: 200 },
      (_, nth) => dueOf("acme", { ...CONNECTION, profile: `${nth}` }, rhythm).due,
    );
    expect(Math.min(...dues)).toBeGreaterThanOrEqual(ISSUED + HOUR / 2);
    expect(Math.min(...dues)).toBeLessThan(ISSUED + HOUR * 0.52);
    expect(Math.max(...dues)).toBeLessThanOrEqual(ISSUED + HOUR);
    expect(Math.max(...dues)).toBeGreaterThan(ISSUED + HOUR * 0.98);
  });

  it("comes by a hash that no version may change", () => {
    expect(["", "a", "agentauth"].map(hashOf)).toMatchInlineSnapshot(`
      [
        2872998923,
        444641715,
        2143491901,
      ]
    `);
  });

  it.each([
    [{}, true],
    [{ refreshable: false }, false],
    [{ account: "ann" }, true],
    [{ account: "grant:client_credentials:c" }, false],
    [{ account: "grant:idp" }, true],
  ])("comes for %j: %s", (over, expected) => {
    expect(canBeKept({ ...CONNECTION, ...over })).toBe(expected);
  });

  it("is over once the login was refreshed, has ended, or has no refresh token", () => {
    const due = { issuedAt: ISSUED, due: ISSUED + HOUR } as Due;
    const { tokens } = madeGrant();
    const isDoneWith = (obtainedAt: number, over = {}) =>
      isDone(madeGrant({ tokens: { ...tokens, obtainedAt }, ...over }), due, ISSUED + HOUR);
    expect(isDoneWith(ISSUED)).toBe(false);
    expect(isDoneWith(ISSUED + HOUR / 2)).toBe(false);
    expect(isDoneWith(ISSUED + HOUR / 2 + 1)).toBe(true);
    expect(isDoneWith(ISSUED, { retired: { at: 1, reason: "x" } })).toBe(true);
    expect(isDoneWith(ISSUED, { tokens: { ...tokens, refreshToken: undefined, obtainedAt: ISSUED } })).toBe(true);
  });

  it("is put into the plan in order, behind those of the same time", () => {
    const plan = [1, 3, 3, 5].map((at, nth) => ({ at, issuer: `${nth}` }) as Due);
    insert(plan, { at: 3, issuer: "new" } as Due);
    insert(plan, { at: 9, issuer: "last" } as Due);
    insert(plan, { at: 0, issuer: "first" } as Due);
    expect(plan.map(({ issuer }) => issuer)).toEqual(["first", "0", "1", "2", "new", "3", "last"]);
  });
});
