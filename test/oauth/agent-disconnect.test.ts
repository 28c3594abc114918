import { expect, it } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import type { GrantStore } from "../../src/oauth/model/grant-store.js";
import { IDP_ACCOUNT } from "../../src/oauth/model/machine-grant.js";
import { pendingError } from "../helpers/captured.js";
import { madeGrant } from "../helpers/grant.js";
import { silence, startScene } from "../helpers/issuer.js";
import { until } from "../helpers/server.js";
import { stores } from "../store/stores.js";
import { HOUR, holdTokens, SIGNAL, TOKEN } from "./grant/support.js";

const REVOKE = "/pool/revoke";
const engines = stores.filter(([name]) => !name.includes("anew"));

it.each(engines)(
  "disconnects the logins of a profile, and revokes later what was not revoked: %s",
  async (_name, open) => {
    const { agent, issuer, mcp } = await startScene();
    const store = open();
    const of = (profile: string) => agent({ store, profile });
    for (const account of ["one", "two"]) await agent({ store, profile: "ann", loginHint: account }).login(mcp.url);
    await of("bob").login(mcp.url);
    issuer.routes[REVOKE] = { status: 503, text: "" };
    expect(await of("ann").disconnectAll()).toEqual({ removed: 2, revoked: 0, pending: 2 });
    for await (const { items } of store.connections()) expect(items.map(({ profile }) => profile)).toEqual(["bob"]);
    expect(await pendingError(of("ann").token(mcp.url, { login: false }))).toMatchObject({ code: "login_required" });
    expect(await of("bob").retryRevocations()).toEqual({ revoked: 0, pending: 2 });
    issuer.routes[REVOKE] = { status: 200 };
    const before = issuer.to(REVOKE).length;
    expect(await of("bob").retryRevocations()).toEqual({ revoked: 2, pending: 0 });
    const tokens = issuer
      .to(REVOKE)
      .slice(before)
      .map(({ body }) => new URLSearchParams(body).get("token"));
    expect(tokens.sort()).toEqual(["access-as-1", "access-as-2", "refresh-as-1", "refresh-as-2"]);
    expect(await of("bob").retryRevocations()).toEqual({ revoked: 0, pending: 0 });
    expect(await of("bob").disconnect(mcp.url)).toMatchObject({ removed: true, revoked: true });
    expect(await of("bob").retryRevocations()).toEqual({ revoked: 0, pending: 0 });
  },
);

it("asks an issuer that does not answer once, for all its logins", async () => {
  const { agent, issuer, mcp, store } = await startScene();
  for (let nth = 0; nth < 30; nth++) await agent({ loginHint: `user ${nth}` }).login(mcp.url);
  issuer.routes[REVOKE] = { status: 503, text: "" };
  expect(await agent().disconnectAll()).toEqual({ removed: 30, revoked: 0, pending: 30 });
  // Two tokens of those that were requested at the same time, and of one of the second attempt.
  expect(issuer.to(REVOKE).length).toBeLessThanOrEqual(18);
  expect(await store.list()).toEqual([]);
});

it("disconnects those of a tenant, or of one user, and of no others", async () => {
  const { agent, mcp } = await startScene();
  const open = engines.find(([name]) => name.startsWith("grantStore"))?.[1];
  const agents = agent({ store: open?.() ?? expect.fail("no engine") });
  const users = ["one", "two"].flatMap((tenant) => ["ann", "bob"].map((user) => ({ tenant, user })));
  for (const user of users) await agents.for(user).login(mcp.url);
  const left = async () => {
    const found = await Promise.all(users.map(async (user) => ({ user, logins: await agents.for(user).status() })));
    return found.flatMap(({ user: { tenant, user }, logins }) => logins.map(() => `${tenant} ${user}`));
  };
  const ann = agents.for({ tenant: "one", user: "ann" });
  const others = new TypeError("a client of one user disconnects no others: leave out tenant and profile");
  await expect(ann.disconnectAll({ profile: "bob" })).rejects.toThrow(others);
  await expect(ann.disconnectAll({ tenant: "two" })).rejects.toThrow(others);
  expect(await agents.disconnectAll()).toMatchObject({ removed: 0 });
  expect(await ann.disconnectAll()).toEqual({ removed: 1, revoked: 1, pending: 0 });
  expect(await left()).toEqual(["one bob", "two ann", "two bob"]);
  expect(await agents.disconnectAll({ tenant: "two", profile: "ann" })).toMatchObject({ removed: 1 });
  expect(await left()).toEqual(["one bob", "two bob"]);
  expect(await agents.disconnectAll({ tenant: "two" })).toMatchObject({ removed: 1 });
  expect(await left()).toEqual(["one bob"]);
});

