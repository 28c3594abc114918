import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { AgentClient } from "../../../dist/index.js";
import { fileStore } from "../../../dist/node.js";
import { startSandbox } from "../../../dist/sandbox/index.js";
import { atMost, goalText } from "../lib/claims.mjs";
import { withHome } from "../lib/cli.mjs";
import { compare, progress } from "../lib/compare.mjs";
import { login } from "../lib/login.mjs";
import { duration, times } from "../lib/table.mjs";

export const title = "Many logins in one store";
export const shows =
  "Wall time of `agent.token()` with a valid stored token and of `agent.token()` without a login, and processor time of " +
  "a list of all logins, also against a loop that reads and parses the same files, with the longest time for which it keeps " +
  "the event loop, of the list of one profile, and of a page of one connection by its cursor, in one process with a store in " +
  "files, by the number of logins: of users with a profile each, and of users with an account each at one server; and the " +
  "first two with a store in memory. It does not show a cold disk.";

export const start = "not in the figures";

const SIDE = fileURLToPath(new URL("../sides/many-logins.mjs", import.meta.url));
const KEPT_APART_BY = ["profile", "account"];

export async function measure({ quick }) {
  const rounds = quick ? 1 : 5;
  const counts = quick ? [1, 100] : [1, 1000, 10_000];
  const tables = [];
  for (const member of KEPT_APART_BY) tables.push(await table(member, counts, rounds));
  return [...tables, await memoryTable(counts, rounds)];
}

async function memoryTable(counts, rounds) {
  const results = await withStores([1], "profile", ([{ home, server, profile }]) => {
    return compare(
      counts.map((count) => side(home, server, profile, count, count)),
      rounds,
    );
  });
  const last = results.at(-1);
  const what = `\`agent.token()\` without a login, ${last.name} others in memory`;
  const claims = [
    atMost(what, "one other", last.ratio("missMs"), 1.5),
    atMost(`a page of connections, ${last.name} others in memory`, "one other", last.ratio("pageMs"), 3),
  ];
  return {
    caption: `In memory, users with their own profile, ${rounds} rounds`,
    header: ["logins", "token()", "vs. 1", "without a login", "vs. 1", "a page", "vs. 1", "goal"],
    rows: results.map((result) => [
      result.name,
      `${(result.median("hitMs") * 1000).toFixed(0)} µs`,
      times(result.ratio("hitMs")),
      `${(result.median("missMs") * 1000).toFixed(0)} µs`,
      times(result.ratio("missMs")),
      `${(result.median("pageMs") * 1000).toFixed(0)} µs`,
      times(result.ratio("pageMs")),
      result === last ? claims.map(goalText).join(", ") : "",
    ]),
    claims,
  };
}

async function table(member, counts, rounds) {
  const results = await withStores(counts, member, async (stores) => {
    return compare(
      stores.map(({ home, server, profile }, at) => side(home, server, profile, counts[at])),
      rounds,
    );
  });
  const last = results.at(-1);
  const store = `in a store of ${last.name} logins by ${member}`;
  const claims = [
    atMost(`\`agent.token()\` ${store}`, "of one login", last.ratio("hitMs"), 1.2),
    atMost(`the list of logins ${store}, CPU`, "–", last.median("listMs") / 1000, 1, { unit: "s" }),
    atMost(`the list of logins ${store}, event loop`, "–", last.median("stillMs"), 60, { unit: "ms" }),
  ];
  // Those who have an account each have one profile.
  if (member === "profile")
    claims.push(atMost(`the list of one profile ${store}, CPU`, "–", last.median("ownMs"), 10, { unit: "ms" }));
  return {
    caption: `Users with their own ${member}, ${rounds} rounds`,
    header: [
      "logins",
      "token()",
      "vs. 1",
      "without a login",
      "vs. 1",
      "list, CPU",
      "vs. the loop",
      "waiting",
      "own, CPU",
      "goal",
    ],
    rows: results.map((result) => [
      result.name,
      `${(result.median("hitMs") * 1000).toFixed(0)} µs`,
      times(result.ratio("hitMs")),
      `${(result.median("missMs") * 1000).toFixed(0)} µs`,
      times(result.ratio("missMs")),
      duration(result.median("listMs")),
      times(result.median("listPerBare")),
      duration(result.median("stillMs")),
      duration(result.median("ownMs")),
      result === last ? claims.map(goalText).join(", ") : "",
    ]),
    claims,
  };
}

function side(home, server, profile, count, ...copies) {
  return {
    name: count.toLocaleString("en"),
    measure() {
      const child = spawnSync(process.execPath, [SIDE, home, server, profile, "1000", ...copies.map(String)], {
        encoding: "utf8",
      });
      if (child.status !== 0) throw new Error(`the side failed:\n${child.stderr}`);
      const result = JSON.parse(child.stdout);
      if (result.logins !== count) throw new Error(`${result.logins} logins are listed, expected ${count}`);
      return { ...result, listPerBare: result.listMs / result.bareMs };
    },
  };
}

/** Calls `work` with a store for each number of logins. */
async function withStores(counts, member, work, stores = []) {
  const [count, ...others] = counts;
  if (count === undefined) return work(stores);
  return withHome(async ({ AGENTAUTH_HOME: home }) => {
    return withStores(others, member, work, [...stores, await fill(home, count, member)]);
  });
}

/** Stores the login of a user, and copies of it for others. */
async function fill(home, count, member) {
  const store = fileStore(home);
  const sandbox = await startSandbox({ autoApprove: true, devices: 1 });
  try {
    await new AgentClient({ store, login }).token(sandbox.mcpUrl);
    const [grant] = await store.list();
    for (let nth = 1; nth < count; nth++) {
      if (nth % 500 === 0) progress(`  storing logins: ${nth} of ${count}`);
      await store.save({ ...grant, generation: 1, [member]: `user-${nth}` }, undefined);
    }
    return { home, server: sandbox.mcpUrl, profile: grant.profile };
  } finally {
    await sandbox.close();
  }
}
