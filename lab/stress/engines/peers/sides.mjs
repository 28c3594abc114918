// What is compared: each shares logins over one Redis.

import { readFileSync } from "node:fs";
import { AgentClient } from "../../dist.mjs";
import { pause } from "../../tools.mjs";
import { connect, openStore } from "../store.mjs";
import { none, redlock, semaphore, setNx } from "./locks.mjs";
import { msal } from "./msal.mjs";
import { sdk } from "./sdk.mjs";

const ours = {
  /** The fleet has stored the logins already. */
  seed: async () => {},
  open: async ({ address, tenant, server, fetch, now }) => {
    const { driver } = await connect(address);
    // Of the others, none waits longer for a killed process than its lock lives.
    const store = openStore(driver, { tenant, takeover: "fast" });
    const sleep = (ms) => pause(ms);
    const clock = { now: () => performance.now(), epoch: now, sleep };
    const agents = new Map();
    return async (profile) => {
      if (!agents.has(profile)) agents.set(profile, new AgentClient({ store, profile, clock, fetch }));
      return (await agents.get(profile).token(server, { login: false })).value;
    };
  },
  refreshToken: async (_, grant) => (grant.retired ? undefined : grant.tokens.refreshToken.reveal()),
};

const lab = new URL("../../../package.json", import.meta.url);
const { devDependencies: version } = JSON.parse(readFileSync(lab, "utf8"));

/** By name: `seed` stores a login, `open` returns what a process calls for a token, `refreshToken` reads the stored one. */
export const SIDES = {
  agentauth: ours,
  "MCP SDK, no lock": sdk(none),
  "MCP SDK, SET NX of 2 s": sdk(setNx),
  [`MCP SDK, redlock ${version.redlock} of 10 s`]: sdk(redlock),
  [`MCP SDK, redis-semaphore ${version["redis-semaphore"]}`]: sdk(semaphore),
  [`MSAL Node ${version["@azure/msal-node"]}`]: msal,
};
