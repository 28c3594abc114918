import { type HostileCase, unless, WHOLE_LOGIN } from "../case.js";
import { request, sendRaw, targetOf } from "../kit/forger.js";
import type { Kit } from "../kit/kit.js";
import { logsIn, type User } from "../kit/user.js";
import type { Run } from "../kit/watched.js";

/** Number of logins; `npm run hostile -- --long` runs 1,000. */
const LOGINS = Number(process.env["HOSTILE_LOGINS"] ?? 20);
/** Logins at the same time. */
const WIDTH = 4;
/** Forged callbacks before the user logs in; the flood continues until the login ends. */
const FORGED = 60;
const EVERY_MS = 10;

/** Logs in during 100 forged callbacks a second. */
const logsInDuringFlood: User = async (url, kit) => {
  const target = targetOf(url);
  let answered = 0;
  const forge = async () => {
    const page = await sendRaw(target.port, request(target, `/callback?code=forged&state=${Math.random()}`));
    if (page.startsWith("HTTP/1.1 400")) answered++;
  };
  const timer = setInterval(() => void forge(), EVERY_MS);
  while (answered < FORGED) await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  await logsIn(url, kit);
  clearInterval(timer);
};

async function logInRepeatedly(kit: Kit): Promise<Run> {
  const runs: Run[] = [];
  const worker = async () => {
    while (runs.length < LOGINS) {
      const nth = runs.push(undefined as never);
      const env = { AGENTAUTH_HOME: `${kit.home}/${nth}` };
      runs[nth - 1] = await kit.run(["login", kit.mcp.url, "--browser", "none"], { env, user: logsInDuringFlood });
    }
  };
  const { mkdirSync } = await import("node:fs");
  mkdirSync(kit.home, { mode: 0o700 });
  await Promise.all(Array.from({ length: WIDTH }, worker));
  return runs.find(({ code }) => code !== 0) ?? (runs[0] as Run);
}

/** A flood of forged callbacks does not end a login. */
export const flood: readonly HostileCase[] = [
  {
    id: "C26",
    input: "100 forged callbacks a second, during each of 20 logins (1,000 with --long)",
    result: "rejected and reported; every login succeeds",
    outcome: "ok",
    drive: logInRepeatedly,
    requests: WHOLE_LOGIN,
    times: { "as POST /pool/token": LOGINS },
    says: ["probing port"],
    seconds: 60,
    limit: 120 + 3 * LOGINS,
    check: ({ runs }) =>
      unless({
        [`all ${LOGINS} logins succeed`]: runs.length === LOGINS && runs.every(({ code }) => code === 0),
        "each run reports it once": runs.every(({ stderr }) => stderr.split("is probing port").length === 2),
      }),
  },
];
