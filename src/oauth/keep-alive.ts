import { type AgentAuthError, isAgentAuthError } from "../errors.js";
import type { Clock } from "../http/deadline.js";
import { retryRevocations } from "./agent-disconnect.js";
import type { AgentUsers } from "./agent-users.js";
import { hashOf, type IssuerPause, IssuerPauses } from "./issuer-pauses.js";
import type { Connection } from "./model/connection.js";
import type { Grant, GrantKey } from "./model/grant.js";
import { IDP_ACCOUNT, isMachineAccount } from "./model/machine-grant.js";

/** Options of {@link keepAlive}. */
export interface KeepAliveOptions {
  /**
   * In what time each login is refreshed once, such as `24h`, `90m` or `7d`: less than the issuer keeps an unused
   * refresh token.
   */
  every: `${number}${Unit}`;
  /** The last part of that time, over which the refreshes are spread: 0.1 to 0.9. Default: 0.5. */
  jitter?: number | undefined;
  /** How many refreshes are in flight at once. Default: 16. */
  concurrency?: number | undefined;
  /** How many of them at one issuer. Default: 4. */
  perIssuer?: number | undefined;
  /** The tenants whose logins are kept alive, asked for before each pass over the logins. Default: that of the store. */
  tenants?: (() => Iterable<string> | AsyncIterable<string>) | undefined;
  /** Whether to refresh what is due now and end, as a cron job does. */
  once?: boolean | undefined;
  /** Ends it: no other refresh begins, and those in flight end. */
  signal?: AbortSignal | undefined;
  /** Called for each login that was refreshed or could not be. */
  onResult?: ((result: KeepAliveResult) => void) | undefined;
  /** Called when the store does not answer; the logins are read again later. */
  onStoreFailure?: ((error: AgentAuthError) => void) | undefined;
}

type Unit = keyof typeof UNITS_MS;

/** What became of one login. */
export interface KeepAliveResult extends Pick<Connection, "profile" | "server" | "account" | "issuer"> {
  /** The tenant; null for that of the store. */
  tenant: string | null;
  /** `needs_login` if the issuer refused the refresh token, `failed` if another try may succeed. */
  outcome: "refreshed" | "needs_login" | "failed";
  /** Why it was not refreshed. */
  error?: AgentAuthError;
}

/** How many logins had which outcome. A login that another worker refreshed is not counted here. */
export interface KeepAliveReport extends Record<KeepAliveResult["outcome"], number> {
  /** Logins that this process refreshed. */
  refreshed: number;
  /** Logins whose issuer refused the refresh token. */
  needs_login: number;
  /** Refreshes that failed, and may succeed later. */
  failed: number;
}

/** A login whose turn comes. Times are Unix milliseconds. */
interface Due {
  tenant: string | undefined;
  key: GrantKey;
  issuer: string;
  /** When its tokens were issued. */
  issuedAt: number;
  /** When it should be refreshed. */
  due: number;
  /** When it will be, so that not too many are at once. */
  at: number;
}

/** What a worker knows about an issuer. */
interface IssuerLoad extends IssuerPause {
  active: number;
  /** When the last login that waits for that has its turn. */
  lastAt: number;
}

const UNITS_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const CONCURRENCY = 16;
const PER_ISSUER = 4;
/** The logins are read this many times in the time of one refresh of each. */
const PASSES = 24;
/** By how much a minute may exceed the mean. */
const PEAK = 1.75;
/** So many refreshes in a minute are never too many. */
const FEW_PER_MINUTE = 10;
/** Several workers do not reach for the same login at the same moment. */
const SPREAD_MS = 2000;
/** How long a single pass waits for an issuer that asked not to be asked. */
const PATIENCE_MS = 15 * 60_000;
const RETRY_MS = 30_000;
const BUSY_MS = 250;
const LEAST_MS = 10_000;
const MOST_MS = 90 * UNITS_MS.d;

/** See `keepAlive` of `agentauth`. */
export async function keepLoginsAlive(users: AgentUsers, options: KeepAliveOptions): Promise<KeepAliveReport> {
  const keeper = new Keeper(users, options);
  for (;;) {
    try {
      const isOver = await keeper.pass();
      if (isOver) return keeper.report;
    } catch (error) {
      if (options.once || !isAgentAuthError(error) || error.class !== "unavailable") throw error;
      options.onStoreFailure?.(error);
      await keeper.sleep(RETRY_MS);
    }
  }
}

