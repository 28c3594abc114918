import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { type Clock, systemClock } from "../../src/http/deadline.js";
import { AgentClient } from "../../src/oauth/agent.js";
import { keepAlive } from "../../src/oauth/keep-alive.js";
import type { GrantStore } from "../../src/oauth/model/grant-store.js";
import { Secret } from "../../src/redact.js";
import { grantStore } from "../../src/store/driver/grant-store.js";
import { storeSql } from "../../src/store/postgres/store-sql.js";
import { compile, startChild } from "../helpers/child.js";
import { madeGrant } from "../helpers/grant.js";
import { HAS_REDIS, startRedis } from "../helpers/redis-server.js";
import { migrate } from "../store/postgres/migrate.js";
import { MISSING_SERVER, startPostgres } from "../store/postgres/postgres-server.js";
import { type EngineAddress, openEngine } from "./keep-alive-engine.js";

/** `KEEP_ALIVE_LOGINS=10000 KEEP_ALIVE_EVERY_S=600` is a run of ten minutes, and prints what it counted. */
const LOGINS = Number(process.env["KEEP_ALIVE_LOGINS"] ?? 300);
const EVERY_S = Number(process.env["KEEP_ALIVE_EVERY_S"] ?? 20);
const WORKERS = 3;
/** Every eighth login is at an issuer that answers 503. */
const FAILING = 8;

interface Engine {
  readonly at: EngineAddress;
  kill(): Promise<void>;
  restart(): Promise<void>;
}

const ENGINES = {
  redis: async (): Promise<Engine> => {
    const redis = await startRedis();
    onTestFinished(() => redis.close());
    return { at: redis.port, kill: () => redis.kill("SIGKILL"), restart: redis.restart };
  },
  postgres: async (): Promise<Engine> => {
    const postgres = await startPostgres();
    onTestFinished(() => postgres.close());
    await migrate(postgres.options, storeSql());
    return { at: postgres.options, kill: postgres.kill, restart: postgres.start };
  },
};

/** How to save logins at an issuer. */
function loginsAt(issuer: string, store: GrantStore, obtainedAt: number) {
  const server = issuer.replace("127.0.0.1", "localhost");
  // All have the same access token at first, and end only by their refresh tokens.
  const base = madeGrant({ server: `${server}/mcp`, resource: `${server}/mcp`, issuer, signedInAt: obtainedAt });
  return (nth: number, isFailing: boolean) => {
    const refreshToken = new Secret(`login${nth}.0`);
    const tokens = { ...base.tokens, refreshToken, obtainedAt, expiresAt: obtainedAt };
    const endpoints = { ...base.endpoints, token: `${issuer}/${isFailing ? "down" : "token"}` };
    const by = isFailing ? `${issuer}/down` : issuer;
    const client = { ...base.client, issuer: by };
    return store.save({ ...base, issuer: by, profile: `user${nth}`, endpoints, client, tokens }, undefined);
  };
}

