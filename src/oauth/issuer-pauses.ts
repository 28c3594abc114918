import { AgentAuthError } from "../errors.js";
import type { Clock } from "../http/deadline.js";
import { isJsonObject, parseStrictJson } from "../http/strict-json.js";
import { quote } from "../redact.js";
import type { ShortLivedRecords } from "./model/grant-store.js";

/** That an issuer asked not to be asked. */
interface IssuerPause {
  /** Unix milliseconds until when. */
  pausedUntil: number;
  /** Why a login that waits for it was not refreshed. */
  why?: AgentAuthError | undefined;
}

/** Lets so many through at once, in the order in which they come. */
export class Gate {
  readonly #limit: () => number;
  readonly #waiting: (() => void)[] = [];
  #active = 0;

  /** How many wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  constructor(limit: () => number) {
    this.#limit = limit;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    while (this.#active >= this.#limit()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#active++;
    try {
      return await work();
    } finally {
      this.#active--;
      for (const wake of this.#waiting.splice(0)) wake();
    }
  }
}

/** What a worker knows about an issuer. */
interface IssuerLoad extends IssuerPause {
  readonly gate: Gate;
  /** How many refreshes have failed one after the other. */
  failures: number;
  /** When the answers to other workers were read. */
  readAt: number;
}

/** What other workers were answered is read once for all logins of an issuer whose turn comes within this time. */
const BATCH_MS = 2000;
/** After so many failures one refresh at a time is sent, and few logins wait for that: the others are set aside. */
const [FAILING, FEW] = [3, 10];
/** After so many failures all of them are set aside, and one tries the issuer now and then. */
const SET_ASIDE = 30;

/** What a refresh shows about its issuer. */
export type IssuerOutcome = AgentAuthError | "answered" | undefined;

/** What limits one worker. */
interface IssuerLimits {
  /** How many refreshes are in flight at one issuer. */
  perIssuer: number;
  /** How many logins may wait for one issuer. */
  mostWaiting: number;
  everyMs: number;
}

/**
 * How much one worker asks of each issuer: so many refreshes at once, none before its `Retry-After` has passed, and few
 * while all fail.
 */
export class IssuerLoads {
  readonly #loads = new Map<string, IssuerLoad>();
  readonly #pauses: IssuerPauses;
  readonly #clock: Clock;
  readonly #limits: IssuerLimits;

  constructor(records: ShortLivedRecords | undefined, clock: Clock, limits: IssuerLimits) {
    this.#pauses = new IssuerPauses(records, clock);
    this.#clock = clock;
    this.#limits = limits;
  }

  /**
   * Does work at an issuer when it has its turn.
   *
   * @param work gets the pause of the issuer, in which it must not be asked
   */
  async run(issuer: string, work: (pause: IssuerPause | undefined) => Promise<IssuerOutcome>): Promise<void> {
    const load = this.#of(issuer);
    if (load.gate.waiting >= (load.failures < FAILING ? this.#limits.mostWaiting : FEW)) return void (await work(load));
    return load.gate.run(async () => {
      const now = this.#clock.epoch();
      if (load.pausedUntil <= now && now - load.readAt >= BATCH_MS) {
        load.readAt = now;
        Object.assign(load, await this.#pauses.of(issuer));
      }
      const isPaused = load.pausedUntil > now;
      const outcome = await work(isPaused ? load : undefined);
      if (outcome === "answered") load.failures = 0;
      else if (outcome !== undefined && !isPaused) await this.#noteFailure(issuer, load, outcome);
    });
  }

  async #noteFailure(issuer: string, load: IssuerLoad, failure: AgentAuthError): Promise<void> {
    if (failure.class === "unavailable") load.failures++;
    load.why = failure;
    const { retryAfter = 0 } = failure;
    const asideMs = Math.min(1000 * 2 ** (load.failures - SET_ASIDE), this.#limits.everyMs / 1000);
    const pauseMs = Math.max(retryAfter * 1000, load.failures < SET_ASIDE ? 0 : asideMs);
    load.pausedUntil = Math.max(load.pausedUntil, this.#clock.epoch() + pauseMs);
    if (retryAfter > 0) await this.#pauses.set(issuer, load.pausedUntil);
  }

  #of(issuer: string): IssuerLoad {
    const known = this.#loads.get(issuer);
    if (known !== undefined) return known;
    const gate = new Gate(() => (load.failures < FAILING ? this.#limits.perIssuer : 1));
    const load: IssuerLoad = { gate, failures: 0, pausedUntil: 0, readAt: Number.NEGATIVE_INFINITY };
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

/** The text names the issuer too: of two with the same id, one is not known to be paused. */
function idOf(issuer: string): string {
  const digits = Array.from(issuer, (letter) => letter.charCodeAt(0).toString(16));
  return `pause-${digits.join("").slice(-72)}`;
}

function membersOf(text: string): Record<string, unknown> {
  try {
    const value = parseStrictJson(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