/** One worker. All of them come to the same plan, since it depends on the stored logins alone. */
class Keeper {
  readonly report: KeepAliveReport = { refreshed: 0, needs_login: 0, failed: 0 };
  readonly #users: AgentUsers;
  readonly #options: KeepAliveOptions;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #everyMs: number;
  readonly #jitter: number;
  readonly #concurrency: number;
  readonly #perIssuer: number;
  readonly #issuers = new Map<string, IssuerLoad>();
  readonly #pauses: IssuerPauses;
  /** When the newest refresh that was planned had its turn. */
  #lastAt = 0;
  #gapMs = 0;

  constructor(users: AgentUsers, options: KeepAliveOptions) {
    const { every, jitter = 0.5, concurrency = CONCURRENCY, perIssuer = PER_ISSUER, signal } = options;
    this.#everyMs = millisecondsOf(every);
    if (!(jitter >= 0.1 && jitter <= 0.9)) throw new TypeError("jitter must be a number from 0.1 to 0.9");
    for (const [name, value] of Object.entries({ concurrency, perIssuer }))
      if (!(Number.isInteger(value) && value > 0)) throw new TypeError(`${name} must be a whole number above 0`);
    this.#jitter = jitter;
    this.#concurrency = concurrency;
    this.#perIssuer = perIssuer;
    this.#users = users;
    this.#options = options;
    const { clock, options: own } = users.tokensOf(undefined).context;
    this.#clock = clock;
    this.#pauses = new IssuerPauses(own.store.shortLived, clock);
    this.#signal = signal ?? new AbortController().signal;
  }

