import { AgentAuthError, isAgentAuthError } from "../errors.js";
import type { Clock } from "../http/deadline.js";
import { checkOptionNames, type OptionNames } from "../http/public-class.js";
import { parseJsonObject } from "../http/strict-json.js";
import { quote } from "../redact.js";
import { AgentClient } from "./agent.js";
import { retryRevocations } from "./agent-logout.js";
import type { AgentTokens, AgentUsers } from "./agent-tokens.js";
import { isLastToken } from "./grant/send-refresh.js";
import type { Connection } from "./model/connection.js";
import type { DueLogin, DueLogins, ShortLivedRecords, TimeUnit } from "./model/grant-store.js";
import { dueByReading, parseTime } from "./model/grant-store.js";

/** That an issuer asked not to be asked. */
interface IssuerPause {
  /** Unix milliseconds until when. */
  pausedUntil: number;
  /** Why a login that waits for it was not refreshed. */
  why?: AgentAuthError | undefined;
}

/** Lets so many through at once, in the order in which they come. */
class Gate {
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

interface IssuerLimits {
  /** How many refreshes are in flight at one issuer. */
  perIssuer: number;
  mostWaiting: number;
  everyMs: number;
}

/**
 * How much one worker asks of each issuer: so many refreshes at once, none before its `Retry-After` has passed, and few
 * while all fail.
 */
export class IssuerLoads {
  readonly #loads = new Map<string, IssuerLoad>();
  readonly #context: PauseContext;
  readonly #limits: IssuerLimits;

