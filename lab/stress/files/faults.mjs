// Refreshes that fail at the token endpoint or on the network: no failure may end a session or open a browser.
import { createServer } from "node:net";
import { inLanes } from "../lanes.mjs";
import { digest, must, Tally } from "../tools.mjs";
import { openLane } from "./lane.mjs";

/** The scenario. */
export const faults = {
  title: "Refreshes that fail",
  header: ["fault", "requests hit", "valid token used", "error reported", "new token", "logouts", "browsers"],
  run,
};

// The issuer does not process the request, so that it may be strict.
const UNTOUCHED = {
  "HTTP 429 with Retry-After": { fault: { kind: "status", status: 429, retryAfter: "1" } },
  "HTTP 500": { fault: { kind: "status", status: 500 } },
  "HTTP 502": { fault: { kind: "status", status: 502 } },
  "HTTP 503": { fault: { kind: "status", status: 503 } },
  "HTTP 503 with a page": { fault: { kind: "status", status: 503, body: "html" } },
  "HTTP 504": { fault: { kind: "status", status: 504 } },
  "HTTP 530": { fault: { kind: "status", status: 530 } },
  "HTTP 200 with a login page": { fault: { kind: "html" } },
  "HTTP 200, empty": { fault: { kind: "status", status: 200, body: "empty" } },
  "HTTP 200, other JSON": { fault: { kind: "wrong-envelope", body: {} } },
  "reset before the request is read": { fault: { kind: "reset-before" } },
  "connection refused": { detour: "http://127.0.0.1:9" },
  "no such host": { detour: "http://issuer.invalid" },
};
// The issuer has rotated the token, and its response is lost: this needs a grace period.
const LOST = {
  "reset after processing": { fault: { kind: "reset-after" } },
  "reset in the response": { fault: { kind: "reset-mid-body" } },
  "truncated response": { fault: { kind: "truncated-json" } },
};
// These take as long as the timeout, so there are fewer of them.
const SLOW = {
  "timeout, processed": { fault: { kind: "slow-headers", ms: 6000 } },
  "timeout, not processed": { silent: true },
};

const SIZES = {
  short: { batch: 25, slow: 2, lanes: 3 },
  long: { batch: 610, slow: 130, lanes: 6 },
};
/** Milliseconds; slow responses take longer. */
const TIMEOUT = 2500;
/** Grace period in seconds for lost responses: long enough for a busy machine, and common among issuers. */
const GRACE = 30;

/** @returns the rows of its table */
async function run({ size, say }) {
  const { batch, slow, lanes } = SIZES[size];
  const silence = await silentServer();
  const tally = new Tally();
  const trials = (kinds, most) =>
    Object.entries(kinds).map(([what, kind]) => ({
      what,
      ...kind,
      most,
      ...(kind.silent && { detour: silence.origin }),
    }));
  const work = async (lane, trial) => {
    tally.add(trial.what, await strike(lane, trial));
    if (size === "long") say(`${trial.what}: ${tally.of(trial.what).struck}`);
  };
  try {
    await Promise.all([
      inLanes(Math.ceil(lanes / 2), openLane, trials(UNTOUCHED, batch), work),
      inLanes(Math.ceil(lanes / 3), () => openLane({ grace: GRACE }), trials(LOST, batch), work),
      inLanes(lanes, () => openLane({ grace: GRACE, timeout: TIMEOUT }), shares(trials(SLOW, slow), lanes), work),
    ]);
  } finally {
    silence.close();
  }
  return rows(tally);
}

/** Splits batches over all lanes. */
function shares(trials, lanes) {
  const parts = Math.max(1, Math.floor(lanes / trials.length));
  return trials.flatMap((trial) =>
    Array.from({ length: parts }, () => ({ ...trial, most: Math.ceil(trial.most / parts) })),
  );
}

