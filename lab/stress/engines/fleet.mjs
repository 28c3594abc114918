// A fleet: one issuer, the logins of many users in one engine, and processes that share them.
import { randomUUID } from "node:crypto";
import { openSessions, Sessions } from "../sessions.mjs";
import { must, until } from "../tools.mjs";
import { connect, openStore } from "./store.mjs";

const HOUR = 3_600_000;
const LOGINS_AT_ONCE = 4;
const READ_LOG_EVERY_MS = 500;
/** The codes of a call that may succeed later; the last two are the issuer's connection, which a stop outlives. */
const RETRYABLE = ["store_unavailable", "grant_not_saved", "lease_lost", "lease_busy", "timeout", "connection_reset"];

/**
 * Opens a fleet with its logins.
 *
 * @param options.engine a started engine
 * @param options.users how many users log in
 * @param options.grace seconds in which the issuer accepts a used refresh token
 * @param options.hours lifetime of an access token
 */
export function openFleet({ engine, users, grace = 0, hours = 1 }) {
  return openSessions({ grace, hours }, (sandbox) => new Fleet(sandbox, { engine, users, hours, grace }));
}

class Fleet extends Sessions {
  /** Milliseconds by which the processes are ahead of this one: it grows when all tokens are to expire. */
  ahead = 0;
  tenant = `tenant-${randomUUID()}`;
  #engine;
  #link;
  #reader;

  constructor(sandbox, { engine, users, hours, grace }) {
    super(sandbox);
    this.grace = grace;
    this.hours = hours;
    this.profiles = Array.from({ length: users }, (_, user) => `user-${user}`);
    this.#engine = engine;
    // The issuer's log holds its last requests only.
    this.#reader = setInterval(() => this.ledger.all(), READ_LOG_EVERY_MS);
  }

  now() {
    return Date.now() + this.ahead;
  }

  /** Logs all users in. */
  async login() {
    // This process also runs the issuer, and answers late on a busy machine.
    this.#link = await connect(this.#engine.address, { timeoutMs: 30_000, movable: true });
    this.store = openStore(this.#link.driver, { tenant: this.tenant });
    const [first, ...rest] = this.profiles;
    // The first one registers the client.
    await this.loginOf(first);
    await Promise.all(
      Array.from({ length: LOGINS_AT_ONCE }, async () => {
        for (let profile = rest.shift(); profile !== undefined; profile = rest.shift()) await this.loginOf(profile);
      }),
    );
    this.ledger.clear();
  }

  /** Makes every stored access token expired. */
  expire() {
    this.ahead += this.hours * HOUR + 1000;
  }

  /** The message that makes a worker request tokens; `login` is never an answer to a lost session. */
  request(profiles = this.profiles, more = {}) {
    return { ahead: this.ahead, profiles, options: { login: false }, ...more };
  }

  /** The stored grants, in the order of the users. @throws Broken if one is missing, unreadable or lost */
  async grants() {
    const unusable = [];
    // The connection of this process may still be closed after a stop of the engine that no worker noticed.
    const list = () =>
      this.store
        .list({}, (error) => unusable.push(error.message))
        .catch((error) => {
          if (error.code !== "store_unavailable") throw error;
        });
    const grants = await until(list, "the engine");
    must(unusable.length === 0, () => `unreadable: ${unusable[0]}`);
    must(grants.length === this.profiles.length, () => `${grants.length} grants of ${this.profiles.length} users`);
    return grants;
  }

  /** How many sessions are lost. */
  async lost() {
    return (await this.grants()).filter(({ retired }) => retired).length;
  }

  /** The sum of all generations. */
  async generations() {
    return (await this.grants()).reduce((sum, { generation }) => sum + generation, 0);
  }

  /** @param more.skew milliseconds by which the clock of its machine is ahead */
  worker(more) {
    return this.start({ address: this.#engine.address, tenant: this.tenant, ...more });
  }

  /** Lets the tokens expire and resets the counters for a trial. */
  begin() {
    this.ledger.clear();
    this.expire();
  }

  /** The answers of processes that request all tokens, as promises; each tries a call so often. */
  ask(tries, workers = this.crew) {
    return workers.map((worker) => worker.ask(this.request(this.profiles, { tries })));
  }

  /** The engine was replaced by another one. */
  async moveTo(engine) {
    this.#engine = engine;
    await Promise.all([...this.workers].map((worker) => worker.ask({ moveTo: engine.address })));
    await this.#link.moveTo(engine.address);
  }

  async close() {
    clearInterval(this.#reader);
    await super.close();
    await this.#link?.close();
  }
}

/**
 * Checks the answers of processes that requested the same tokens: each has every token, all have the same ones, and calls
 * failed with documented codes only.
 *
 * @returns the waits in milliseconds, and how many calls failed and were repeated
 */
export function judgeAnswers(answers, what, { same = true } = {}) {
  let failed = 0;
  const seen = new Map();
  for (const answer of answers) {
    const [lost] = Object.entries(answer.errors);
    must(!lost, () => `${what}: ${lost[0]} got no token: ${JSON.stringify(lost[1])}`);
    for (const [code, n] of Object.entries(answer.failed)) {
      must(RETRYABLE.includes(code), () => `${what}: a call failed with ${code}`);
      failed += n;
    }
    for (const [profile, token] of Object.entries(answer.tokens)) {
      must(!same || (seen.get(profile) ?? token) === token, () => `${what}: ${profile} has several tokens`);
      seen.set(profile, token);
    }
  }
  return { waits: answers.flatMap(({ waits }) => waits), failed };
}

/**
 * Counts what a trial cost: sessions that are lost are logged in again, so that the next trial has all of them. Within a
 * grace period, each user must have been refreshed once.
 */
export async function countLosses(fleet, answers, what) {
  const isLost = ({ retired, profile }) =>
    retired || answers.some(({ errors }) => errors[profile]?.code === "login_required");
  const lost = (await fleet.grants()).filter(isLost).map(({ profile }) => profile);
  const [rotations, refusals] = [fleet.ledger.rotations().length, fleet.ledger.refusals().length];
  for (const profile of lost) {
    for (const { errors } of answers) delete errors[profile];
    await fleet.loginOf(profile);
  }
  const { waits, failed } = judgeAnswers(answers, what, { same: false });
  fleet.ledger.clear();
  const twice = fleet.grace === 0 ? refusals : rotations + refusals - fleet.profiles.length;
  return { refreshes: rotations, twice, lost: lost.length, waits, failed };
}
