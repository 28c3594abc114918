// A lane of the file store: one issuer, one folder, one login, and processes that share it. Lanes run concurrently and share
// nothing.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileStore } from "../dist.mjs";
import { openSessions, Sessions } from "../sessions.mjs";
import { must } from "../tools.mjs";

/** Milliseconds by which the clock moves for a token of an hour to expire. */
const LIFE = 3_601_000;
const RECORD = /^(\d+)\.json$/;

/**
 * Opens a lane with a login.
 *
 * @param options.grace seconds in which the issuer accepts a used refresh token
 * @param options.timeout timeout of a worker's request in milliseconds
 */
export function openLane({ grace, timeout } = {}) {
  return openSessions({ grace }, (sandbox) => new Lane(sandbox, timeout));
}

// Also after Ctrl-C.
const homes = new Set();
process.once("exit", () => {
  for (const home of homes) rmSync(home, { recursive: true, force: true });
});

class Lane extends Sessions {
  /** The time of the workers: it stands still, and moves forward when a token is to expire. */
  epoch = Date.now() + LIFE;
  home = mkdtempSync(join(tmpdir(), "agentauth-soak-"));

  constructor(sandbox, timeout) {
    super(sandbox);
    homes.add(this.home);
    this.timeout = timeout;
    this.store = fileStore(this.home);
  }

  now() {
    return this.epoch;
  }

  /** Logs in again, whatever is stored. */
  async login() {
    await this.loginOf(undefined);
    this.ledger.clear();
  }

  /** Makes the stored access token expired for every later request. */
  expire() {
    this.epoch += LIFE;
  }

  /** The message that requests a token. A lost session must be reported, not replaced by a login in a browser. */
  request(more = {}) {
    return { epoch: this.epoch, options: { login: false }, ...more };
  }

  /** Returns the current login, lets its token expire and resets the counters for a trial. */
  async begin() {
    const before = await this.check();
    this.ledger.clear();
    this.expire();
    return before;
  }

  /** The stored grant. @throws Broken unless exactly one is readable */
  async grant() {
    const grants = await this.store.list();
    must(grants.length === 1, `${this.home} has ${grants.length} readable grants, not 1`);
    return grants[0];
  }

  /** Every file of the store must be complete, including old generations. */
  async check() {
    const folder = join(this.home, "grants");
    for (const path of readdirSync(folder, { recursive: true }).map((name) => join(folder, name))) {
      const generation = RECORD.exec(basename(path))?.[1];
      const text = generation && readIfThere(path);
      if (text !== undefined) must(isWhole(text, Number(generation)), `${path} is corrupt`);
    }
    return this.grant();
  }

  /** @param options.namespace whether the worker runs in a separate PID namespace */
  worker(options) {
    return this.start({ home: this.home, timeout: this.timeout }, options);
  }

  async close() {
    await super.close();
    rmSync(this.home, { recursive: true, force: true });
    homes.delete(this.home);
  }
}

function readIfThere(path) {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}

function isWhole(text, generation) {
  try {
    return JSON.parse(text).generation === generation;
  } catch {
    return false;
  }
}
