import { expect, it } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import { AgentClient } from "../../src/oauth/agent.js";
import { type KeepAliveOptions, type KeepAliveResult, keepAlive } from "../../src/oauth/keep-alive.js";
import type { Grant } from "../../src/oauth/model/grant.js";
import type { GrantStore } from "../../src/oauth/model/grant-store.js";
import { Secret } from "../../src/redact.js";
import { grantStore, openGrantStore } from "../../src/store/driver/grant-store.js";
import { memoryDriver } from "../../src/store/driver/memory-driver.js";
import { memoryStore } from "../../src/store/memory.js";
import { madeGrant } from "../helpers/grant.js";
import { rejection } from "../helpers/service.js";
import { faulty, TestTime } from "../store/driver/support.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const NONE_OVERDUE = { count: 0, oldest: null, by_issuer: {} };

interface FleetOptions {
  store?: GrantStore;
  ageMs?: number;
  issuers?: number;
}

/** A store in an engine, both of which have the time of the test. */
function engineStore(time: TestTime): GrantStore {
  return openGrantStore(faulty(memoryDriver({ clock: time })), { seal: "none" }, { clock: time.process() });
}

/** Workers over one store and one issuer, whose time a test moves. */
function fleet(logins: number, { store: given, ageMs = 0, issuers = 1 }: FleetOptions = {}) {
  const time = new TestTime();
  const store = given ?? engineStore(time);
  const start = time.epoch();
  /** When each login was refreshed, by its name. */
  const refreshes = new Map<string, number[]>();
  const requests: number[] = [];
  const issuer = { answer: undefined as ((name: string) => Response | Promise<Response> | undefined) | undefined };
  const fetch = async (input: string | URL | Request, init?: RequestInit) => {
    requests.push(time.epoch());
    const name = new URLSearchParams(await new Request(input, init).text()).get("refresh_token")?.split(".")[0] ?? "";
    const special = await issuer.answer?.(name);
    if (special !== undefined) return special;
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
  return { time, start, store, refreshes, requests, issuer, results, grantOf, fill, worker, once, name };
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
  ["that was not refreshed for days", 2 * DAY],
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
    expect(Math.max(...gaps) - ageMs).toBeLessThan(60 * MINUTE);
    const minutes = ((requests.at(-1) ?? 0) - (requests[0] ?? 0)) / MINUTE;
    expect(busiest(requests)).toBeLessThanOrEqual((2 * requests.length) / minutes);
    expect(reports.reduce((sum, { refreshed }) => sum + refreshed, 0)).toBe(requests.length);
  },
  120_000,
);

const FAILURES: Record<string, (time: TestTime) => Promise<Response>> = {
  "answer 503": async () => new Response("", { status: 503 }),
  hang: async (time) => {
    await time.process().sleep(30_000, new AbortController().signal);
    throw new DOMException("The operation was aborted due to timeout", "TimeoutError");
  },
  refuse: async () => {
    throw new TypeError("fetch failed", { cause: Object.assign(new Error("no"), { code: "ECONNREFUSED" }) });
  },
  drop: async () => {
    throw new TypeError("fetch failed", { cause: Object.assign(new Error("no"), { code: "ECONNRESET" }) });
  },
};
const LOGINS = 300;

it.each([...[0, 5, 12, 50, 90].map((percent) => [percent, "fail in each way", 1] as const), [12, "hang", 2] as const])(
  "of 300 logins, %i percent of which are at issuers that %s, refreshes each healthy one in each period by %i workers",
  async (percent, how, count) => {
    const issuers = 30;
    const { time, start, refreshes, issuer, requests, fill, worker, name } = fleet(LOGINS, { issuers });
    await fill();
    const ways = FAILURES[how] ? [FAILURES[how]] : Object.values(FAILURES);
    const failing = new Map<string, (time: TestTime) => Promise<Response>>();
    for (let nth = 0; nth < LOGINS; nth++) {
      const [at, way] = [nth % issuers, ways[(nth % issuers) % ways.length]];
      if (way && at < (percent * issuers) / 100) failing.set(name(nth), way);
    }
    issuer.answer = (login) => failing.get(login)?.(time);
    const workers = Array.from({ length: count }, () => worker({ every: "2h" }));
    await time.advance(4.5 * HOUR);
    for (const { end } of workers) end.abort();
    await time.advance(MINUTE);
    const reports = await Promise.all(workers.map(({ kept }) => kept));
    expect(refreshes.size).toBe(LOGINS - failing.size);
    const gaps = [...refreshes.values()].flatMap((all) => all.map((at, nth) => at - (all[nth - 1] ?? start)));
    const last = [...refreshes.values()].map((all) => start + 4.5 * HOUR - (all.at(-1) ?? start));
    expect(Math.max(...gaps, ...last)).toBeLessThanOrEqual(2 * HOUR);
    expect(Math.min(...gaps)).toBeGreaterThan(0.99 * HOUR);
    for (const { overdue } of reports) expect(overdue.count).toBe(failing.size);
    if (percent === 0) expect(busiest(requests)).toBeLessThanOrEqual(10);
    // A minute, two, four, … up to half an hour, for which an issuer that fails is left alone.
    expect(requests.length).toBeLessThan(3.5 * LOGINS + count * 13 * failing.size);
  },
  300_000,
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
  const refused = results.find(({ outcome }) => outcome === "overdue");
  expect(refused).toMatchObject({ error: { retryAfter: 600 } });
  expect(results.filter((one) => one.issuer === refused?.issuer)).toHaveLength(10);
  expect(refreshes.size).toBe(10);
  await time.advance(HOUR);
  end.abort();
  expect(await kept).toEqual({ refreshed: 20, needs_login: 0, overdue: NONE_OVERDUE });
  expect(Math.min(...requests.filter((at) => at > start + 9 * MINUTE))).toBeGreaterThanOrEqual(start + 10 * MINUTE);
});