/** Triggers one fault repeatedly, then checks that the login still works. */
async function strike(lane, { what, fault, detour, most }) {
  const count = { struck: 0, valid: 0, errors: 0, refreshed: 0, logouts: 0, browsers: 0 };
  const crew = [await lane.worker(), await lane.worker()];
  lane.ledger.clear();
  if (fault) lane.sandbox.faults.add({ ...fault, path: "token", ...timesOf(fault) });
  for (let round = 0; count.struck < most; round++) {
    const calls = await askAged(lane, crew, { detour, isExpired: round % 2 === 0 });
    for (const call of calls) judge(what, count, call);
    count.struck = detour === undefined ? lane.ledger.struck().length : count.struck + calls.length;
  }
  lane.sandbox.faults.clear();
  count.logouts += await checkLogin(lane, crew, what);
  await Promise.all(crew.map((worker) => worker.end()));
  return count;
}

/** How often a fault applies. A lost response of an expired token is requested once more, and sometimes lost again; a slow one would outlast the grace period. */
function timesOf({ kind }) {
  if (kind === "slow-headers") return { every: 2 };
  return kind.startsWith("reset-") || kind === "truncated-json" ? { probability: 0.6 } : { times: 0 };
}

async function askAged(lane, crew, { detour, isExpired }) {
  const { tokens } = await lane.grant();
  if (isExpired) lane.epoch = tokens.expiresAt + 1000;
  // Valid for another ten seconds.
  else lane.epoch = tokens.expiresAt - 10_000;
  const valid = isExpired ? undefined : digest(tokens.accessToken.reveal());
  const answers = await Promise.all(crew.map((worker) => worker.ask({ epoch: lane.epoch, detour })));
  return answers.map((answer) => ({ answer, valid, isExpired }));
}

function judge(what, count, { answer, valid, isExpired }) {
  const { token, error, browsers } = answer;
  const found = () => `${what}: ${JSON.stringify(answer)}`;
  must(browsers === 0, () => `a browser was opened: ${found()}`);
  count.browsers += browsers;
  if (error) {
    must(isExpired, () => `an error although the token is valid: ${found()}`);
    must(
      error.class !== "auth" && error.class !== "store" && error.code !== "thrown",
      () => `a wrong error: ${found()}`,
    );
    count.errors++;
  } else if (token === valid) count.valid++;
  else {
    must(token !== undefined, () => `no answer: ${found()}`);
    count.refreshed++;
  }
}

/** The next refresh without a fault must work. @returns how many logins were lost */
async function checkLogin(lane, crew, what) {
  const before = await lane.check();
  must(!before.retired, () => `${what}: the login was retired: ${before.retired.reason}`);
  const rotations = lane.ledger.rotations().length;
  lane.epoch = before.tokens.expiresAt + 1000;
  const [answer] = await Promise.all(crew.map((worker) => worker.ask({ epoch: lane.epoch })));
  must(answer.token !== undefined, () => `${what}: no token afterwards: ${JSON.stringify(answer)}`);
  must((await lane.check()).generation === before.generation + 1, `${what}: no new generation afterwards`);
  // With so short a timeout, a busy machine may need a second request.
  const isOne = lane.ledger.rotations().length === rotations + 1;
  must(isOne || lane.timeout !== undefined, `${what}: several requests afterwards`);
  must(lane.ledger.refusals().length === 0, `${what}: a refresh token was refused`);
  return before.retired ? 1 : 0;
}

function rows(tally) {
  const fields = ["struck", "valid", "errors", "refreshed", "logouts", "browsers"];
  const kinds = [UNTOUCHED, LOST, SLOW].flatMap(Object.keys);
  const sums = kinds.map((kind) => fields.map((field) => tally.of(kind)[field]));
  const total = fields.map((_, at) => sums.reduce((sum, row) => sum + row[at], 0));
  return [...kinds.map((kind, at) => [kind, ...sums[at]]), ["all", ...total]];
}

/** Accepts connections and never responds. */
async function silentServer() {
  const sockets = new Set();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return { origin: `http://127.0.0.1:${server.address().port}`, close };
}
