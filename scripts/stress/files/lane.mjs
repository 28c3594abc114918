// A lane: one issuer, one folder, one login, and processes that share it. Lanes run concurrently and share nothing.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { AgentClient, fileStore, startSandbox } from "../dist.mjs";
import { must } from "../invariant.mjs";
import { Ledger } from "../ledger.mjs";
import { loginMethod } from "../login.mjs";
import { Worker } from "../workers.mjs";

/** Lifetime of an access token in seconds. */
const LIFE = 3600;
const RECORD = /^(\d+)\.json$/;

/**
 * Opens a lane with a login.
 *
 * @param options.grace seconds in which the issuer accepts a used refresh token
 * @param options.timeout timeout of a worker's request in milliseconds
 */
export async function openLane({ grace = 0, timeout } = {}) {
  const sandbox = await startSandbox({
    autoApprove: true,
    accessTokenTtlSeconds: LIFE,
    refreshReuseGraceSeconds: grace,
    // The management interface is not used.
    accounts: 1,
    domains: 1,
    pools: 1,
    devices: 0,
  });
  const lane = new Lane(sandbox, mkdtempSync(join(tmpdir(), "agentauth-soak-")), timeout);
  try {
    await lane.login();
    return lane;
  } catch (error) {
    await lane.close();
    throw error;
  }
}

// Each generates keys and logs in, all in this process: many at once would block each other.
let opening = Promise.resolve();

function openInTurn(open, options) {
  const lane = opening.then(() => open(options));
  opening = lane.catch(() => {});
  return lane;
}

/** Opens lanes and distributes the trials. */
export async function inLanes(count, options, trials, work, open = openLane) {
  const queue = [...trials];
  const one = async () => {
    let lane;
    try {
      lane = await openInTurn(open, options);
      for (let trial = queue.shift(); trial !== undefined; trial = queue.shift()) await work(lane, trial);
    } catch (error) {
      queue.length = 0;
      throw error;
    } finally {
      await lane?.close();
    }
  };
  // All lanes finish: processes and folders must not outlive a failure of one.
  const ended = await Promise.allSettled(Array.from({ length: Math.min(count, queue.length) }, one));
  const failed = ended.find(({ status }) => status === "rejected");
  if (failed) throw failed.reason;
}

// Also after Ctrl-C.
const homes = new Set();
process.once("exit", () => {
  for (const home of homes) rmSync(home, { recursive: true, force: true });
});

class Lane {
  /** The time of the workers: it moves forward when a token is to expire. */
  epoch = Date.now() + LIFE * 1000;
  workers = new Set();

  constructor(sandbox, home, timeout) {
    this.sandbox = sandbox;
    this.home = home;
    homes.add(home);
    this.timeout = timeout;
    this.server = sandbox.mcpUrl;
    this.ledger = new Ledger(sandbox);
    this.store = fileStore(home);
  }

  /** Logs in again, whatever is stored. */
  async login() {
    const clock = { now: () => performance.now(), epoch: () => this.epoch, sleep: async () => {} };
    await new AgentClient({ store: this.store, clock, login: loginMethod }).login(this.server);
    this.ledger.clear();
  }

  /** Makes the stored access token expired for every later request. */
  expire() {
    this.epoch += LIFE * 1000 + 1000;
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
      if (generation === undefined) continue;
      const text = readIfThere(path);
      if (text === undefined) continue;
      must(isWhole(text, Number(generation)), `${path} is corrupt`);
    }
    return this.grant();
  }

  /** @param options.namespace whether the worker runs in a separate PID namespace */
  async worker(options = {}) {
    const { home, server, timeout } = this;
    const worker = new Worker({ home, server, timeout }, options);
    this.workers.add(worker);
    worker.ended.then(() => this.workers.delete(worker));
    await worker.ready;
    return worker;
  }

  async close() {
    await Promise.all([...this.workers].map((worker) => worker.kill()));
    await this.sandbox.close();
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
