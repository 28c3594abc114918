import { expect, it } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import { AgentClient } from "../../src/oauth/agent.js";
import { type KeepAliveOptions, type KeepAliveResult, keepAlive } from "../../src/oauth/keep-alive.js";
import type { Grant } from "../../src/oauth/model/grant.js";
import { Secret } from "../../src/redact.js";
import { grantStore } from "../../src/store/driver/grant-store.js";
import { memoryDriver } from "../../src/store/driver/memory-driver.js";
import { memoryStore } from "../../src/store/memory.js";
import { madeGrant } from "../helpers/grant.js";
import { heldError } from "../helpers/told.js";
import { TestTime } from "../store/driver/support.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Workers over one store and one issuer, whose time a test moves. */
function fleet(logins: number, { store = memoryStore(), ageMs = 0, issuers = 1 } = {}) {
  const time = new TestTime();
  const start = time.epoch();
  /** When each login was refreshed, by its name. */
  const refreshes = new Map<string, number[]>();
  const requests: number[] = [];
  const issuer = { answer: undefined as (() => Response) | undefined };
  const fetch = async (input: string | URL | Request, init?: RequestInit) => {
    requests.push(time.epoch());
    const special = issuer.answer?.();
    if (special !== undefined) return special;
    const name = new URLSearchParams(await new Request(input, init).text()).get("refresh_token")?.split(".")[0] ?? "";
    const all = refreshes.get(name) ?? [];
    refreshes.set(name, [...all, time.epoch()]);
    const nth = all.length + 1;
    const tokens = { access_token: `access.${name}.${nth}`, refresh_token: `${name}.${nth}` };
    return Response.json({ ...tokens, token_type: "Bearer", expires_in: 3600 });
  };
  const name = (nth: number) => `login${nth}`;
  const grantOf = (nth: number, over: Partial<Grant> = {}): Grant => {
    const issuedAt = start - ageMs;
    const at = `https://as${nth % issuers}.example`;
    const base = madeGrant({ profile: name(nth), issuer: at, signedInAt: issuedAt, ...over });
    const tokens = { ...base.tokens, refreshToken: new Secret(`${name(nth)}.0`), obtainedAt: issuedAt };
    return { ...base, tokens: { ...tokens, expiresAt: issuedAt + HOUR, ...over.tokens } };
  };
  const fill = async () => {
    for (let nth = 0; nth < logins; nth++) await store.save(grantOf(nth), undefined);
  };
  const results: KeepAliveResult[] = [];
  const worker = (options: Partial<KeepAliveOptions> = {}, random = Math.random) => {
    const end = new AbortController();
    const agent = new AgentClient({ store, clock: time.process(), fetch: fetch as typeof globalThis.fetch, random });
    const onResult = (result: KeepAliveResult) => void results.push(result);
    return { end, agent, kept: keepAlive(agent, { every: "24h", signal: end.signal, onResult, ...options }) };
  };
  /** A cron job. */
  const once = async (options: Partial<KeepAliveOptions> = {}) => {
    const { kept } = worker({ once: true, ...options });
    kept.catch(() => undefined);
    await time.advance(HOUR);
    return kept;
  };
  return { time, start, store, refreshes, requests, issuer, results, grantOf, fill, worker, once };
}

/** The most requests in one minute. */
function busiest(requests: readonly number[]): number {
  const minutes = new Map<number, number>();
  for (const at of requests) {
    const minute = Math.floor(at / MINUTE);
    minutes.set(minute, (minutes.get(minute) ?? 0) + 1);
  }
  return Math.max(...minutes.values());
}

it.each([
  ["that were all issued at once", 0],
  ["that nobody has refreshed for days", 2 * DAY],
])(
  "refreshes 800 logins %s once in the time, by three workers of which one ends, and spreads that",
  async (_, ageMs) => {
    const { time, start, refreshes, requests, fill, worker } = fleet(800, { ageMs });
    await fill();
    const workers = [1, 2, 3].map(() => worker({ every: "1h", perIssuer: 16 }));
    await time.advance(40 * MINUTE);
    workers[0]?.end.abort();
    await workers[0]?.kept;
    await time.advance(2 * HOUR);
    for (const { end } of workers) end.abort();
    const reports = await Promise.all(workers.map(({ kept }) => kept));
    expect(refreshes.size).toBe(800);
    const gaps = [...refreshes.values()].flatMap((all) => all.map((at, nth) => at - (all[nth - 1] ?? start - ageMs)));
    expect(Math.min(...gaps)).toBeGreaterThan(29 * MINUTE);
    // Those that were overdue had to wait for their turn.
    expect(Math.max(...gaps) - ageMs).toBeLessThan(70 * MINUTE);
    const minutes = ((requests.at(-1) ?? 0) - (requests[0] ?? 0)) / MINUTE;
    expect(busiest(requests)).toBeLessThanOrEqual((2 * requests.length) / minutes);
    expect(reports.reduce((sum, { refreshed }) => sum + refreshed, 0)).toBe(requests.length);
  },
  120_000,
);

