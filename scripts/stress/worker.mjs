// One agent: a process with the built package, a store in files and nothing else. It requests a token on a message,
// and pauses or dies at the stage that the message names. This works through the options of AgentClient and its
// store, and by wrapping file system calls of this process.
import { digest } from "./digest.mjs";
import { AgentClient, fileStore, isAgentAuthError } from "./dist.mjs";
import { Stages } from "./stages.mjs";

const { home, server, timeout } = JSON.parse(process.argv[2]);
const stages = new Stages((stage) => process.send({ kind: "at", stage }));
let epoch = Date.now();
let detour;
let browsers = 0;
/** The events since the last answer. */
let events = [];

const agent = new AgentClient({
  store: stages.store(fileStore(home)),
  fetch: stages.fetch((request, init) => fetch(detour === undefined ? request : detoured(request), init)),
  clock: {
    now: () => performance.now(),
    epoch: () => epoch,
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  },
  timeoutMs: timeout,
  onEvent: ({ type, outcome, source }) => events.push({ type, outcome, source }),
  login: {
    async open() {
      browsers++;
      throw new Error("a browser was requested");
    },
  },
});

/** The same request to another address: a name that does not exist, a port without a listener. */
function detoured(request) {
  const { pathname } = new URL(request.url);
  const { method, headers, body } = request;
  return new Request(new URL(pathname, detour), { method, headers, body, duplex: "half" });
}

async function ask({ id, options }) {
  events = [];
  try {
    const token = await agent.token(server, options);
    process.send({ kind: "answer", id, browsers, events, token: digest(token.value) });
  } catch (error) {
    const { code, message } = isAgentAuthError(error) ? error : { code: "thrown", message: String(error?.stack) };
    process.send({ kind: "answer", id, browsers, events, error: { code, message, class: error?.class } });
  }
}

process.on("message", (message) => {
  if (message.kind === "go") return stages.go();
  if (message.kind === "end") return process.exit(0);
  epoch = message.epoch;
  detour = message.detour;
  stages.arm(message);
  void ask(message);
});
process.on("disconnect", () => process.exit(0));
process.send({ kind: "ready", pid: process.pid });