  /** Reads the logins, and refreshes those whose turn comes before the next pass. @returns whether that was all */
  async pass(): Promise<boolean> {
    const { once = false } = this.#options;
    const start = this.#clock.epoch();
    const until = once ? start : start + Math.max(1000, this.#everyMs / PASSES);
    const tenants: (string | undefined)[] = [];
    for await (const tenant of this.#options.tenants?.() ?? [undefined]) tenants.push(tenant);
    await this.#run(await this.#plan(tenants, start, until), once ? Number.POSITIVE_INFINITY : until);
    await this.#revoke(tenants);
    if (once) return true;
    await this.sleep(until - this.#clock.epoch());
    return this.#signal.aborted;
  }

  /** Returns early when the signal fires. */
  async sleep(ms: number): Promise<void> {
    if (ms > 0 && !this.#signal.aborted) await this.#clock.sleep(ms, this.#signal).catch(() => undefined);
  }

  /** Those that are due until then, in order, with a distance that no minute has far more of than the mean. */
  async #plan(tenants: readonly (string | undefined)[], start: number, until: number): Promise<Due[]> {
    const plan: Due[] = [];
    let logins = 0;
    for (const tenant of tenants) {
      const { store } = this.#users.tokensOf(tenant).context.options;
      for await (const { items } of store.connections({ limit: 1000 })) {
        if (this.#signal.aborted) return [];
        const kept = items.filter(canBeKept);
        logins += kept.length;
        plan.push(...kept.map((login) => this.#dueOf(tenant, login)).filter(({ due }) => due <= until));
      }
    }
    const meanMs = (this.#everyMs * (1 - this.#jitter / 2)) / logins;
    this.#gapMs = Math.min(meanMs / PEAK, UNITS_MS.m / FEW_PER_MINUTE);
    plan.sort((one, other) => one.due - other.due);
    for (const one of plan) {
      one.at = Math.max(one.due, start, this.#lastAt + this.#gapMs);
      this.#lastAt = one.at;
    }
    return plan;
  }

  #dueOf(tenant: string | undefined, { profile, server, account, issuer, issued_at }: Connection): Due {
    const key = { profile, server, account: account ?? undefined };
    const issuedAt = Date.parse(issued_at);
    // Each refresh has another place in the time, so that logins of one hour do not stay together.
    const share = shareOf(JSON.stringify([tenant, profile, server, account, issued_at]));
    const due = issuedAt + this.#everyMs * (1 - this.#jitter * share);
    return { tenant, key, issuer, issuedAt, due, at: due };
  }

  async #run(plan: Due[], until: number): Promise<void> {
    const random = this.#users.tokensOf(undefined).context.options.random ?? Math.random;
    const spreadMs = Math.min(SPREAD_MS, this.#gapMs * this.#concurrency * 0.5);
    const active = new Set<Promise<void>>();
    // A Retry-After moves a login behind others.
    for (let next = plan.shift(); next !== undefined; next = plan.shift()) {
      if (next.at > until) {
        // The next pass plans it again.
        this.#lastAt = Math.min(this.#lastAt, until);
        break;
      }
      await this.sleep(next.at + random() * spreadMs - this.#clock.epoch());
      while (active.size >= this.#concurrency) await Promise.race(active);
      const later = await this.#laterFor(next);
      if (this.#signal.aborted) break;
      if (later === undefined) {
        const work: Promise<void> = this.#refresh(next).finally(() => active.delete(work));
        active.add(work);
      } else if (later.at - this.#clock.epoch() > PATIENCE_MS) this.#count(next, "failed", later.why);
      else insert(plan, { ...next, at: later.at });
    }
    await Promise.all(active);
  }

  /** Revokes what could not be revoked before. */
  async #revoke(tenants: readonly (string | undefined)[]): Promise<void> {
    const down = new Set<string>();
    for (const tenant of tenants) {
      if (this.#signal.aborted) return;
      await retryRevocations(this.#users.tokensOf(tenant).context, undefined, this.#signal, down).catch((error) => {
        if (!this.#signal.aborted) throw error;
      });
    }
  }

  /** When a login can have its turn, if not now, because its issuer is busy or asked not to be asked. */
  async #laterFor({ issuer }: Due): Promise<{ at: number; why?: AgentAuthError | undefined } | undefined> {
    const load = this.#loadOf(issuer);
    const now = this.#clock.epoch();
    if (load.pausedUntil <= now) {
      if (load.active >= this.#perIssuer) return { at: now + Math.max(this.#gapMs, BUSY_MS) };
      Object.assign(load, await this.#pauses.of(issuer));
      if (load.pausedUntil <= now) return undefined;
    }
    // Those that wait for it do not come at once either.
    load.lastAt = Math.max(load.lastAt, load.pausedUntil) + this.#gapMs;
    return { at: load.lastAt, why: load.why };
  }

  #loadOf(issuer: string): IssuerLoad {
    const load = this.#issuers.get(issuer) ?? { active: 0, pausedUntil: 0, lastAt: 0 };
    this.#issuers.set(issuer, load);
    return load;
  }

  async #refresh(due: Due): Promise<void> {
    const load = this.#loadOf(due.issuer);
    load.active++;
    try {
      const { context, ofUser } = this.#users.tokensOf(due.tenant);
      const grant = await context.options.store.read(due.key);
      if (grant === undefined || isDone(grant, due, this.#clock.epoch())) return;
      // Without the signal: an issuer may have obeyed what is in flight.
      if (await ofUser.keepAlive(grant)) this.#count(due, "refreshed");
    } catch (error) {
      if (!isAgentAuthError(error)) throw error;
      const { retryAfter } = error;
      if (retryAfter !== undefined) {
        load.pausedUntil = Math.max(load.pausedUntil, this.#clock.epoch() + retryAfter * 1000);
        load.why = error;
        await this.#pauses.set(due.issuer, load.pausedUntil);
      }
      this.#count(due, error.code === "login_required" ? "needs_login" : "failed", error);
    } finally {
      load.active--;
    }
  }

  #count({ tenant, key, issuer }: Due, outcome: KeepAliveResult["outcome"], error?: AgentAuthError): void {
    this.report[outcome]++;
    const { profile, server, account } = key;
    const login = { tenant: tenant ?? null, profile, server, account: account ?? null, issuer };
    this.#options.onResult?.({ ...login, outcome, ...(error && { error }) });
  }
}

/** Whether a login has a refresh token that is still good. */
function canBeKept({ account, refreshable }: Connection): boolean {
  const isOfMachine = isMachineAccount(account ?? undefined) && account !== IDP_ACCOUNT;
  return refreshable && !isOfMachine;
}

/** Whether a login has been refreshed, or has ended, since it was planned. */
function isDone({ tokens, retired }: Grant, { issuedAt, due }: Due, now: number): boolean {
  const isNewer = now - tokens.obtainedAt < (due - issuedAt) / 2;
  return isNewer || retired !== undefined || tokens.refreshToken === undefined;
}

/** A number from 0 to 1 that is the same in every worker. */
function shareOf(text: string): number {
  return hashOf(text) / 2 ** 32;
}

/** Puts a login into a plan in order. */
function insert(plan: Due[], one: Due): void {
  const at = plan.findIndex((other) => other.at > one.at);
  plan.splice(at === -1 ? plan.length : at, 0, one);
}

/** @throws `TypeError` for what is no time */
export function millisecondsOf(time: string): number {
  const [, digits = "", unit = ""] = /^(\d+(?:\.\d+)?)([smhd])$/.exec(time) ?? [];
  const ms = Number(digits) * (UNITS_MS[unit as Unit] ?? 0);
  if (!(ms >= LEAST_MS && ms <= MOST_MS))
    throw new TypeError("every must be a time such as 24h, 90m or 7d, from 10s to 90d");
  return ms;
}
