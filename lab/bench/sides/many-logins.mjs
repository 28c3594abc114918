// A process that uses one of many stored logins: many-logins.mjs <home> <server> <profile> <rounds> [<count>]. With a count,
// the logins are that many copies of the stored one, in memory.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { AgentClient } from "../../../dist/index.js";
import { fileStore } from "../../../dist/node.js";
import { memoryStore } from "../../../dist/store/index.js";
import { median } from "../lib/compare.mjs";

const [home, server, profile, rounds, count] = process.argv.slice(2);
const store = count === undefined ? fileStore(home) : await inMemory(Number(count));
const stored = new AgentClient({ store, profile });
const missing = new AgentClient({ store, profile: "nobody" });

async function inMemory(copies) {
  const memory = memoryStore();
  const [grant] = await fileStore(home).list();
  const others = Array.from({ length: copies - 1 }, (_, nth) => ({ ...grant, profile: `user-${nth}` }));
  for (const one of [grant, ...others]) await memory.save({ ...one, generation: 1 }, undefined);
  return memory;
}

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

/** The median of the milliseconds of processor time that a call takes. */
async function busy(call, times) {
  const taken = [];
  for (let nth = 0; nth < times; nth++) {
    const { user, system } = process.cpuUsage();
    await call();
    const after = process.cpuUsage();
    taken.push((after.user - user + after.system - system) / 1000);
  }
  return median(taken);
}

/** The longest time for which other work of the process waits while a call goes on, in milliseconds. */
async function standstill(call) {
  let [longest, last, isDone] = [0, performance.now(), false];
  const look = () => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
    if (!isDone) setImmediate(look);
  };
  setImmediate(look);
  await call();
  isDone = true;
  look();
  return longest;
}

/** One page of connections after another, each asked for by the cursor of the one before. */
let cursor;
async function page() {
  const { value } = await store.connections({ limit: 1, cursor })[Symbol.asyncIterator]().next();
  ({ cursor } = value);
}

/** Reads the same files without a check. */
function readBare(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) readBare(path);
    else JSON.parse(readFileSync(path, "utf8"));
  }
}

const refused = () =>
  missing.token(server).then(
    () => Promise.reject(new Error("there is no such login")),
    (error) => (error.code === "login_required" ? undefined : Promise.reject(error)),
  );
const token = () => stored.token(server);
const own = () => stored.status();
const list = () => stored.status(undefined, { all: true });
// Compiled before it is measured.
await timed(token, Number(rounds) / 10);
await timed(refused, Number(rounds) / 10);
console.log(
  JSON.stringify({
    hitMs: await timed(token, Number(rounds)),
    missMs: await timed(refused, Number(rounds)),
    bareMs: await busy(() => readBare(join(home, "grants")), 3),
    listMs: await busy(list, 3),
    stillMs: await standstill(list),
    ownMs: await busy(own, 9),
    pageMs: await timed(page, Number(rounds)),
    logins: (await list()).length,
  }),
);
