import { AgentAuthError, isAgentAuthError } from "../errors.js";
import type { Clock } from "../http/deadline.js";
import { isJsonObject, parseStrictJson } from "../http/strict-json.js";
import { quote } from "../redact.js";
import { hashOf } from "./keep-alive-plan.js";
import type { ShortLivedRecords } from "./model/grant-store.js";

/** That an issuer asked not to be asked. */
interface IssuerPause {
  /** Unix milliseconds until when. */
  pausedUntil: number;
  /** Why a login that waits for it was not refreshed. */
  why?: AgentAuthError | undefined;
}

/** When a login can have its turn, if not now, and why if its issuer asked not to be asked. */
export interface LaterTurn extends Pick<IssuerPause, "why"> {
  /** Unix milliseconds. */
  at: number;
}

/** What a worker knows about an issuer. */
interface IssuerLoad extends IssuerPause {
  /** How many refreshes are in flight there. */
  active: number;
  /** When the last login that waits for it has its turn. */
  lastAt: number;
  /** When the answers to other workers were read. */
  readAt: number;
}

const BUSY_MS = 250;
/** What other workers were answered is read once for all logins of an issuer whose turn comes within this time. */
const BATCH_MS = 2000;

/** How much one worker asks of each issuer: so many refreshes at once, and none before its `Retry-After` has passed. */
export class IssuerLoads {
  readonly #loads = new Map<string, IssuerLoad>();
  readonly #pauses: IssuerPauses;
  readonly #clock: Clock;
  readonly #perIssuer: number;

  constructor(records: ShortLivedRecords | undefined, clock: Clock, perIssuer: number) {
    this.#pauses = new IssuerPauses(records, clock);
    this.#clock = clock;
    this.#perIssuer = perIssuer;
  }

  /** Undefined if a login at this issuer can be refreshed now. @param gapMs the distance between those that wait */
  async laterTurn(issuer: string, gapMs: number): Promise<LaterTurn | undefined> {
    const load = this.#of(issuer);
    const now = this.#clock.epoch();
    if (load.pausedUntil <= now) {
      if (load.active >= this.#perIssuer) return { at: now + Math.max(gapMs, BUSY_MS) };
      if (now - load.readAt >= BATCH_MS) {
        load.readAt = now;
        Object.assign(load, await this.#pauses.of(issuer));
      }
      if (load.pausedUntil <= now) return undefined;
    }
    // Those that wait for it do not come at once either.
    load.lastAt = Math.max(load.lastAt, load.pausedUntil) + gapMs;
    return { at: load.lastAt, why: load.why };
  }

  /** Does work at an issuer, and notes its answer for all workers if that asks not to be asked. */
  async during(issuer: string, work: () => Promise<void>): Promise<void> {
    const load = this.#of(issuer);
    load.active++;
    try {
      await work();
    } catch (error) {
      if (isAgentAuthError(error) && error.retryAfter !== undefined) {
        load.pausedUntil = Math.max(load.pausedUntil, this.#clock.epoch() + error.retryAfter * 1000);
        load.why = error;
        await this.#pauses.set(issuer, load.pausedUntil);
      }
      throw error;
    } finally {
      load.active--;
    }
  }

  #of(issuer: string): IssuerLoad {
    const load = this.#loads.get(issuer) ?? { active: 0, pausedUntil: 0, lastAt: 0, readAt: Number.NEGATIVE_INFINITY };
    this.#loads.set(issuer, load);
    return load;
  }
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
