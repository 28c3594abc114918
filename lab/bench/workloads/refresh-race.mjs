import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startSandbox } from "../../../dist/sandbox/index.js";
import { atMost, goalText } from "../lib/claims.mjs";
import { withHome } from "../lib/cli.mjs";
import { median, progress } from "../lib/compare.mjs";

export const title = "One refresh token, many processes";
export const shows =
  "Processes that share a login in files get a 401 at the same moment, from a server whose refresh tokens work " +
  "once: a second use ends the session. Each sends one request, refreshes on 401 and sends it again; a process " +
  "whose connection was closed starts again. The session is lost if a single process, an hour later, gets no " +
  "response without a new login. The official SDKs have no store: here their provider uses files that are replaced " +
  "atomically. It does not show machines that share a network drive.";

export const start = "not in the figures";

const HOUR_MS = 3_600_000;
/** The official SDKs log to stderr. */
const QUIET = { stdio: ["pipe", "pipe", "ignore"] };

export async function measure({ quick }) {
  const tables = [];
  for (const processes of [5, 20]) tables.push(await race(processes, quick ? 2 : 10));
  return tables;
}

async function race(processes, rounds) {
  const sides = [
    ["agentauth", "race-agentauth"],
    [`official client ${versionOf("client")}`, "race-client"],
    [`official SDK ${versionOf("sdk")}`, "race-sdk"],
  ].map(([name, script]) => ({ name, path: pathOf(`../sides/${script}.mjs`), results: [] }));
  for (let at = 1; at <= rounds; at++) {
    for (const { name, path, results } of sides) {
      progress(`  ${processes} processes, round ${at}/${rounds}: ${name}`);
      results.push(await round(path, processes));
    }
  }
  progress("");
  const [own] = sides;
  const claim = (what, value, goal) =>
    atMost(`${processes} processes refresh one login, ${what}`, "–", value, goal, { unit: "" });
  const claims = [
    claim("lost sessions", own.results.filter(({ lost }) => lost).length, 0),
    claim("token requests", median(own.results.map(({ requests }) => requests)), 1),
    claim(
      "processes without a response",
      own.results.reduce((sum, { failed }) => sum + failed, 0),
      0,
    ),
  ];
  return {
    caption: `${processes} processes, ${rounds} rounds`,
    header: [
      "side",
      "sessions lost",
      "goal",
      "token requests per round",
      "goal",
      "processes without a response",
      "goal",
    ],
    rows: sides.map(({ name, results }, at) => {
      const requests = results.map((result) => result.requests);
      const least = Math.min(...requests);
      const most = Math.max(...requests);
      const goals = claims.map((claim) => (at === 0 ? goalText(claim) : ""));
      return [
        name,
        `${results.filter(({ lost }) => lost).length} of ${rounds}`,
        goals[0],
        least === most ? String(most) : `${median(requests)} (${least} to ${most})`,
        goals[1],
        `${results.reduce((sum, { failed }) => sum + failed, 0)} of ${rounds * processes}`,
        goals[2],
      ];
    }),
    claims,
  };
}

/** Runs one race after a login; returns whether the session survived. */
function round(path, processes) {
  return withHome(async ({ AGENTAUTH_HOME: folder }) => {
    const sandbox = await startSandbox({ autoApprove: true, devices: 1, refreshReuseGraceSeconds: 0 });
    try {
      const go = async (count) => {
        // Only by the issuer's clock: the tokens look valid until the server rejects them.
        sandbox.clock.advance(2 * HOUR_MS);
        return answersOf(
          await Promise.all(Array.from({ length: count }, () => startRacer(path, sandbox.mcpUrl, folder))),
        );
      };
      const [code] = await once(spawn(process.execPath, [path, "login", sandbox.mcpUrl, folder], QUIET), "close");
      if (code !== 0) throw new Error(`${path} did not log in`);
      const before = sandbox.requests.total;
      const answers = await go(processes);
      const requests = sandbox.requests.slice(before).filter(({ path: asked }) => asked.endsWith("/token")).length;
      const [alone] = await go(1);
      return {
        requests,
        failed: answers.filter((answer) => answer !== "answered").length,
        lost: alone !== "answered",
      };
    } finally {
      await sandbox.close();
    }
  });
}

/** Starts a racer and waits until it has loaded everything. */
async function startRacer(path, mcpUrl, folder) {
  const child = spawn(process.execPath, [path, "race", mcpUrl, folder], QUIET);
  const closed = once(child, "close");
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk) => (text += chunk));
  await Promise.race([once(child.stdout, "data"), closed]);
  if (!text.startsWith("ready\n")) throw new Error(`${path} did not become ready`);
  return { go: () => child.stdin.end("go"), answer: closed.then(() => text.slice("ready\n".length).trim()) };
}

/** Starts all racers at once, and returns their outcomes. */
function answersOf(racers) {
  for (const { go } of racers) go();
  return Promise.all(racers.map(({ answer }) => answer));
}

function pathOf(relative) {
  return fileURLToPath(new URL(relative, import.meta.url));
}

function versionOf(name) {
  return JSON.parse(readFileSync(pathOf(`../../node_modules/@modelcontextprotocol/${name}/package.json`), "utf8"))
    .version;
}
