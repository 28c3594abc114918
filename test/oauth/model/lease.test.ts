import { describe, expect, it } from "vitest";
import { AgentAuthError, type ErrorClass } from "../../../src/errors.js";
import {
  failureOf,
  holderText,
  isPeerFailure,
  type Lease,
  leaseLost,
  maySend,
  type PreviousAttempt,
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
  const lease: Lease = { left: () => 1, commit: async () => {}, rollback: () => rollbacks++, before, waited };
  return { lease, rollbacks: () => rollbacks };
}

describe("the failure of the attempt before", () => {
  const ofClass = (kind: ErrorClass, code = "x") => new AgentAuthError(code, "m", { class: kind });
  const waiting = (seconds: number) => new AgentAuthError("x", "m", { class: "unavailable", retryAfter: seconds });

  it.each<[string, AgentAuthError | undefined, number, boolean, boolean, boolean]>([
    ["within the Retry-After", UNAVAILABLE, 19_999, true, false, true],
    ["after the Retry-After", UNAVAILABLE, 20_000, true, false, false],
    ["at its end, without a Retry-After, for who is blocked", ofClass("unavailable"), 0, true, false, false],
    ["within the pause, for who is not blocked", ofClass("unavailable"), 9999, false, false, true],
    ["after the pause, for who is not blocked", ofClass("unavailable"), 10_000, false, false, false],
    ["within a Retry-After that is longer than the pause", UNAVAILABLE, 15_000, false, false, true],
    ["within five minutes of a longer Retry-After", waiting(3600), 299_999, true, false, true],
    ["after five minutes of a longer Retry-After", waiting(3600), 300_000, true, false, false],
    ["by a clock that went back", UNAVAILABLE, -1, true, false, false],
    ["of whoever waited for it", UNAVAILABLE, 1e9, true, true, true],
    ["that lost its lease", ofClass("unavailable", "lease_lost"), 1, false, true, false],
    ["of another class", ofClass("auth"), 1, false, true, false],
    ["that was none", undefined, 1, false, true, false],
  ])("is thrown or not: %s", (_what, error, afterMs, isBlocked, waited, isThrown) => {
    const { lease, rollbacks } = leaseAfter(error, {}, waited);
    const work = () => rethrowRecentFailure(lease, ENDED + afterMs, isBlocked);
    if (isThrown) expect(work).toThrow(expect.objectContaining({ code: error?.code, message: error?.message }));
    else expect(work).not.toThrow();
    expect(rollbacks()).toBe(isThrown ? 1 : 0);
  });

  it("counts for nothing where its end is not known, or where there was no attempt", () => {
    const { lease } = leaseAfter(UNAVAILABLE, { endedAt: undefined });
    expect(() => rethrowRecentFailure(lease, ENDED, false)).not.toThrow();
    expect(() => rethrowRecentFailure({ ...lease, before: undefined, waited: true }, ENDED, false)).not.toThrow();
  });

  it("is the same error again", () => {
    const error = new AgentAuthError("http_error", "no answer", {
      class: "unavailable",
      retryAfter: 20,
      requestId: "r1",
      status: 503,
      hint: "wait",
    });
    expect(failureOf(error.toJSON()).toJSON()).toEqual(error.toJSON());
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
