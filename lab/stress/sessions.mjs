// One issuer, the logins of users at it, and the processes that share these.
import { AgentClient, startSandbox } from "./dist.mjs";
import { Ledger } from "./ledger.mjs";
import { Worker } from "./workers.mjs";

/** A login method without a browser, for an issuer that approves at once. */
export const loginMethod = {
  async open() {
    const redirectUri = "http://127.0.0.1:49152/callback";
    return {
      redirectUri,
      async authorize({ url, signal }) {
        const { headers } = await fetch(url, { redirect: "manual", signal });
        return new URL(headers.get("location") ?? redirectUri).searchParams;
      },
      async close() {},
    };
  },
};

/**
 * Starts an issuer and logs in there.
 *
 * @param issuer.grace seconds in which the issuer accepts a used refresh token
 * @param issuer.hours lifetime of an access token
 * @param open makes the sessions, with a method `login`
 */
export async function openSessions({ grace = 0, hours = 1 }, open) {
  const sandbox = await startSandbox({
    autoApprove: true,
    accessTokenTtlSeconds: hours * 3600,
    refreshReuseGraceSeconds: grace,
    // The management interface is not used.
    accounts: 1,
    domains: 1,
    pools: 1,
    devices: 0,
  });
  const sessions = open(sandbox);
  try {
    await sessions.login();
    return sessions;
  } catch (error) {
    await sessions.close();
    throw error;
  }
}

/** What has a `store`, and `now()`, the time of its processes. */
export class Sessions {
  workers = new Set();

  constructor(sandbox) {
    this.sandbox = sandbox;
    this.server = sandbox.mcpUrl;
    this.ledger = new Ledger(sandbox);
  }

  /** Logs a user in, whatever is stored. */
  loginOf(profile) {
    const clock = { now: () => performance.now(), epoch: () => this.now(), sleep: async () => {} };
    return new AgentClient({ store: this.store, profile, clock, login: loginMethod }).login(this.server);
  }

  /** Starts a process; resolves when it accepts requests. */
  async start(settings, options) {
    const worker = new Worker({ server: this.server, ...settings }, options);
    this.workers.add(worker);
    worker.ended.then(() => this.workers.delete(worker));
    await worker.ready;
    return worker;
  }

  async close() {
    await Promise.all([...this.workers].map((worker) => worker.kill()));
    await this.sandbox.close();
  }
}
