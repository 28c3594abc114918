// One agent process: the built package over a store in files, or in an engine that all processes share. It requests tokens
// on a message, and pauses or dies at the stage that the message names. This works through the options of AgentClient and
// its store, and by wrapping file system calls of this process.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { AgentClient, fileStore, isAgentAuthError } from "./dist.mjs";
import { Stages } from "./stages.mjs";
import { digest, pause } from "./tools.mjs";

const { server, home, timeout, tenant, takeover, skew = 0, address, ...link } = JSON.parse(process.argv[2]);
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
const isOfFiles = home !== undefined;
const stages = new Stages((stage) => process.send({ kind: "at", stage }));
// Processes with files need no client of an engine.
const engine = isOfFiles ? undefined : await import("./engines/store.mjs");
const connection = await engine?.connect(address, link);
const store = stages.store(isOfFiles ? fileStore(home) : engine.openStore(connection.driver, { tenant, takeover }));
const agents = new Map();
/** Milliseconds by which this process is ahead, or the time at which its clock stands still. */
let [ahead, epoch] = [0, undefined];
let detour;
let browsers = 0;
/** The events since the last answer. */
let events = [];

const options = {
  store,
  fetch: stages.fetch((request, init) => fetch(detour === undefined ? request : detoured(request), init)),
  clock: { now: () => performance.now(), epoch: () => epoch ?? Date.now() + ahead, sleep: pause },
  timeoutMs: timeout,
  // Of many users at once they would be too many.
  onEvent: isOfFiles ? ({ type, outcome, source }) => events.push({ type, outcome, source }) : undefined,
  login: {
    async open() {
      browsers++;
      throw new Error("a browser was requested");
    },
  },
};

/** The same request to another address: a name that does not exist, a port without a listener. */
function detoured(request) {
  const { pathname } = new URL(request.url);
  const { method, headers, body } = request;
  return new Request(new URL(pathname, detour), { method, headers, body, duplex: "half" });
}

function agentOf(profile) {
  if (!agents.has(profile)) agents.set(profile, new AgentClient({ ...options, profile }));
  return agents.get(profile);
}

/** Requests a token, again while the error says that the same call may succeed later. */
async function call(profile, { tries, options, failed }) {
  for (let left = tries; ; left--) {
    try {
      return { token: digest((await agentOf(profile).token(server, options)).value) };
    } catch (error) {
      if (!isAgentAuthError(error)) return { error: { code: "thrown", message: String(error?.stack) } };
      const { code, message, class: kind, retryable } = error;
      if (left === 1 || !retryable) return { error: { code, message, class: kind } };
      failed[code] = (failed[code] ?? 0) + 1;
      await pause(RETRY_MS);
    }
  }
}

/**
 * Requests the token of each profile, several at once; answers with the digests, the errors and the waits. Without profiles
 * it requests the only token, and the answer has the digest or the error of that.
 */
async function ask({ id, profiles, tries = 1, options, atOnce = CALLS_AT_ONCE }) {
  events = [];
  const [tokens, errors, waits, failed] = [{}, {}, [], {}];
  const queue = [...(profiles ?? [undefined])];
  const work = async () => {
    while (queue.length > 0) {
      const profile = queue.shift();
      const started = performance.now();
      const { token, error } = await call(profile, { tries, options, failed });
      waits.push(Math.round(performance.now() - started));
      if (error) errors[profile] = error;
      else tokens[profile] = token;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  const only = profiles === undefined && { token: tokens[undefined], error: errors[undefined], browsers, events };
  const stalled = Math.round(delay.max / 1e6);
  process.send({ kind: "answer", id, ...(only || { tokens, errors, waits, failed, stalled }) });
  delay.reset();
}

process.on("message", async (message) => {
  const { kind, id, fill, moveTo } = message;
  if (kind === "go") return stages.go();
  if (kind === "end") return process.exit(0);
  if (fill || moveTo) {
    if (moveTo) await connection.moveTo(moveTo);
    else for (const statement of connection.fill(fill)) statement.catch(() => {});
    return process.send({ kind: "answer", id });
  }
  ({ ahead = 0, epoch, detour } = message);
  stages.arm(message);
  void ask(message);
});
process.on("disconnect", () => process.exit(0));
process.send({ kind: "ready" });
