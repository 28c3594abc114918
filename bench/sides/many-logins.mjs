// A process that uses one of many stored logins: many-logins.mjs <home> <server> <profile> <rounds>
import { AgentClient } from "../../dist/index.js";
import { fileStore } from "../../dist/node/index.js";
import { median } from "../lib/compare.mjs";

const [home, server, profile, rounds] = process.argv.slice(2);
const store = fileStore(home);
const stored = new AgentClient({ store, profile });
const missing = new AgentClient({ store, profile: "nobody" });

/** The median of the milliseconds that a call takes. */
async function timed(call, times) {
  const taken = [];
  for (let nth = 0; nth < times; nth++) {
    const startedAt = performance.now();
    await call();
    taken.push(performance.now() - startedAt);
  }
  return median(taken);
}

const refused = () =>
  missing.token(server).then(
    () => Promise.reject(new Error("there is no such login")),
    (error) => (error.code === "login_required" ? undefined : Promise.reject(error)),
  );
const token = () => stored.token(server);
// Compiled before it is measured.
await timed(token, Number(rounds) / 10);
await timed(refused, Number(rounds) / 10);
console.log(
  JSON.stringify({
    hitMs: await timed(token, Number(rounds)),
    missMs: await timed(refused, Number(rounds)),
    listMs: await timed(() => stored.status(undefined, { all: true }), 3),
    logins: (await stored.status(undefined, { all: true })).length,
  }),
);