  constructor(records: ShortLivedRecords | undefined, clock: Clock, limits: IssuerLimits) {
    this.#context = { records, clock };
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
      const now = this.#context.clock.epoch();
      if (load.pausedUntil <= now && now - load.readAt >= BATCH_MS) {
        load.readAt = now;
        Object.assign(load, await readPause(this.#context, issuer));
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
    load.pausedUntil = Math.max(load.pausedUntil, this.#context.clock.epoch() + pauseMs);
    if (retryAfter > 0) await storePause(this.#context, issuer, load.pausedUntil);
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

/** The records of a store, if it has any, and the clock. */
type PauseContext = { records: ShortLivedRecords | undefined; clock: Clock };

/**
 * The `Retry-After` that another worker was answered; undefined if nothing is known, also where the store does not answer: that
 * is the error of the refresh that comes next.
 */
export async function readPause({ records, clock }: PauseContext, issuer: string): Promise<IssuerPause | undefined> {
  const text = await records?.read?.(pauseId(issuer)).catch(() => undefined);
  const { issuer: by, pausedUntil } = parseJsonObject(text ?? "") ?? {};
  if (by !== issuer || typeof pausedUntil !== "number") return undefined;
  const seconds = Math.ceil((pausedUntil - clock.epoch()) / 1000);
  if (seconds <= 0) return undefined;
  const message = `${quote(issuer)} asked another worker to wait; ${seconds} s are left`;
  const details = { class: "unavailable", retryAfter: seconds } as const;
  return { pausedUntil, why: new AgentAuthError("temporarily_unavailable", message, details) };
}

/** Notes what an issuer answered for all workers, in place of what it answered before. */
export async function storePause({ records, clock }: PauseContext, issuer: string, until: number): Promise<void> {
  if (records?.read === undefined) return;
  const now = clock.epoch();
  const pausedUntil = Math.min(until, now + MOST_MS);
  const text = JSON.stringify({ issuer, pausedUntil });
  const id = pauseId(issuer);
  const put = () => records.put(id, text, { now, expiresAt: pausedUntil });
  try {
    if (await put()) return;
    await records.take(id);
    await put();
  } catch {
    // The other workers ask the issuer, as they would have.
  }
}

/** The text names the issuer too: of two with the same id, one is not known to be paused. */
function pauseId(issuer: string): string {
  const digits = Array.from(issuer, (letter) => letter.charCodeAt(0).toString(16));
  return `pause-${digits.join("").slice(-72)}`;
}

const MINUTE_MS = 60_000;

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
  /** The tenants whose logins are kept alive, read 24 times in that time. Default: that of the store. */
  tenants?: (() => Iterable<string> | AsyncIterable<string>) | undefined;
  /** Whether to refresh what is due now and end, as a cron job does. */
  once?: boolean | undefined;
  /** Ends it: no other refresh begins, and those in flight end. */
  signal?: AbortSignal | undefined;
  /** Called for each login that was refreshed, has ended, or became overdue. */
  onResult?: ((result: KeepAliveResult) => void) | undefined;
  /** Called once a minute. */
  onProgress?: ((progress: KeepAliveProgress) => void) | undefined;
  /** Called when the store does not answer; the logins are read again later. */
  onStoreFailure?: ((error: AgentAuthError) => void) | undefined;
}

/** What became of one login. */
export interface KeepAliveResult extends Pick<Connection, "profile" | "server" | "account" | "issuer"> {
  /** The tenant; null for that of the store. */
  tenant: string | null;
  /** `needs_login` if the issuer refused the refresh token, `overdue` if its refresh failed and is tried again. */
  outcome: "refreshed" | "needs_login" | "overdue";
  /** Why it was not refreshed. */
  error?: AgentAuthError;
}

/** The logins that were due and could not be refreshed yet, by whichever worker. */
export interface OverdueLogins {
  /** How many there are. */
  count: number;
  /** When the oldest of their tokens was issued; null if there are none. */
  oldest: string | null;
  /** How many there are of each issuer. */
  by_issuer: Record<string, number>;
}

/** What was done. */
export interface KeepAliveReport {
  /** Refreshes by this process. */
  refreshed: number;
  /** Logins whose issuer refused the refresh token. */
  needs_login: number;
  /** Logins that stay overdue. */
  overdue: OverdueLogins;
}

/** What was done so far. */
export interface KeepAliveProgress extends KeepAliveReport {
  /** With `once`: how many logins are still due. */
  due: number;
  /** With `once`: in how many seconds they will be done, as it looks; null if that is unknown. */
  seconds_left: number | null;
}

interface Tenant {
  readonly name: string | undefined;
  readonly tokens: AgentTokens;
  readonly logins: DueLogins;
  /** When they are looked at again. */
  nextAt: number;
}

const CONCURRENCY = 16;
const PER_ISSUER = 4;
/** So many logins are read or planned at once, and wait for their turn in this process. */
const [PAGE, MOST] = [100, 500];
/** Tenants and new logins are looked for so many times in the time of one refresh of each. */
const PASSES = 24;
/** Ten in a minute are never too many. */
const SLOT_MS = MINUTE_MS / 10;
/** Several workers do not reach for the same login at the same moment. */
const SPREAD_MS = 2000;
/** A login that is in use elsewhere is left alone for so long. */
const BUSY_MS = 30_000;
/** A single run says soon how long it will take. */
const FIRST_REPORT_MS = 10_000;
const STORE_PAUSES_MS = [1000, 2000, 5000, 15_000, 30_000];

const OPTIONS: OptionNames<KeepAliveOptions> = {
  ...{ every: true, jitter: true, concurrency: true, perIssuer: true, tenants: true, once: true, signal: true },
  ...{ onResult: true, onProgress: true, onStoreFailure: true },
};

/**
 * Keeps unused logins alive, whose refresh tokens would expire otherwise: each is refreshed once in a time, by one of the
 * workers that share the store. A login that was refreshed for a use is left alone for that time. A refresh that fails is
 * tried again after a minute, then after twice the time, up to a quarter of that of one refresh of each; it delays no other
 * login. The refreshes are spread: no minute has more than twice as many as the mean, or ten, unless `once` is set or workers
 * that were held up catch up. A `Retry-After` of an issuer is kept.
 *
 * Experimental: its options and its report may change in any version.
 *
 * @returns what was done, once the signal has fired and what was in flight has ended; with `once`, as soon as nothing is due
 * @throws `TypeError` for a wrong option; `AgentAuthError` if the store cannot be used, with `once` also if it does not
 * answer
 *
 * @example
 * await keepAlive(agents, { every: "24h", signal });
 */
export async function keepAlive(agent: AgentClient, options: KeepAliveOptions): Promise<KeepAliveReport> {
  checkOptionNames(options, OPTIONS, "keepAlive");
  return new Keeper(AgentClient.usersOf(agent), options).run();
}

/** One worker. What is due, and when, is in the store: all workers of it see the same. */
class Keeper {
  readonly #users: AgentUsers;
  readonly #options: KeepAliveOptions;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #signal: AbortSignal;
  readonly #everyMs: number;
  readonly #jitter: number;
  readonly #startedAt: number;
  readonly #slots: Gate;
  /** Plans wait for each other, so that none waits in the client of the engine until its time is over. */
  readonly #plans: Gate;
  readonly #issuers: IssuerLoads;
  readonly #report: KeepAliveReport = {
    ...{ refreshed: 0, needs_login: 0 },
    overdue: { count: 0, oldest: null, by_issuer: {} },
  };
  #tenants = new Map<string | undefined, Tenant>();
  #listAt = Number.NEGATIVE_INFINITY;
  #reportAt: number;
  #done = 0;
  /** The logins that this process works on, or leaves alone until then. */
  readonly #known = new Map<string, number>();
  #upcoming: { at: number; begin(): void }[] = [];
  readonly #tasks = new Set<Promise<void>>();
  #failure: unknown;
  #wake: () => void = () => {};
  #wakeAt = 0;

  constructor(users: AgentUsers, options: KeepAliveOptions) {
    const { every, jitter = 0.5, concurrency = CONCURRENCY, perIssuer = PER_ISSUER, signal } = options;
    this.#everyMs = parseTime(every);
    if (!(jitter >= 0.1 && jitter <= 0.9)) throw new TypeError("jitter must be a number from 0.1 to 0.9");
    for (const [name, value] of Object.entries({ concurrency, perIssuer }))
      if (!(Number.isInteger(value) && value > 0)) throw new TypeError(`${name} must be a whole number above 0`);
    this.#jitter = jitter;
    this.#users = users;
    this.#options = options;
    const { clock, options: own } = users.tokensOf(undefined).context;
    this.#clock = clock;
    this.#random = own.random ?? Math.random;
    this.#startedAt = clock.epoch();
    this.#reportAt = this.#startedAt + (options.once ? FIRST_REPORT_MS : MINUTE_MS);
    this.#slots = new Gate(() => concurrency);
    this.#plans = new Gate(() => PAGE);
    const limits = { perIssuer, mostWaiting: options.once ? MOST : MOST / 5, everyMs: this.#everyMs };
    this.#issuers = new IssuerLoads(own.store.shortLived, clock, limits);
    this.#signal = signal ?? new AbortController().signal;
  }

  async run(): Promise<KeepAliveReport> {
    try {
      for (let failures = 0, isOver = false; !isOver; ) {
        try {
          isOver = await this.#round();
          failures = 0;
        } catch (error) {
          const isPassing = isAgentAuthError(error) && error.class === "unavailable" && !this.#options.once;
          if (!isPassing) throw error;
          this.#options.onStoreFailure?.(error);
          await this.#sleep(STORE_PAUSES_MS[failures++] ?? 30_000);
          isOver = this.#signal.aborted;
        }
      }
    } finally {
      await Promise.all(this.#tasks);
    }
    await this.#countOverdue().catch((error: unknown) => {
      if (!this.#signal.aborted) throw error;
    });
    return this.#report;
  }

  /** Begins what is due, and waits for what comes next. @returns whether that was all */
  async #round(): Promise<boolean> {
    const now = this.#clock.epoch();
    if (now >= this.#listAt) await this.#list(now + this.#everyMs / PASSES);
    let wakeAt = Math.min(this.#listAt, this.#reportAt);
    for (const tenant of this.#tenants.values()) {
      if (tenant.nextAt <= now) {
        tenant.nextAt = Number.POSITIVE_INFINITY;
        const nextAt = await this.#begin(tenant).catch((error: unknown) => {
          tenant.nextAt = now;
          throw error;
        });
        tenant.nextAt = Math.min(tenant.nextAt, nextAt);
      }
      wakeAt = Math.min(wakeAt, tenant.nextAt);
    }
    for (const { at, begin } of this.#upcoming.splice(0).sort((one, other) => one.at - other.at)) {
      if (at > this.#clock.epoch()) {
        this.#upcoming.push({ at, begin });
        wakeAt = Math.min(wakeAt, at);
      } else if (!this.#signal.aborted) begin();
    }
    if (this.#clock.epoch() >= this.#reportAt) await this.#reportProgress();
    const { once } = this.#options;
    if (once && this.#tasks.size === 0) return true;
    this.#wakeAt = once ? this.#reportAt : wakeAt;
    const leastMs = Math.min(100, this.#everyMs / 10_000);
    await this.#sleep(Math.max(this.#wakeAt - this.#clock.epoch(), leastMs), once);
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
    return this.#signal.aborted;
  }

  /** Returns early when the signal fires, or the store fails. @param orDone also when nothing is in flight any more */
  async #sleep(ms: number, orDone = false): Promise<void> {
    if (this.#signal.aborted) return;
    const end = new AbortController();
    this.#wake = () => end.abort();
    this.#signal.addEventListener("abort", this.#wake);
    if (orDone) void Promise.all(this.#tasks).then(this.#wake);
    await this.#clock.sleep(ms, end.signal).catch(() => undefined);
    this.#signal.removeEventListener("abort", this.#wake);
  }

  /** Reads the tenants, and revokes what could not be revoked before. */
  async #list(nextAt: number): Promise<void> {
    const tenants = new Map<string | undefined, Tenant>();
    for await (const name of this.#options.tenants?.() ?? [undefined]) {
      const tokens = this.#users.tokensOf(name);
      const { store } = tokens.context.options;
      const known = this.#tenants.get(name);
      tenants.set(name, known ?? { name, tokens, logins: store.due ?? dueByReading(store), nextAt: 0 });
    }
    this.#tenants = tenants;
    this.#listAt = nextAt;
    const down = new Set<string>();
    for (const { tokens } of tenants.values()) {
      if (this.#signal.aborted) return;
      await retryRevocations(tokens.context, undefined, this.#signal, down).catch((error) => {
        if (!this.#signal.aborted) throw error;
      });
    }
  }

  /** Begins what is due of a tenant. @returns when it is to be looked at again */
  async #begin(tenant: Tenant): Promise<number> {
    for (;;) {
      const now = this.#clock.epoch();
      for (const [name, until] of this.#known) if (until <= now) this.#known.delete(name);
      if (this.#tasks.size + this.#upcoming.length >= MOST || this.#signal.aborted) return now;
      const passMs = this.#everyMs / PASSES;
      const soon = now + Math.min(MINUTE_MS, passMs);
      const until = this.#options.once ? this.#startedAt : now + passMs;
      const limit = this.#tasks.size + this.#upcoming.length + 2 * PAGE;
      const mostPlanned = Math.ceil((this.#everyMs * this.#jitter) / SLOT_MS);
      const { items, total } = await tenant.logins.next(until, limit, mostPlanned);
      const isNew = (login: DueLogin) => login.dueAt <= soon && !this.#known.has(loginName(tenant, login));
      const begun = items.filter(isNew).slice(0, PAGE);
      for (const [nth, login] of begun.entries()) {
        const plannedAt = this.#plannedAt(login, (nth + this.#random()) / begun.length, total);
        const spreadMs = this.#random() * Math.min(SPREAD_MS, this.#everyMs / 100);
        const at = this.#options.once || plannedAt !== undefined ? now : Math.max(login.dueAt, now) + spreadMs;
        this.#known.set(loginName(tenant, login), Number.POSITIVE_INFINITY);
        this.#upcoming.push({ at, begin: () => this.#start(tenant, login, plannedAt) });
      }
      const later = items.find(({ dueAt }) => dueAt > soon)?.dueAt ?? until;
      if (begun.length === 0) return Math.min(later, ...this.#known.values());
    }
  }

  /**
   * When a login is to be refreshed that was not planned before, or that no worker refreshed in time; undefined: now.
   *
   * @param share where it is among those that are planned together: 0 to 1
   */
  #plannedAt({ obtainedAt, dueAt, failures }: DueLogin, share: number, total: number): number | undefined {
    const now = this.#clock.epoch();
    const partMs = this.#everyMs * this.#jitter;
    const end = obtainedAt + this.#everyMs;
    const isPlanned = failures > 0 || dueAt >= end - partMs;
    if (this.#options.once) return isPlanned || end - partMs / 2 <= now ? undefined : end - partMs / 2;
    const isLate = failures === 0 && now - dueAt > MINUTE_MS + this.#everyMs / PASSES;
    if (isPlanned && !isLate) return undefined;
    const from = Math.max(end - partMs, now);
    // Time is left for a second try.
    return from + (Math.max(end - partMs / 8, now + Math.min(partMs, total * SLOT_MS)) - from) * share;
  }

  #start(tenant: Tenant, login: DueLogin, plannedAt: number | undefined): void {
    const name = loginName(tenant, login);
    const work: Promise<unknown> =
      plannedAt === undefined
        ? this.#keep(tenant, login)
        : this.#plans.run(() => this.#plan(tenant, login, plannedAt, 0));
    // A single run looks at each login once.
    const release = () => !this.#options.once && this.#known.delete(name);
    const task: Promise<void> = work
      .then(() => void release())
      .catch((error: unknown) => {
        // In use elsewhere, or its record cannot be changed.
        const isOfLogin = isAgentAuthError(error) && error.code !== "store_unavailable";
        if (isOfLogin)
          return void this.#known.set(name, this.#clock.epoch() + Math.min(BUSY_MS, this.#everyMs / PASSES));
        release();
        this.#failure ??= error;
        this.#wake();
      })
      .finally(() => this.#tasks.delete(task));
    this.#tasks.add(task);
  }

  async #keep(tenant: Tenant, login: DueLogin): Promise<void> {
    await this.#issuers.run(login.issuer, async (pause) => {
      if (this.#signal.aborted) return undefined;
      if (pause !== undefined) return this.#postpone(tenant, login, pause.pausedUntil, pause.why);
      return this.#slots.run(() => this.#refresh(tenant, login));
    });
  }

  async #refresh(tenant: Tenant, login: DueLogin): Promise<IssuerOutcome> {
    const { context, ofUser } = tenant.tokens;
    const grant = await context.options.store.read({ ...login, account: login.account ?? undefined });
    const now = this.#clock.epoch();
    // Another worker, or a use, may have refreshed it.
    if (grant?.tokens.obtainedAt !== login.obtainedAt || this.#signal.aborted) return undefined;
    // The answer to its last refresh was lost: it is not sent again while its access token lives.
    const isLast = isLastToken(grant, now);
    if (isLast && grant.tokens.expiresAt !== undefined) return this.#postpone(tenant, login, grant.tokens.expiresAt);
    try {
      // Without the signal: an issuer may have obeyed what is in flight.
      const dueAt = now + this.#everyMs * (1 - this.#jitter / 2);
      if (!(await ofUser.keepAlive(grant, dueAt, isLast))) return undefined;
      this.#count(tenant, login, "refreshed");
    } catch (error) {
      if (!isAgentAuthError(error) || error.code === "store_unavailable" || error.code === "lease_busy") throw error;
      if (error.code !== "login_required") return this.#postpone(tenant, login, now, error);
      this.#count(tenant, login, "needs_login", error);
    }
    return "answered";
  }

  async #plan(tenant: Tenant, login: DueLogin, dueAt: number, failures: number): Promise<boolean> {
    const isPlanned = await tenant.logins.plan(login, dueAt, failures);
    tenant.nextAt = Math.min(tenant.nextAt, dueAt);
    if (dueAt < this.#wakeAt) this.#wake();
    return isPlanned;
  }

  /** Sets a login back, for a time that grows with each failure. */
  async #postpone(tenant: Tenant, login: DueLogin, until: number, error?: AgentAuthError) {
    const pauseMs = Math.min(MINUTE_MS * 2 ** login.failures, this.#everyMs / 4);
    const now = this.#clock.epoch();
    const afterMs = Math.max(until - now, (error?.retryAfter ?? 0) * 1000, pauseMs);
    const at = now + afterMs + pauseMs * 0.25 * this.#random();
    const isPlanned = await this.#plan(tenant, login, at, login.failures + 1);
    if (isPlanned && login.failures === 0) this.#count(tenant, login, "overdue", error);
    return error;
  }

  #count(tenant: Tenant, login: DueLogin, outcome: KeepAliveResult["outcome"], error?: AgentAuthError): void {
    if (outcome !== "overdue") this.#report[outcome]++;
    this.#done++;
    const { profile, server, account, issuer } = login;
    const result = { tenant: tenant.name ?? null, profile, server, account, issuer, outcome };
    this.#options.onResult?.({ ...result, ...(error && { error }) });
  }

  async #reportProgress(): Promise<void> {
    const begun = this.#clock.epoch();
    await this.#countOverdue();
    let due = 0;
    if (this.#options.once)
      for (const { logins } of this.#tenants.values()) due += (await logins.next(this.#startedAt, 1)).total;
    const now = this.#clock.epoch();
    const seconds = this.#done === 0 ? null : Math.ceil((due * (begun - this.#startedAt)) / this.#done / 1000);
    this.#options.onProgress?.({ ...this.#report, due, seconds_left: seconds });
    // Counting takes a hundredth of the time at most.
    this.#reportAt = now + Math.max(MINUTE_MS, 100 * (now - begun));
  }

  async #countOverdue(): Promise<void> {
    const { events } = this.#users.tokensOf(undefined).context;
    const before = this.#report.overdue.by_issuer;
    const counts = new Map(Object.keys(before).map((issuer) => [issuer, 0]));
    let [count, oldest] = [0, Number.POSITIVE_INFINITY];
    for (const { logins } of this.#tenants.values())
      for await (const part of logins.failing())
        for (const { issuer, obtainedAt } of part) {
          count++;
          oldest = Math.min(oldest, obtainedAt);
          counts.set(issuer, (counts.get(issuer) ?? 0) + 1);
        }
    for (const [issuer, logins] of counts) events.emit("overdue", () => ({ type: "overdue", issuer, logins }));
    const by_issuer = Object.fromEntries([...counts].filter(([, logins]) => logins > 0));
    this.#report.overdue = { count, oldest: count === 0 ? null : new Date(oldest).toISOString(), by_issuer };
  }
}

function loginName({ name }: Tenant, { profile, server, account }: DueLogin): string {
  return JSON.stringify([name, profile, server, account]);
}
