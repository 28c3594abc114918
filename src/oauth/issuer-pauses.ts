import { AgentAuthError } from "../errors.js";
import type { Clock } from "../http/deadline.js";
import { isJsonObject, parseStrictJson } from "../http/strict-json.js";
import { quote } from "../redact.js";
import type { ShortLivedRecords } from "./model/grant-store.js";

/** That an issuer asked not to be asked. */
export interface IssuerPause {
  /** Unix milliseconds until when. */
  pausedUntil: number;
  /** Why a login that waits for it was not refreshed. */
  why?: AgentAuthError | undefined;
}

/** The longest pause that others keep: it outlives the process that was answered. */
const MOST_MS = 3_600_000;

/** The `Retry-After` of issuers, for all workers of a store that has short-lived records. */
export class IssuerPauses {
  readonly #records: ShortLivedRecords | undefined;
  readonly #clock: Clock;

  constructor(records: ShortLivedRecords | undefined, clock: Clock) {
    this.#records = records;
    this.#clock = clock;
  }

  /**
   * What another worker was answered; undefined if nothing is known, also where the store does not answer: that is the error
   * of the refresh that comes next.
   */
  async of(issuer: string): Promise<IssuerPause | undefined> {
    const text = await this.#records?.read?.(idOf(issuer)).catch(() => undefined);
    const { issuer: by, pausedUntil } = text === undefined ? {} : membersOf(text);
    if (by !== issuer || typeof pausedUntil !== "number") return undefined;
    const seconds = Math.ceil((pausedUntil - this.#clock.epoch()) / 1000);
    if (seconds <= 0) return undefined;
    const message = `${quote(issuer)} asked another worker to wait; ${seconds} s are left`;
    const about = { class: "unavailable", retryAfter: seconds } as const;
    return { pausedUntil, why: new AgentAuthError("temporarily_unavailable", message, about) };
  }

  /** Notes what an issuer answered, in place of what it answered before. */
  async set(issuer: string, until: number): Promise<void> {
    const records = this.#records;
    if (records?.read === undefined) return;
    const now = this.#clock.epoch();
    const pausedUntil = Math.min(until, now + MOST_MS);
    const text = JSON.stringify({ issuer, pausedUntil });
    const id = idOf(issuer);
    const put = () => records.put(id, text, { now, expiresAt: pausedUntil });
    try {
      if (await put()) return;
      await records.take(id);
      await put();
    } catch {
      // The other workers ask the issuer, as they would have.
    }
  }
}

/** The text names the issuer too: of two with the same hash, one is not known to be paused. */
function idOf(issuer: string): string {
  return `pause-${hashOf(issuer).toString(16)}`;
}

function membersOf(text: string): Record<string, unknown> {
  try {
    const value = parseStrictJson(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** A number below 2^32 that is the same in every process (FNV-1a, with the finalizer of MurmurHash3). */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