it("keeps the Retry-After of an issuer, and asks another one meanwhile", async () => {
  const { time, start, requests, refreshes, issuer, results, fill, worker } = fleet(20, { ageMs: DAY, issuers: 2 });
  await fill();
  issuer.answer = () => {
    issuer.answer = undefined;
    return Response.json({ error: "temporarily_unavailable" }, { status: 429, headers: { "retry-after": "600" } });
  };
  const { end, kept } = worker({ every: "12h" });
  await time.advance(9 * MINUTE);
  const refused = results.find(({ outcome }) => outcome === "failed");
  expect(refused).toMatchObject({ error: { retryAfter: 600 } });
  expect(results.filter((one) => one.issuer === refused?.issuer)).toHaveLength(1);
  expect(refreshes.size).toBe(10);
  await time.advance(HOUR);
  end.abort();
  expect(await kept).toEqual({ refreshed: 20, needs_login: 0, failed: 1 });
  expect(Math.min(...requests.filter((at) => at > start + 9 * MINUTE))).toBeGreaterThanOrEqual(start + 10 * MINUTE);
});

it.each([
  ["by a store of one machine", memoryStore],
  ["by an engine", () => grantStore(memoryDriver(), { seal: "none" })],
])("shares the Retry-After of an issuer with the other workers %s", async (_, open) => {
  const { time, start, requests, issuer, results, fill, worker } = fleet(40, { store: open(), ageMs: DAY });
  await fill();
  const paused = { error: "temporarily_unavailable" };
  issuer.answer = () => Response.json(paused, { status: 503, headers: { "retry-after": "600" } });
  const workers = [0.1, 0.9].map((share) => worker({ every: "12h", perIssuer: 1 }, () => share));
  await time.advance(9 * MINUTE);
  expect(requests).toHaveLength(1);
  expect(results).toHaveLength(1);
  issuer.answer = undefined;
  // A worker that starts now has been answered nothing.
  workers.push(worker({ every: "12h", perIssuer: 1 }));
  await time.advance(2 * HOUR);
  for (const { end } of workers) end.abort();
  const reports = await Promise.all(workers.map(({ kept }) => kept));
  expect(reports.reduce((sum, { refreshed }) => sum + refreshed, 0)).toBe(40);
  expect(requests).toHaveLength(41);
  expect(requests[1]).toBeGreaterThanOrEqual(start + 10 * MINUTE);
});

it("reads the pause of an issuer from the store once in two seconds", async () => {
  const store = memoryStore();
  const { shortLived } = store;
  if (shortLived?.read === undefined) throw new TypeError("the store has no short-lived records");
  const { read } = shortLived;
  let reads = 0;
  shortLived.read = (id) => {
    reads++;
    return read(id);
  };
  const { refreshes, requests, fill, once } = fleet(300, { store, ageMs: 2 * DAY, issuers: 2 });
  await fill();
  await once({ every: "1h", perIssuer: 16 });
  expect(refreshes.size).toBe(300);
  const seconds = ((requests.at(-1) ?? 0) - (requests[0] ?? 0)) / 1000;
  expect(reads).toBeLessThanOrEqual(2 * (seconds / 2 + 1));
});

it("once says that the issuer asked another worker to wait", async () => {
  const { issuer, requests, results, fill, once } = fleet(3, { ageMs: DAY });
  await fill();
  issuer.answer = () => new Response("", { status: 429, headers: { "retry-after": "86400" } });
  expect(await once({ every: "12h", perIssuer: 1 })).toMatchObject({ failed: 3 });
  expect(await once({ every: "12h", perIssuer: 1 })).toMatchObject({ failed: 3 });
  // A pause of a day is kept by others for an hour.
  expect(requests).toHaveLength(2);
  expect(results).toHaveLength(6);
});

