import { isJsonObject, parseStrictJson } from "../../http/strict-json.js";
import { tokenGeneration } from "../../oauth/model/grant.js";
import {
  isRecordedFailure,
  type LeaseOptions,
  type PreviousAttempt,
  type RecordedFailure,
  recordFailure,
} from "../../oauth/model/lease.js";
import type { LeaseTrace } from "./driver.js";

/** What a holder leaves under its lease for the next one. Times are the engine's. */
export interface LeaseState {
  /**
   * Whether work that must not happen twice may have begun. The note of a claim says so: its response may be lost, and with
   * it what the previous claim left.
   */
  readonly sent: boolean;
  /** The generation of tokens that the work replaces. */
  readonly generation?: number | undefined;
  /** The newest generation whose refresh token is used up. */
  readonly rotatedGeneration?: number | undefined;
  /** What the holder calls itself, for those who wait. */
  readonly holder?: string | undefined;
  /** The error that the work ended with. */
  readonly failure?: RecordedFailure | undefined;
  /** The attempt that the next holder is to see in place of this one, which was rolled back. */
  readonly instead?: PreviousAttempt | undefined;
}

/** A driver takes 16 KiB, and sealing adds a half. */
const MAX_NOTE = 8000;
const MAX_MESSAGE = 1000;

/** The generation of tokens that work under a lease replaces. */
export function generationOf({ refreshes }: Pick<LeaseOptions<unknown>, "refreshes">): number | undefined {
  return refreshes && tokenGeneration(refreshes);
}

/** The text of a note. A failure that is too long is left with what decides about it. */
export function encodeState(state: LeaseState): string {
  const text = JSON.stringify(state);
  if (text.length <= MAX_NOTE) return text;
  return JSON.stringify({ ...state, failure: shortenFailure(state.failure), instead: undefined });
}

function shortenFailure(failure: RecordedFailure | undefined): RecordedFailure | undefined {
  if (failure === undefined) return undefined;
  const { hint: _hint, remedy: _remedy, url: _url, ...rest } = failure;
  return { ...rest, message: failure.message.slice(0, MAX_MESSAGE) };
}

/** Parses a note; undefined for what this version did not write. */
export function decodeState(text: string): LeaseState | undefined {
  const state = parseMembers(text);
  if (typeof state?.["sent"] !== "boolean") return undefined;
  const { sent, holder, failure, instead, generation, rotatedGeneration } = state;
  return {
    sent,
    generation: numberIn(generation),
    rotatedGeneration: numberIn(rotatedGeneration),
    holder: typeof holder === "string" ? holder : undefined,
    failure: isRecordedFailure(failure) ? failure : undefined,
    instead: attemptIn(instead),
  };
}

function parseMembers(text: string): Record<string, unknown> | undefined {
  try {
    const value = parseStrictJson(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function numberIn(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function attemptIn(value: unknown): PreviousAttempt | undefined {
  if (!isJsonObject(value)) return undefined;
  const { at, endedAt, ended, committed, failure } = value;
  if (!Number.isFinite(at) || !(endedAt === undefined || Number.isFinite(endedAt))) return undefined;
  if ((ended !== "released" && ended !== "expired") || typeof committed !== "boolean") return undefined;
  const times = { at: at as number, endedAt: endedAt as number | undefined };
  return { ...times, ended, committed, failure: isRecordedFailure(failure) ? failure : undefined };
}

/** The attempt that a trace shows, in times of the engine. What cannot be read may have been sent. */
export function attemptOf(trace: LeaseTrace, state: LeaseState | undefined): PreviousAttempt {
  const { at, releasedAt: endedAt } = trace;
  if (endedAt === undefined)
    return { at, endedAt, ended: "expired", committed: state?.sent ?? true, failure: undefined };
  if (state?.instead) return state.instead;
  return { at, endedAt, ended: "released", committed: state?.sent ?? true, failure: state?.failure };
}

/** The failure of a note. @param previous the attempt before it */
export function failureIn(error: unknown, previous: PreviousAttempt | undefined): Pick<LeaseState, "failure"> {
  const failure = recordFailure(error, previous);
  return failure === undefined ? {} : { failure };
}

/** An attempt in times of this machine. `offset` is by how much the engine's clock is ahead of it. */
export function inLocalTime(attempt: PreviousAttempt, offset: number): PreviousAttempt {
  const { at, endedAt } = attempt;
  return { ...attempt, at: at - offset, endedAt: endedAt === undefined ? undefined : endedAt - offset };
}
