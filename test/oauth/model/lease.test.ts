import { describe, expect, it } from "vitest";
import { AgentAuthError, type ErrorClass } from "../../../src/errors.js";
import {
  holderText,
  isPeerFailure,
  type Lease,
  leaseLost,
  maySend,
  type PreviousAttempt,
  recordFailure,
  restoreFailure,
  rethrowRecentFailure,
} from "../../../src/oauth/model/lease.js";

const ENDED = 1_000_000;
const UNAVAILABLE = new AgentAuthError("http_error", "no answer", { class: "unavailable", retryAfter: 20 });

/** A lease whose attempt before ended with an error. */
function leaseAfter(error: AgentAuthError | undefined, over: Partial<PreviousAttempt> = {}, waited = false) {
  let rollbacks = 0;
  const before: PreviousAttempt = {
    at: ENDED - 1000,
    endedAt: ENDED,
    ended: "released",
    committed: true,
    failure: error?.toJSON(),
    ...over,
  };
  const lease: Lease = { left: () => 1, commit: async () => {}, rollback: () => rollbacks++, previous: before, waited };
  return { lease, rollbacks: () => rollbacks };
}

describe("the failure of the attempt before", () => {
  const ofClass = (kind: ErrorClass, code = "x") => new AgentAuthError(code, "m", { class: kind });
  const waiting = (seconds: number) => new AgentAuthError("x", "m", { class: "unavailable", retryAfter: seconds });

  type Why = Parameters<typeof rethrowRecentFailure>[2];
  it.each<[string, AgentAuthError | undefined, number, Why, boolean, boolean]>([
    ["within the Retry-After, though forced", UNAVAILABLE, 19_999, "forced", false, true],
    ["after the Retry-After", UNAVAILABLE, 20_000, "needed", false, false],
    ["at its end, if forced", ofClass("unavailable"), 0, "forced", false, false],
    ["within a second, without a token", ofClass("unavailable"), 999, "needed", false, true],
    ["after a second, without a token", ofClass("unavailable"), 1000, "needed", false, false],
    ["within the pause, with a token", ofClass("unavailable"), 9999, "valid", false, true],
    ["after the pause, with a token", ofClass("unavailable"), 10_000, "valid", false, false],
    ["within a Retry-After that is longer than the pause", UNAVAILABLE, 15_000, "valid", false, true],
    ["within five minutes of a longer Retry-After", waiting(3600), 299_999, "needed", false, true],
    ["after five minutes of a longer Retry-After", waiting(3600), 300_000, "needed", false, false],
    ["by a clock that went back", UNAVAILABLE, -1, "needed", false, false],
    ["of an attempt that it waited for", UNAVAILABLE, 1e9, "forced", true, true],
    ["that lost its lease", ofClass("unavailable", "lease_lost"), 1, "valid", true, false],
    ["of another class", ofClass("auth"), 1, "valid", true, false],
    ["that was none", undefined, 1, "valid", true, false],
  ])("is thrown or not: %s", (_what, error, afterMs, why, waited, isThrown) => {
    const { lease, rollbacks } = leaseAfter(error, {}, waited);
    const work = () => rethrowRecentFailure(lease, ENDED + afterMs, why);
    if (isThrown) expect(work).toThrow(expect.objectContaining({ code: error?.code, message: error?.message }));
    else expect(work).not.toThrow();
    expect(rollbacks()).toBe(isThrown ? 1 : 0);
  });

  it("is shared for twice the time after each failure, for five seconds at most", () => {
    const error = ofClass("unavailable");
    let before: PreviousAttempt | undefined;
    for (const sharedMs of [1000, 2000, 4000, 5000, 5000]) {
      const { lease } = leaseAfter(error, { failure: recordFailure(error, before) });
      before = lease.previous;
      expect(() => rethrowRecentFailure(lease, ENDED + sharedMs - 1, "needed")).toThrow(error.message);
      expect(() => rethrowRecentFailure(lease, ENDED + sharedMs, "needed")).not.toThrow();
    }
  });

  it("counts for nothing where its end is not known, or where there was no attempt", () => {
    const { lease } = leaseAfter(UNAVAILABLE, { endedAt: undefined });
    expect(() => rethrowRecentFailure(lease, ENDED, "valid")).not.toThrow();
    expect(() => rethrowRecentFailure({ ...lease, previous: undefined, waited: true }, ENDED, "valid")).not.toThrow();
  });

  it("is the same error again", () => {
    const error = new AgentAuthError("http_error", "no answer", {
      class: "unavailable",
      retryAfter: 20,
      requestId: "r1",
      status: 503,
      hint: "wait",
    });
    expect(restoreFailure(error.toJSON()).toJSON()).toEqual(error.toJSON());
  });
});

it.each<[ErrorClass, boolean]>([
  ["unavailable", true],
  ["remote", true],
  ["refused", true],
  ["auth", true],
  ["store", true],
  ["aborted", false],
  ["usage", false],
  ["internal", false],
  ["partial", false],
])("an error of the class %s says nothing about a token that is valid: %s", (kind, isPeer) => {
  expect(isPeerFailure(new AgentAuthError("x", "m", { class: kind }))).toBe(isPeer);
});

it.each([
  [{ pid: undefined, at: 1 }, "another process"],
  [{ pid: 42, at: 1 }, "process 42"],
  [{ pid: 42, label: "worker 1", at: 1 }, '"worker 1"'],
  [{ pid: 42, label: "x".repeat(101), at: 1 }, `"${"x".repeat(100)}…"`],
])("the holder %j is called %s", (holder, text) => {
  expect(holderText(holder)).toBe(text);
});

it.each([
  [1, undefined, true],
  [1, true, true],
  [1, false, false],
  [0, undefined, false],
  [0, true, false],
])("with %i ms left and maySend %s a request may leave: %s", (left, may, expected) => {
  const lease = { left: () => left, ...(may !== undefined && { maySend: () => may }) };
  expect(maySend(lease)).toBe(expected);
});

it("a lease that expired says so", () => {
  expect(leaseLost()).toMatchObject({
    code: "lease_lost",
    class: "unavailable",
    message: "this process was suspended for so long that another one may have taken over",
  });
  expect(leaseLost("x").message).toBe("x");
});
