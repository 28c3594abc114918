// A process that requests the tokens of users through one of the sides.

import Redis from "ioredis";
import { digest, pause } from "../../tools.mjs";
import { SIDES } from "./sides.mjs";

const settings = JSON.parse(process.argv[2]);
const CALLS_AT_ONCE = 4;
const RETRY_MS = 100;
let ahead = 0;
let still = false;
let go = () => {};
const realNow = Date.now;

/** Pauses right before a token request, if the message says so. */
async function send(input, init) {
  if (!still || (init?.method ?? input.method) !== "POST") return fetch(input, init);
  still = false;
  const released = new Promise((resolve) => {
    go = resolve;
  });
  process.send({ kind: "at", stage: "sending" });
  await released;
  // The sandbox has closed the idle connection; most issuers leave theirs open for longer.
  return fetch(input, init).catch(() => fetch(input, init));
}

const redis = new Redis(settings.address.port, "127.0.0.1", { keyPrefix: `${settings.tenant}:` });
const token = await SIDES[settings.side].open({ ...settings, redis, fetch: send, now: () => realNow() + ahead });

/** Requests the tokens, each one again until it succeeds or has failed `tries` times. */
async function ask({ id, profiles, tries }) {
  const [tokens, errors, waits] = [{}, {}, []];
  const cpu = process.cpuUsage();
  const queue = [...profiles];
  const work = async () => {
    for (let profile = queue.shift(); profile !== undefined; profile = queue.shift()) {
      const started = performance.now();
      for (let left = tries; left > 0 && tokens[profile] === undefined; left--) {
        try {
          tokens[profile] = digest(await token(profile));
        } catch (error) {
          errors[profile] = String(error?.message);
          if (left > 1) await pause(RETRY_MS);
        }
      }
      waits.push(performance.now() - started);
    }
  };
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, work));
  const { user, system } = process.cpuUsage(cpu);
  process.send({ kind: "answer", id, tokens, errors, waits, cpu: (user + system) / 1000 });
}

process.on("message", (message) => {
  if (message.kind === "go") return go();
  ahead = message.ahead;
  still = message.still === true;
  void ask(message);
});
process.on("disconnect", () => process.exit(0));
process.send({ kind: "ready" });
