import { startSandbox } from "../../../dist/sandbox/index.js";
import { atMost, goalText } from "../lib/claims.mjs";
import { compare } from "../lib/compare.mjs";
import { duration } from "../lib/table.mjs";
import * as agentauth from "../sides/first-token-agentauth.mjs";
import * as officialSdk from "../sides/first-token-official.mjs";

export const title = "First token and refresh";
export const shows =
  "Requests and wall time from nothing to the first answer of a protected MCP server, and of one refresh, against " +
  "the sandbox with 50 ms before every answer. Requests of the user's browser do not count. The official SDK does " +
  "not find this service's metadata by itself, so the benchmark redirects it. It does not show the time that a user " +
  "takes. A round trip of the login is a wait for one answer, or for several requests at once.";

export const start = "not in the figures";

const LATENCY = 50;

export async function measure({ quick }) {
  const rounds = quick ? 1 : 5;
  const results = await compare([side("official SDK, auth()", officialSdk), side("agentauth", agentauth)], rounds);
  const [official, own] = results;
  const claim = (what, key, goal) =>
    atMost(what, `official SDK: ${official.median(key)}`, own.median(key), goal, { unit: "" });
  const claims = [
    claim("the first token, requests", "requests", 7),
    claim("a refresh, requests", "refreshRequests", 1),
  ];
  const [login] = await compare([side("agentauth", agentauth, measureLogin)], rounds);
  const requests = login.median("requests");
  const trips = atMost("a first login, round trips", `${requests} requests`, login.median("trips"), 5, { unit: "" });
  claims.push(trips);
  return [
    {
      caption: `${LATENCY} ms per response, ${rounds} rounds`,
      header: ["side", "requests", "goal", "wall", "refresh: requests", "goal", "refresh: wall"],
      rows: results.map(({ name, median }, at) => [
        name,
        String(median("requests")),
        at === 1 ? goalText(claims[0]) : "",
        duration(median("wall")),
        String(median("refreshRequests")),
        at === 1 ? goalText(claims[1]) : "",
        duration(median("refreshWall")),
      ]),
      claims,
    },
    {
      caption: `A first login, ${LATENCY} ms per response, ${rounds} rounds`,
      header: ["side", "requests", "round trips", "goal", "wall"],
      rows: [["agentauth", String(requests), String(trips.value), goalText(trips), duration(login.median("wall"))]],
      claims: [],
    },
  ];
}

/** A side that starts without a login and a registration each time, at a new service. */
function side(name, { open }, measureAt = measureFirst) {
  return {
    name,
    async measure() {
      const sandbox = await startSandbox({ autoApprove: true, devices: 1 });
      try {
        // The sandbox creates its servers on first use: that time is not part of the measurement.
        await fetch(`${sandbox.authUrl(sandbox.ids.pool)}/jwks`);
        await fetch(sandbox.mcpUrl, { method: "POST" });
        sandbox.faults.add({ kind: "slow-headers", ms: LATENCY, times: 0 });
        return await measureAt(sandbox, open(sandbox.mcpUrl));
      } finally {
        await sandbox.close();
      }
    },
  };
}

async function measureFirst(sandbox, client) {
  const first = await counted(sandbox, () => client.firstCall());
  const refresh = await counted(sandbox, () => client.refresh());
  const { requests, wall } = first;
  return { requests, wall, refreshRequests: refresh.requests, refreshWall: refresh.wall };
}

/** A login, and how many of its requests, or groups of requests at once, wait for each other. */
async function measureLogin(sandbox, client) {
  const { fetch: send } = globalThis;
  let running = 0;
  let trips = 0;
  globalThis.fetch = async (input, init) => {
    if (String(input.url ?? input).includes("/authorize")) return send(input, init);
    if (running++ === 0) trips++;
    try {
      return await send(input, init);
    } finally {
      running--;
    }
  };
  try {
    const { requests, wall } = await counted(sandbox, () => client.login());
    return { requests, wall, trips };
  } finally {
    globalThis.fetch = send;
  }
}

async function counted(sandbox, work) {
  const before = sandbox.requests.total;
  const started = performance.now();
  await work();
  const wall = performance.now() - started;
  const own = sandbox.requests.slice(before).filter(({ path }) => !path.endsWith("/authorize"));
  return { requests: own.length, wall };
}