it("once refreshes what is due, of each tenant, and says what could not be refreshed", async () => {
  const store = grantStore(memoryDriver(), { seal: "none" });
  const { issuer, results, refreshes, grantOf, once } = fleet(0, { store, ageMs: 2 * DAY });
  const machine = { account: "grant:client_credentials:id" };
  const [one, other] = ["one", "other"].map((tenant) => store.for?.({ tenant }));
  await one?.save(grantOf(1), undefined);
  await other?.save(grantOf(2), undefined);
  const recent = grantOf(3);
  await one?.save({ ...recent, tokens: { ...recent.tokens, obtainedAt: Date.UTC(2030, 0, 1) - HOUR } }, undefined);
  await one?.save(grantOf(4, machine), undefined);
  await one?.save(grantOf(5, { retired: { at: 1, reason: "refused" } }), undefined);
  await store.save(grantOf(6), undefined);
  const tenants = async function* () {
    yield "one";
    yield "other";
  };
  issuer.answer = () => {
    issuer.answer = undefined;
    return Response.json({ error: "invalid_grant" }, { status: 400 });
  };
  expect(await once({ tenants, concurrency: 1 })).toEqual({
    refreshed: 1,
    needs_login: 1,
    failed: 0,
  });
  expect(results.map(({ tenant }) => tenant).sort()).toEqual(["one", "other"]);
  expect(refreshes.size).toBe(1);
  expect(await once({ tenants })).toEqual({ refreshed: 0, needs_login: 0, failed: 0 });
});

it("revokes what could not be revoked before, once in each pass, at an issuer that answers", async () => {
  const store = grantStore(memoryDriver(), { seal: "none" });
  const { time, requests, issuer, grantOf, worker } = fleet(0, { store });
  const endpoints = { ...grantOf(1).endpoints, revocation: "https://as.example/revoke" };
  for (const tenant of ["one", "other"]) await store.for?.({ tenant }).unrevoked?.add(grantOf(1, { endpoints }));
  issuer.answer = () => new Response("", { status: 503 });
  const { end, kept } = worker({ tenants: () => ["one", "other"] });
  await time.advance(2 * HOUR + MINUTE);
  // Two tokens of each login.
  expect(requests).toHaveLength(6);
  issuer.answer = () => new Response("");
  await time.advance(2 * HOUR);
  expect(requests).toHaveLength(10);
  end.abort();
  await kept;
});

it("ends with an error of a store that does not list what is to be revoked, unless it was to end anyway", async () => {
  let onList: () => void = () => undefined;
  const unrevoked = {
    add: () => Promise.reject(new Error("not used")),
    list: () => {
      onList();
      throw new AgentAuthError("store_failed", "cannot list", { class: "store" });
    },
  };
  const store = Object.assign(memoryStore(), { unrevoked });
  const { once, worker, time } = fleet(0, { store });
  expect(await heldError(once())).toMatchObject({ code: "store_failed", message: "cannot list" });
  const { end, kept } = worker({ once: true });
  onList = () => end.abort();
  await time.advance(MINUTE);
  expect(await kept).toEqual({ refreshed: 0, needs_login: 0, failed: 0 });
});

it("does not count the refresh as a use", async () => {
  const { store, start, grantOf, once } = fleet(0, { ageMs: 2 * DAY });
  await store.save(grantOf(1), undefined);
  await once();
  const used = [{ last_used_at: new Date(start - 2 * DAY).toISOString() }];
  for await (const { items } of store.connections()) expect(items).toMatchObject(used);
});

it("reads the logins again after the store did not answer; once, it fails", async () => {
  const store = memoryStore();
  const { connections } = store;
  let failures = 1;
  store.connections = (query) => {
    if (failures-- > 0) throw new AgentAuthError("store_unavailable", "no answer", { class: "unavailable" });
    return connections(query);
  };
  const { time, grantOf, worker, once } = fleet(0, { store, ageMs: 2 * DAY });
  await store.save(grantOf(1), undefined);
  const told: string[] = [];
  const { end, kept } = worker({ onStoreFailure: ({ code }) => told.push(code) });
  await time.advance(MINUTE);
  end.abort();
  expect(await kept).toMatchObject({ refreshed: 1 });
  expect(told).toEqual(["store_unavailable"]);
  failures = 1;
  await expect(once()).rejects.toMatchObject({ code: "store_unavailable" });
});

it.each([
  [{ every: "1s" as const }, /^every must be a time such as/],
  [{ every: "soon" as never }, /^every must be a time such as/],
  [{ jitter: 0.91 }, /^jitter must be a number from 0\.1 to 0\.9$/],
  [{ jitter: 0.09 }, /^jitter must be a number from 0\.1 to 0\.9$/],
  [{ concurrency: 0 }, /^concurrency must be a whole number above 0$/],
  [{ perIssuer: 1.5 }, /^perIssuer must be a whole number above 0$/],
  [{ tenants: () => ["acme"] }, /has no tenants/],
])("refuses %o", async (options, message) => {
  await expect(fleet(0).once(options)).rejects.toThrow(message);
});

it.each([{ jitter: 0.1 }, { jitter: 0.9 }, { concurrency: 1 }, { perIssuer: 1 }])("takes %o", async (options) => {
  expect(await fleet(0).once(options)).toEqual({ refreshed: 0, needs_login: 0, failed: 0 });
});
