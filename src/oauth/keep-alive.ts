import { type AgentAuthError, isAgentAuthError } from "../errors.js";
import type { Clock } from "../http/deadline.js";
import { checkOptionNames, type OptionNames } from "../http/public-class.js";
import { AgentClient } from "./agent.js";
import type { AgentUsers } from "./agent-tokens.js";
import { retryRevocations } from "./agent-tokens.js";
import { IssuerLoads } from "./issuer-pauses.js";
import {
  canBeKept,
  type Due,
  dueOf,
  gapMsFor,
  insert,
  isDone,
  millisecondsOf,
  type Rhythm,
  type TimeUnit,
} from "./keep-alive-plan.js";
import type { Connection } from "./model/connection.js";

/** Options of {@link keepAlive}. */
export interface KeepAliveOptions {
  /**
   * In what time each login is refreshed once, such as `24h`, `90m` or `7d`: less than the issuer keeps an unused
   * refresh token.
   */
  every: `${number}${TimeUnit}`;
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
  /** Called with the number of logins that were due and have not been refreshed, when it changes. */
  onOverdue?: ((count: number) => void) | undefined;
}

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

const CONCURRENCY = 16;
const PER_ISSUER = 4;
/** The logins are read this many times in the time of one refresh of each. */
const PASSES = 24;
/** Several workers do not reach for the same login at the same moment. */
const SPREAD_MS = 2000;
/** How long a single pass waits for an issuer that asked not to be asked. */
const PATIENCE_MS = 15 * 60_000;
const RETRY_MS = 30_000;

const OPTIONS: OptionNames<KeepAliveOptions> = {
  ...{ every: true, jitter: true, concurrency: true, perIssuer: true, tenants: true, once: true, signal: true },
  ...{ onResult: true, onOverdue: true, onStoreFailure: true },
};

/**
 * Keeps unused logins alive, whose refresh tokens would expire otherwise: each is refreshed once in a time, by
 * whichever of the workers that share the store comes first. A login that was refreshed for a use is left alone for that
 * time. Two logins of a tenant with a thousand users are as far apart as the time allows: no minute has more than twice as
 * many refreshes as the mean, or ten. A `Retry-After` of an issuer is kept.
 *
 * @returns how many logins had which outcome, once the signal has fired and what was in flight has ended; with `once`, as
 * soon as nothing is due
 * @throws `TypeError` for a wrong option; `AgentAuthError` if the store cannot be used, with `once` also if it does not
 * answer
 *
 * @example
 * await keepAlive(agents, { every: "24h", signal });
 */
export async function keepAlive(agent: AgentClient, options: KeepAliveOptions): Promise<KeepAliveReport> {
  checkOptionNames(options, OPTIONS, "keepAlive");
  const keeper = new Keeper(AgentClient.usersOf(agent), options);
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
  readonly #rhythm: Rhythm;
  readonly #concurrency: number;
  readonly #loads: IssuerLoads;
  /** When the newest refresh that was planned had its turn. */
  #lastAt = 0;
  #gapMs = 0;
  /** The logins that were due at the start of a pass, or failed since, until they are refreshed. */
  readonly #overdue = new Set<string>();

  constructor(users: AgentUsers, options: KeepAliveOptions) {
    const { every, jitter = 0.5, concurrency = CONCURRENCY, perIssuer = PER_ISSUER, signal } = options;
    this.#rhythm = { everyMs: millisecondsOf(every), jitter };
    if (!(jitter >= 0.1 && jitter <= 0.9)) throw new TypeError("jitter must be a number from 0.1 to 0.9");
    for (const [name, value] of Object.entries({ concurrency, perIssuer }))
      if (!(Number.isInteger(value) && value > 0)) throw new TypeError(`${name} must be a whole number above 0`);
    this.#concurrency = concurrency;
    this.#users = users;
    this.#options = options;
    const { clock, options: own } = users.tokensOf(undefined).context;
    this.#clock = clock;
    this.#loads = new IssuerLoads(own.store.shortLived, clock, perIssuer);
    this.#signal = signal ?? new AbortController().signal;
  }

  /** Reads the logins, and refreshes those whose turn comes before the next pass. @returns whether that was all */
  async pass(): Promise<boolean> {
    const { once = false } = this.#options;
    const start = this.#clock.epoch();
    const until = once ? start : start + Math.max(1000, this.#rhythm.everyMs / PASSES);
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
        plan.push(...kept.map((login) => dueOf(tenant, login, this.#rhythm)).filter(({ due }) => due <= until));
      }
    }
    this.#gapMs = gapMsFor(logins, this.#rhythm);
    plan.sort((one, other) => one.due - other.due);
    this.#overdue.clear();
    for (const one of plan) if (one.due <= start) this.#overdue.add(nameOf(one));
    this.#options.onOverdue?.(this.#overdue.size);
    for (const one of plan) {
      one.at = Math.max(one.due, start, this.#lastAt + this.#gapMs);
      this.#lastAt = one.at;
    }
    return plan;
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
      const later = await this.#loads.laterTurn(next.issuer, this.#gapMs);
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

  async #refresh(due: Due): Promise<void> {
    const { context, ofUser } = this.#users.tokensOf(due.tenant);
    try {
      await this.#loads.during(due.issuer, async () => {
        const grant = await context.options.store.read(due.key);
        if (grant === undefined || isDone(grant, due, this.#clock.epoch())) return this.#setOverdue(due, false);
        // Without the signal: an issuer may have obeyed what is in flight.
        if (await ofUser.keepAlive(grant)) this.#count(due, "refreshed");
      });
    } catch (error) {
      if (!isAgentAuthError(error)) throw error;
      this.#count(due, error.code === "login_required" ? "needs_login" : "failed", error);
    }
  }

  #setOverdue(login: Pick<Due, "tenant" | "key">, isOverdue: boolean): void {
    const before = this.#overdue.size;
    if (isOverdue) this.#overdue.add(nameOf(login));
    else this.#overdue.delete(nameOf(login));
    if (this.#overdue.size !== before) this.#options.onOverdue?.(this.#overdue.size);
  }

  #count({ tenant, key, issuer }: Due, outcome: KeepAliveResult["outcome"], error?: AgentAuthError): void {
    this.report[outcome]++;
    this.#setOverdue({ tenant, key }, outcome === "failed");
    const { profile, server, account } = key;
    const login = { tenant: tenant ?? null, profile, server, account: account ?? null, issuer };
    this.#options.onResult?.({ ...login, outcome, ...(error && { error }) });
  }
}

function nameOf({ tenant, key }: Pick<Due, "tenant" | "key">): string {
  return JSON.stringify([tenant, key.profile, key.server, key.account]);
}
