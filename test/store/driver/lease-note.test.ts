import { describe, expect, it } from "vitest";
import { attemptOf, type LeaseNote } from "../../../src/store/driver/lease-note.js";

const failure = { code: "timeout", class: "unavailable", message: "m" } as unknown as LeaseNote["failure"];
const instead = { at: 1, endedAt: 2, ended: "expired", committed: false, failure: undefined } as const;

describe("the attempt before, as the next holder sees it,", () => {
  it.each<[string, number | undefined, LeaseNote | undefined, object]>([
    [
      "has the failure that it ended with",
      6,
      { sent: false, failure },
      { at: 5, endedAt: 6, ended: "released", committed: false, failure },
    ],
    [
      "may have sent something where its note cannot be read",
      6,
      undefined,
      { at: 5, endedAt: 6, ended: "released", committed: true, failure: undefined },
    ],
    ["is the one before it where it was rolled back", 6, { sent: false, instead }, instead],
    [
      "has expired where it was not released, whatever its note says",
      undefined,
      { sent: false, failure, instead },
      { at: 5, endedAt: undefined, ended: "expired", committed: false, failure: undefined },
    ],
    [
      "has expired, and may have sent something, where there is no note either",
      undefined,
      undefined,
      { at: 5, endedAt: undefined, ended: "expired", committed: true, failure: undefined },
    ],
  ])("%s", (_what, releasedAt, note, expected) => {
    expect(attemptOf({ attempt: 1, owner: "one", at: 5, now: 9, releasedAt, note: "" }, note)).toEqual(expected);
  });
});