/** An issuer that rotates refresh tokens, and answers the same once more to a token that it has just rotated. */
async function startIssuer() {
  const current = new Map<string, number>();
  const refreshed = new Map<string, number[]>();
  const doubtful = { repeated: 0, refused: 0, unavailable: 0 };
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      if (request.url === "/down") {
        doubtful.unavailable++;
        response.writeHead(503).end();
        return;
      }
      const [name = "", nth = "0"] = new URLSearchParams(body).get("refresh_token")?.split(".") ?? [];
      response.setHeader("content-type", "application/json");
      const used = Number(nth);
      const newest = current.get(name) ?? 0;
      if (used === newest) {
        current.set(name, used + 1);
        refreshed.set(name, [...(refreshed.get(name) ?? []), Date.now()]);
      } else if (used === newest - 1) doubtful.repeated++;
      else {
        doubtful.refused++;
        response.writeHead(400).end(JSON.stringify({ error: "invalid_grant" }));
        return;
      }
      const tokens = { access_token: `access.${name}.${nth}`, refresh_token: `${name}.${used + 1}` };
      response.end(JSON.stringify({ ...tokens, token_type: "Bearer", expires_in: 5 }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { issuer, refreshed, doubtful };
}

const engines = [
  ["redis", HAS_REDIS],
  ["postgres", MISSING_SERVER === ""],
] as const;

it.each(engines)(
  "three workers over %s of which one is killed refresh each login exactly once in the time, though an issuer fails",
  async (engine, isThere) => {
    if (!isThere) return;
    const { at } = await ENGINES[engine]();
    const { driver, close } = await openEngine(at);
    onTestFinished(async () => void (await close()));
    const store = grantStore(driver, { seal: "none" });
    const { issuer, refreshed, doubtful } = await startIssuer();
    const begun = Date.now();
    const obtainedAt = begun - (begun % 1000);
    const save = loginsAt(issuer, store, obtainedAt);
    for (let nth = 0; nth < LOGINS; nth += 100)
      await Promise.all(
        Array.from({ length: Math.min(100, LOGINS - nth) }, (_, of) => save(nth + of, (nth + of) % FAILING === 0)),
      );
    const worker = await compile(new URL("./keep-alive-worker.ts", import.meta.url));
    const workers = Array.from({ length: WORKERS }, () => startChild(worker, { at, every: `${EVERY_S}s` }));
    await Promise.all(workers.map((one) => one.hears("ready")));
    const [killed, ...others] = workers;
    // In the middle of the part of the time over which the refreshes are spread.
    await sleep(obtainedAt + EVERY_S * 750 - Date.now());
    await killed?.kill("SIGKILL");
    // A lease of the one that was killed, and a machine that is busy.
    const deadline = Date.now() + EVERY_S * 1000 + 30_000;
    const healthy = LOGINS - Math.ceil(LOGINS / FAILING);
    while (refreshed.size < healthy && Date.now() < deadline) await sleep(100);
    const took = Date.now() - obtainedAt;
    await Promise.all(others.map((one) => one.kill("SIGTERM")));
    await Promise.all(others.map((one) => one.hears("ended")));
    const first = [...refreshed.values()].map(([at = 0]) => at).sort((one, other) => one - other);
    const second = [...refreshed.values()].flatMap(([one = 0, other]) => (other === undefined ? [] : other - one));
    expect({ logins: refreshed.size, refused: doubtful.refused }).toEqual({ logins: healthy, refused: 0 });
    // What the one that was killed had in flight is in doubt.
    expect(doubtful.repeated).toBeLessThanOrEqual(16);
    // No login came twice within the shortest time between two turns.
    expect(Math.min(EVERY_S * 1000, ...second)).toBeGreaterThan(EVERY_S * 500 - 2000);
    const [from = 0] = first;
    const span = (first.at(-1) ?? 0) - from + 1;
    const tenth = (at: number) => Math.floor(((at - from) / span) * 10);
    const bins = Array.from({ length: 10 }, (_, nth) => first.filter((at) => tenth(at) === nth).length);
    const seconds = Array.from({ length: Math.ceil(span / 1000) }, () => 0);
    for (const at of first)
      seconds[Math.floor((at - from) / 1000)] = (seconds[Math.floor((at - from) / 1000)] ?? 0) + 1;
    const perSecond = { most: Math.max(...seconds), mean: Math.round((10_000 * LOGINS) / span) / 10 };
    // Twice is promised of a minute, and shown in process; here a worker that a busy machine holds up for two seconds catches up.
    expect(Math.max(...bins)).toBeLessThanOrEqual((3 * healthy) / bins.length);
    if (process.env["KEEP_ALIVE_LOGINS"])
      process.stderr.write(`${JSON.stringify({ took, span, bins, perSecond, second: second.length, ...doubtful })}\n`);
  },
  EVERY_S * 2000 + 120_000,
);

it.each(engines)(
  "the restart of %s costs a worker seconds, and no login",
  async (engine, isThere) => {
    if (!isThere) return;
    const { at, kill, restart } = await ENGINES[engine]();
    const { driver, close } = await openEngine(at);
    onTestFinished(async () => void (await close()));
    const store = grantStore(driver, { seal: "none" });
    const { issuer, refreshed, doubtful } = await startIssuer();
    const save = loginsAt(issuer, store, Date.now() - 60_000);
    for (let nth = 0; nth < 30; nth++) await save(nth, false);
    // What the worker sleeps after each failure of the store.
    const pauses: number[] = [];
    let isPause = false;
    let restarted: Promise<void> | undefined;
    const clock: Clock = {
      ...systemClock,
      sleep: (ms, signal) => {
        if (isPause) pauses.push(ms);
        isPause = false;
        return systemClock.sleep(ms, signal);
      },
    };
    const end = new AbortController();
    const onStoreFailure = () => {
      isPause = true;
      restarted ??= restart();
    };
    const agent = new AgentClient({ store, clock });
    const kept = keepAlive(agent, { every: "20s", signal: end.signal, onStoreFailure });
    const until = async (count: number) => {
      while (refreshed.size < count) await sleep(20);
    };
    await until(5);
    await kill();
    await until(30);
    end.abort();
    await kept;
    await restarted;
    expect(doubtful.refused).toBe(0);
    // The first ones; a busy machine may need another to start the engine.
    expect(pauses.slice(0, 2)).toEqual([1000, 2000].slice(0, pauses.length));
    expect(pauses.reduce((sum, ms) => sum + ms, 0)).toBeLessThan(30_000);
  },
  120_000,
);