it.each([
  ["by a store of one machine", { store: memoryStore() }, 80],
  ["by an engine", {}, 40],
])("shares the Retry-After of an issuer with the other workers %s", async (_, options, overdue) => {
  const { time, start, requests, issuer, results, fill, worker } = fleet(40, { ...options, ageMs: DAY });
  await fill();
  const paused = { error: "temporarily_unavailable" };
  issuer.answer = () => Response.json(paused, { status: 503, headers: { "retry-after": "600" } });
  const workers = [0.1, 0.9].map((share) => worker({ every: "12h", perIssuer: 1 }, () => share));
  await time.advance(9 * MINUTE);
  expect(requests).toHaveLength(1);
  // Each process counts for itself what it has planned in its memory.
  expect(results).toHaveLength(overdue);
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
  for (let runs = 0; runs < 2; runs++) {
    const { overdue } = await once({ every: "12h", perIssuer: 1 });
    expect(overdue).toEqual({ count: 3, oldest: "2029-12-31T00:00:00.000Z", by_issuer: { "https://as0.example": 3 } });
  }
  expect(requests).toHaveLength(1);
  expect(results.map(({ outcome, error }) => [outcome, error?.retryAfter])).toEqual(
    Array.from({ length: 3 }, () => ["overdue", 86400]),
  );
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
    overdue: NONE_OVERDUE,
  });
  expect(results.map(({ tenant }) => tenant).sort()).toEqual(["one", "other"]);
  expect(refreshes.size).toBe(1);
  expect(await once({ tenants })).toEqual({ refreshed: 0, needs_login: 0, overdue: NONE_OVERDUE });
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
  expect(await rejection(once())).toMatchObject({ code: "store_failed", message: "cannot list" });
  const { end, kept } = worker({ once: true });
  onList = () => end.abort();
  await time.advance(MINUTE);
  expect(await kept).toEqual({ refreshed: 0, needs_login: 0, overdue: NONE_OVERDUE });
});

it.each([
  ["without an end", undefined, 5],
  ["until its access token ends", 3 * HOUR, 185],
])("tries a login whose refresh was lost again after a pause, or, %s", async (_, expiresMs, minutes) => {
  const { time, start, store, requests, refreshes, issuer, grantOf, worker } = fleet(0, { ageMs: DAY });
  const { tokens } = grantOf(1);
  const expiresAt = expiresMs === undefined ? undefined : start + expiresMs;
  await store.save({ ...grantOf(1), tokens: { ...tokens, expiresAt } }, undefined);
  issuer.answer = () => FAILURES["drop"]?.(time);
  const { end, kept } = worker({ every: "24h" });
  await time.advance(MINUTE);
  issuer.answer = undefined;
  const sent = requests.length;
  await time.advance((minutes - 2) * MINUTE - (expiresMs === undefined ? 2 * MINUTE : 5 * MINUTE));
  if (expiresMs !== undefined) expect(requests).toHaveLength(sent);
  await time.advance(10 * MINUTE);
  expect(refreshes.get("login1")).toHaveLength(1);
  end.abort();
  expect(await kept).toMatchObject({ refreshed: 1, overdue: NONE_OVERDUE });
});

it("does not count the refresh as a use", async () => {
  const { store, start, grantOf, once } = fleet(0, { ageMs: 2 * DAY });
  await store.save(grantOf(1), undefined);
  await once();
  const used = [{ last_used_at: new Date(start - 2 * DAY).toISOString() }];
  for await (const { items } of store.connections()) expect(items).toMatchObject(used);
});

it("plans few logins of a full store at once, and counts no more of them than it needs", async () => {
  const { time, store, fill, worker } = fleet(300);
  await fill();
  if (store.due === undefined) throw new Error("it has no due logins");
  const due = { ...store.due };
  const [planning, counted] = [[0], new Set<number | undefined>()];
  let active = 0;
  const plan: typeof due.plan = async (...args) => {
    planning.push(++active);
    return due.plan(...args).finally(() => active--);
  };
  const next: typeof due.next = (until, limit, countTo) => {
    counted.add(countTo);
    return due.next(until, limit, countTo);
  };
  Object.assign(store.due, { plan, next });
  const { end, kept } = worker();
  await time.advance(MINUTE);
  end.abort();
  await kept;
  expect([planning.length, Math.max(...planning)]).toEqual([301, 100]);
  expect([...counted]).toEqual([(DAY * 0.5) / 6000]);
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
  const reported: string[] = [];
  const { end, kept } = worker({ onStoreFailure: ({ code }) => reported.push(code) });
  await time.advance(MINUTE);
  end.abort();
  expect(await kept).toMatchObject({ refreshed: 1 });
  expect(reported).toEqual(["store_unavailable"]);
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
  await expect(fleet(0, { store: memoryStore() }).once(options)).rejects.toThrow(message);
});

it.each([{ jitter: 0.1 }, { jitter: 0.9 }, { concurrency: 1 }, { perIssuer: 1 }])("takes %o", async (options) => {
  expect(await fleet(0).once(options)).toEqual({ refreshed: 0, needs_login: 0, overdue: NONE_OVERDUE });
});
