import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import {
  attemptOf,
  decodeState,
  encodeState,
  failureIn,
  generationOf,
  inLocalTime,
  type LeaseState,
} from "../../../src/store/driver/lease-state.js";

const failure = { code: "timeout", class: "unavailable", message: "m" } as unknown as LeaseState["failure"];
const instead = { at: 1, endedAt: 2, ended: "expired", committed: false, failure: undefined } as const;

describe("the previous attempt, as the next holder sees it,", () => {
  it.each<[string, number | undefined, LeaseState | undefined, object]>([
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

describe("a note", () => {
  const remedy = { action: "wait" };
  const whole = {
    sent: true,
    generation: 3,
    rotatedGeneration: 2,
    holder: "one",
    failure: { code: "timeout", class: "unavailable", message: "m", retryable: true, remedy },
    instead: { at: 1, endedAt: 2, ended: "released", committed: true, failure },
  };
  const decoded = (note: object) => decodeState(JSON.stringify({ sent: false, ...note }));

  it("is read as it was written", () => {
    expect(decodeState(encodeState(whole as LeaseState))).toEqual(whole);
    expect(decoded({})).toEqual({ sent: false });
  });

  it.each(["", "{", "[]", "null", "{}", '{"sent":1}', '{"sent":true,"sent":false}'])("is none: %j", (text) => {
    expect(decodeState(text)).toBeUndefined();
  });

  it.each<[string, object]>([
    ["a generation that is no number", { generation: "3" }],
    ["a rotated generation that is no number", { rotatedGeneration: null }],
    ["a holder that is no text", { holder: 5 }],
    ["a failure that is a text", { failure: "timeout" }],
    ...["code", "class", "message"].map((name): [string, object] => [
      `a failure whose ${name} is no text`,
      { failure: { ...failure, [name]: 5 } },
    ]),
    ["a failure whose remedy is a text", { failure: { ...failure, remedy: "wait" } }],
    ["a failure whose remedy has no action", { failure: { ...failure, remedy: {} } }],
    ["an attempt that is a list", { instead: [] }],
    ["an attempt without a time", { instead: { ...instead, at: undefined } }],
    ["an attempt that ended at no time", { instead: { ...instead, endedAt: "2" } }],
    ["an attempt that ended in another way", { instead: { ...instead, ended: "lost" } }],
    ["an attempt that may have sent", { instead: { ...instead, committed: "yes" } }],
  ])("is read without %s", (_what, note) => {
    expect(decoded(note)).toEqual({ sent: false });
  });

  it("is read with an attempt that has not ended, and without a failure of it that is none", () => {
    const open = { at: 1, ended: "released", committed: false };
    expect(decoded({ instead: { ...open, failure: "x" } })?.instead).toEqual({ ...open, failure: undefined });
  });

  it("leaves of a failure that is too long what decides about it", () => {
    const long = { ...whole.failure, message: "m".repeat(9000), hint: "h", url: "u" };
    const { failure: short, instead: left } = decodeState(encodeState({ ...whole, failure: long } as LeaseState)) ?? {};
    const { remedy: _, ...rest } = whole.failure;
    expect([short, left]).toEqual([{ ...rest, message: "m".repeat(1000) }, undefined]);
    const text = encodeState({ sent: true, holder: "h".repeat(9000) });
    expect(JSON.parse(text)).toEqual({ sent: true, holder: "h".repeat(9000) });
    const most = encodeState({ sent: true, instead, holder: "" } as LeaseState).length;
    const held = (more: number) => ({ sent: true, instead, holder: "h".repeat(8000 - most + more) }) as LeaseState;
    expect([0, 1].map((more) => encodeState(held(more)).includes('"instead"'))).toEqual([true, false]);
  });

  it("has the failure of an error, and times of this machine", () => {
    const error = new AgentAuthError("timeout", "late", { class: "unavailable" });
    const first = { ...error.toJSON(), repeats: 0 };
    expect([failureIn(undefined, undefined), failureIn(error, undefined)]).toEqual([{}, { failure: first }]);
    expect(failureIn(error, { ...instead, failure: first })).toEqual({ failure: { ...first, repeats: 1 } });
    expect(inLocalTime(instead, 1)).toEqual({ ...instead, at: 0, endedAt: 1 });
    expect(inLocalTime({ ...instead, endedAt: undefined }, 1)).toEqual({ ...instead, at: 0, endedAt: undefined });
    expect(generationOf({ refreshes: undefined })).toBeUndefined();
  });
});