it("waits for a refresh in flight, whose tokens are revoked too and reach no caller", async () => {
  const { agent, clock, issuer, mcp } = await startScene();
  await agent().login(mcp.url);
  await clock.sleep(HOUR, SIGNAL);
  const answer = holdTokens(issuer);
  const token = pendingError(agent().token(mcp.url, { login: false }));
  await until(() => issuer.to(TOKEN).length === 2);
  let isDisconnected = false;
  const ended = agent()
    .disconnect(mcp.url)
    .then(() => {
      isDisconnected = true;
    });
  await until(() => issuer.to(REVOKE).length === 2);
  expect(isDisconnected).toBe(false);
  answer();
  expect(await token).toMatchObject({ code: "login_required" });
  await ended;
  const tokens = issuer.to(REVOKE).map(({ body }) => new URLSearchParams(body).get("token"));
  expect(tokens).toEqual(["refresh-as-1", "access-as-1", "refresh-as-2", "access-as-2"]);
});

it("keeps what a refresh in flight got for a later revocation, if the issuer does not revoke it", async () => {
  const { agent, clock, issuer, mcp, store } = await startScene();
  await agent().login(mcp.url);
  await clock.sleep(HOUR, SIGNAL);
  issuer.routes[REVOKE] = { status: 503, text: "" };
  issuer.routes[TOKEN] = async (_request, nth) => {
    await store.remove({ profile: "default", server: mcp.url });
    return { json: issuer.tokens(nth) };
  };
  expect(await pendingError(agent().token(mcp.url, { login: false }))).toMatchObject({ code: "login_required" });
  issuer.routes[REVOKE] = { status: 200 };
  expect(await agent().retryRevocations()).toEqual({ revoked: 1, pending: 0 });
  expect(issuer.form(REVOKE).get("token")).toBe("refresh-as-2");
});

it("ends a login whose refresh cannot be waited for, and reports a bug of its store", async () => {
  const { agent, mcp, store } = await startScene();
  const failing = (error: Error): GrantStore => ({
    ...store,
    lease: (name, work, options) =>
      name.startsWith("refresh ") ? Promise.reject(error) : store.lease(name, work, options),
  });
  await agent().login(mcp.url);
  const busy = new AgentAuthError("lease_timeout", "another process holds it", { class: "unavailable" });
  expect(await agent({ store: failing(busy) }).disconnect(mcp.url)).toMatchObject({ removed: true, revoked: true });
  await agent().login(mcp.url);
  await expect(agent({ store: failing(new RangeError("oops")) }).disconnect(mcp.url)).rejects.toThrow("oops");
  expect(await store.list()).toEqual([]);
});

it.each(["disconnectAll", "retryRevocations"] as const)("stops when its signal fires: %s", async (method) => {
  const { agent, issuer, mcp, store } = await startScene();
  await agent().login(mcp.url);
  if (method === "retryRevocations") {
    issuer.routes[REVOKE] = { status: 503, text: "" };
    await agent().disconnect(mcp.url);
  }
  const requests = issuer.to(REVOKE).length;
  const end = new AbortController();
  const { connections, unrevoked } = store;
  const over = {
    connections(query: Parameters<typeof connections>[0]) {
      end.abort();
      return connections(query);
    },
    unrevoked: unrevoked && {
      ...unrevoked,
      list() {
        end.abort();
        return unrevoked.list();
      },
    },
  };
  expect(await pendingError(agent({ store: { ...store, ...over } })[method]({ signal: end.signal }))).toMatchObject({
    code: "aborted",
  });
  expect(issuer.to(REVOKE)).toHaveLength(requests);
});

it("reports a login that cannot be read after it has ended the others", async () => {
  const { agent, mcp, store } = await startScene();
  await agent().login(mcp.url);
  await store.save(madeGrant({ account: "broken" }), undefined);
  const { read } = store;
  store.read = async (key) => {
    const grant = await read(key);
    return key.account === "broken" && grant ? { ...grant, tokens: JSON.parse(JSON.stringify(grant.tokens)) } : grant;
  };
  expect(await pendingError(agent().disconnectAll())).toMatchObject({ code: "store_failed" });
  expect((await store.list()).map(({ account }) => account)).toEqual(["broken"]);
});

it("ends what a login at an identity provider got meanwhile", async () => {
  const { agent, mcp, store } = await startScene();
  await agent().login(mcp.url);
  await store.save(madeGrant({ server: "https://idp.example", account: IDP_ACCOUNT }), undefined);
  const { remove } = store;
  let isFirst = true;
  store.remove = async (key) => {
    if (isFirst) await store.save(madeGrant({ account: "late" }), undefined);
    isFirst = false;
    await remove(key);
  };
  expect(await agent().disconnectAll()).toMatchObject({ removed: 3 });
  expect(await store.list()).toEqual([]);
});

it("stops between two logins when its caller leaves", async () => {
  const { agent, mcp, issuer } = await startScene();
  await agent().login(mcp.url);
  issuer.routes[REVOKE] = silence;
  expect(await pendingError(agent().disconnectAll({ signal: AbortSignal.abort() }))).toMatchObject({ code: "aborted" });
  expect(await agent().status()).toHaveLength(1);
});
