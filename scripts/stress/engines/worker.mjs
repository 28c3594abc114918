// One process of the fleet: the built package over an engine that all processes share. It requests tokens on a message,
// and pauses at the stage that the message names.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { digest } from "../digest.mjs";
import { AgentClient, isAgentAuthError } from "../dist.mjs";
import { Stages } from "../stages.mjs";
import { connect, openStore } from "./store.mjs";

const { address, via, movable, tenant, server, skew = 0, takeover } = JSON.parse(process.argv[2]);
if (skew !== 0) {
  // The clock of this machine, for the agent and for its store.
  const real = Date.now;
  Date.now = () => real() + skew;
}
// A process that does not get a processor stands still too.
const delay = monitorEventLoopDelay({ resolution: 20 });
delay.enable();
const CALLS_AT_ONCE = 8;
const RETRY_MS = 100;
const stages = new Stages((stage) => process.send({ kind: "at", stage }));
const engine = await connect(address, { via, movable });
const store = stages.store(openStore(engine.driver, { tenant, takeover }));
const send = stages.fetch((request, init) => fetch(request, init));
const agents = new Map();
let ahead = 0;

const clock = {
  now: () => performance.now(),
  epoch: () => Date.now() + ahead,
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
};

function agentOf(profile) {
  if (!agents.has(profile)) agents.set(profile, new AgentClient({ store, profile, clock, fetch: send }));
  return agents.get(profile);
}

/** Requests a token, again while the error says that the same call may succeed later. */
async function call(profile, { tries, options, failed }) {
  for (let left = tries; ; left--) {
    try {
      return { token: digest((await agentOf(profile).token(server, options)).value) };
    } catch (error) {
      if (!isAgentAuthError(error)) return { error: { code: "thrown", message: String(error?.stack) } };
      if (left === 1 || !error.retryable) return { error: { code: error.code, message: error.message } };
      failed[error.code] = (failed[error.code] ?? 0) + 1;
      await clock.sleep(RETRY_MS);
    }
  }
}

/** Requests the token of each profile, several at once; answers with the digests, the errors and the waits. */
async function ask({ id, profiles, tries = 1, options, atOnce = CALLS_AT_ONCE }) {
  const [tokens, errors, waits, failed] = [{}, {}, [], {}];
  const queue = [...profiles];
  const work = async () => {
    for (let profile = queue.shift(); profile !== undefined; profile = queue.shift()) {
      const started = performance.now();
      const { token, error } = await call(profile, { tries, options, failed });
      waits.push(Math.round(performance.now() - started));
      if (error) errors[profile] = error;
      else tokens[profile] = token;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  process.send({ kind: "answer", id, tokens, errors, waits, failed, stalled: Math.round(delay.max / 1e6) });
  delay.reset();
}

process.on("message", (message) => {
  if (message.kind === "go") return stages.go();
  if (message.kind === "end") return process.exit(0);
  if (message.fill) {
    for (const statement of engine.fill(message.fill)) statement.catch(() => {});
    return process.send({ kind: "answer", id: message.id });
  }
  if (message.moveTo) return engine.moveTo(message.moveTo).then(() => process.send({ kind: "answer", id: message.id }));
  ahead = message.ahead;
  stages.arm(message);
  void ask(message);
});
process.on("disconnect", () => process.exit(0));
process.send({ kind: "ready", pid: process.pid });
