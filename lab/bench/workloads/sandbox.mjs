import { readFileSync } from "node:fs";
import { Agent, get } from "node:http";
import { atLeast, goalText } from "../lib/claims.mjs";
import { median } from "../lib/compare.mjs";
import { startChild } from "../lib/process.mjs";

export const title = "The sandbox";
export const start = "not in the figures";
export const shows =
  "Requests for the metadata and for the keys of an authorization server that a second of CPU answers: the sandbox, which " +
  "checks, logs and can fault each request, against oidc-provider alone. The client is another process. It does not show " +
  "logins and tokens.";

const PATHS = { metadata: "/.well-known/oauth-authorization-server", keys: "/jwks" };

export function unavailable() {
  return process.platform === "linux" ? undefined : "it reads the CPU of another process from /proc";
}

export async function measure({ quick }) {
  const [requests, rounds] = quick ? [200, 2] : [2000, 7];
  const [sandbox, bare] = [await startChild("sandbox.mjs"), await startChild("oidc.mjs")];
  try {
    const sides = [
      { pid: bare.pid, base: bare.line },
      { pid: sandbox.pid, base: JSON.parse(sandbox.line).issuer },
    ];
    const rates = [];
    for (let round = 0; round <= rounds; round++) {
      const row = {};
      for (const [what, path] of Object.entries(PATHS)) {
        row[what] = [];
        for (const { pid, base } of sides) row[what].push(await rate(pid, base + path, requests));
      }
      // The first round warms up.
      if (round > 0) rates.push(row);
    }
    const claims = Object.keys(PATHS).map((what) => {
      const ratio = median(rates.map((row) => row[what][1] / row[what][0]));
      return atLeast(`sandbox, ${what} a second of CPU`, "oidc-provider alone", ratio, 0.8);
    });
    return [
      {
        caption: `${requests.toLocaleString("en")} requests each, ${rounds} rounds`,
        header: ["what", "oidc-provider", "sandbox", "sandbox vs. it", "goal"],
        rows: Object.keys(PATHS).map((what, at) => [
          what,
          ...[0, 1].map((side) => `${median(rates.map((row) => row[what][side])).toFixed(0)} / s`),
          `${claims[at].value.toFixed(2)}×`,
          goalText(claims[at]),
        ]),
        claims,
      },
    ];
  } finally {
    await sandbox.stop();
    await bare.stop();
  }
}

/** Requests per second of CPU of the server's process. */
async function rate(pid, url, requests) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const before = cpuOf(pid);
  for (let sent = 0; sent < requests; sent++) await read(url, agent);
  const spent = cpuOf(pid) - before;
  agent.destroy();
  return requests / spent;
}

function read(url, agent) {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`${url}: HTTP ${response.statusCode}`));
      response.resume().on("end", resolve);
    });
    request.on("error", reject);
  });
}

/** Seconds of CPU of a process so far (proc(5): utime and stime, in hundredths). */
function cpuOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}
