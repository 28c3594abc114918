import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import type { HttpEvent } from "../../../src/http/buffered-response.js";
import type { AgentClientOptions } from "../../../src/oauth/agent.js";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import { memoryStore } from "../../../src/store/memory.js";
import { type AgentEvent, EVENTS, type EventName } from "../../../src/telemetry/events.js";
import { type Reply, reset, startScene } from "../../helpers/issuer.js";

const SIGNAL = new AbortController().signal;
const TOKEN = "/pool/token";
const HOUR = 3_600_000;

function isOfAgent(event: AgentEvent | HttpEvent): event is AgentEvent {
  return event.type in EVENTS;
}

/** A scene with a stored login, and the events of what is done there. */
async function loggedIn(over: Partial<AgentClientOptions> = {}) {
  const scene = await startScene();
  const store = memoryStore();
  const events: AgentEvent[] = [];
  const onEvent = (event: AgentEvent | HttpEvent) => isOfAgent(event) && events.push(event);
  const agentWith = (more: Partial<AgentClientOptions> = {}) => scene.agent({ store, onEvent, ...over, ...more });
  await agentWith().login(scene.mcp.url);
  const issuer = scene.issuer.issuer;
  const details = { issuer, server: scene.mcp.origin };
  /** The events of some types since the last call, without how long each took. */
  const take = (...types: EventName[]) =>
    events
      .splice(0)
      .filter(({ type }) => types.includes(type))
      .map((event) => Object.fromEntries(Object.entries(event).filter(([name]) => name !== "durationMs")));
  return {
    ...scene,
    store,
    details,
    take,
    agentWith,
    agent: agentWith({ login: undefined }),
    expire: () => scene.clock.sleep(HOUR, SIGNAL),
  };
}

describe("the events of an agent client", () => {
  it("say that a user logged in, and that later tokens are the stored one", async () => {
    const { agent, mcp, details, take } = await loggedIn();
    expect(take("login", "token")).toEqual([{ type: "login", outcome: "completed", flow: "browser", ...details }]);
    await agent.token(mcp.url);
    await agent.fetch(mcp.url);
    const stored = { type: "token", source: "stored", ...details };
    expect(take("login", "token", "refresh")).toEqual([stored, stored]);
  });

  it("say of a login that failed why, as far as the issuer is known", async () => {
    const { agentWith, mcp, issuer, details, take } = await loggedIn();
    take();
    issuer.callback = { error: "access_denied", code: null };
    await agentWith()
      .login(mcp.url)
      .catch(() => undefined);
    const failure = { outcome: "failed", reason: "issuer", code: "access_denied", flow: "browser" };
    expect(take("login")).toEqual([{ type: "login", ...failure, server: details.server, issuer: undefined }]);
  });

  it("say that one of many calls refreshed a token, and that the others waited for it", async () => {
    const { agent, mcp, details, take, expire } = await loggedIn();
    take();
    await expire();
    await Promise.all(Array.from({ length: 5 }, () => agent.token(mcp.url)));
    const refresh = { type: "refresh", outcome: "refreshed", trigger: "expired", grant: "refresh_token", ...details };
    const sources = take("refresh", "token");
    expect(sources.filter(({ type }) => type === "refresh")).toEqual([refresh]);
    expect(sources.map(({ source }) => source).sort()).toEqual([
      "joined",
      "joined",
      "joined",
      "joined",
      "refreshed",
      undefined,
    ]);
  });

  it("say that another client refreshed the token", async () => {
    const { agentWith, agent, mcp, take, expire } = await loggedIn();
    const other = agentWith({ login: undefined, onEvent: () => {} });
    await expire();
    take();
    await Promise.all([other.token(mcp.url), agent.token(mcp.url)]);
    expect(take("refresh", "token")).toMatchObject([{ source: "joined" }]);
  });

  it("say of a token that its server rejected that this caused the refresh", async () => {
    const { agent, mcp, take } = await loggedIn();
    mcp.accepts = (token) => token !== "access-as-1";
    take();
    await agent.fetch(mcp.url);
    expect(take("refresh")).toMatchObject([{ outcome: "refreshed", trigger: "unauthorized" }]);
  });

  const failures: [what: string, reply: Reply, ended: object, isExpired: boolean][] = [
    [
      "the issuer rejects the login",
      { status: 400, json: { error: "invalid_grant" } },
      { outcome: "rejected", reason: "issuer", code: "invalid_grant" },
      true,
    ],
    [
      "the issuer rejects the request",
      { status: 400, json: { error: "invalid_request" } },
      { outcome: "failed", reason: "issuer", code: "invalid_request" },
      true,
    ],
    [
      "the issuer has a code of its own",
      { status: 400, json: { error: "quota-of-alice" } },
      { outcome: "failed", reason: "issuer", code: "other" },
      true,
    ],
    ["the issuer fails", { status: 503 }, { outcome: "failed", reason: "unavailable", code: "server_error" }, true],
    ["the answer is lost", reset, { outcome: "lost", reason: "unavailable", code: "connection_reset" }, true],
    [
      "the answer is lost while the token is valid",
      reset,
      { outcome: "lost", reason: "unavailable", code: "connection_reset" },
      false,
    ],
  ];
  it.each(failures)("say once why a refresh failed: %s", async (_what, reply, ended, isExpired) => {
    const { agent, mcp, issuer, details, take, clock } = await loggedIn();
    issuer.routes[TOKEN] = reply;
    await clock.sleep(isExpired ? HOUR : HOUR - 30_000, SIGNAL);
    take();
    await agent.token(mcp.url).catch(() => undefined);
    const found = take("refresh", "token");
    expect(found[0]).toEqual({ type: "refresh", trigger: "expired", grant: "refresh_token", ...ended, ...details });
    expect(found.slice(1)).toMatchObject([{ type: "token", source: isExpired ? "none" : "cached" }]);
  });

  it("say that new tokens could not be stored", async () => {
    const { store, agentWith, mcp, take, expire } = await loggedIn();
    const full = async () => {
      throw new AgentAuthError("store_failed", "the disk is full", { class: "store" });
    };
    const broken: GrantStore = { ...store, reserve: async () => ({ save: full, release: async () => {} }) };
    await expire();
    take();
    await agentWith({ store: broken, login: undefined })
      .token(mcp.url)
      .catch(() => undefined);
    const found = take("refresh", "store");
    expect(found.filter(({ type }) => type === "refresh")).toMatchObject([
      { outcome: "lost", reason: "store", code: "grant_not_saved" },
    ]);
    expect(found.filter(({ outcome }) => outcome === "failed")).toMatchObject(
      Array.from({ length: 4 }, () => ({ operation: "save", code: "store_failed" })),
    );
  });

  it("say what an issuer did with the tokens of a removed login", async () => {
    const { agent, agentWith, mcp, issuer, details, take } = await loggedIn();
    take();
    await agent.disconnect(mcp.url);
    expect(take("revoke")).toEqual([{ type: "revoke", outcome: "revoked", ...details }]);
    await agentWith().login(mcp.url);
    issuer.routes["/pool/revoke"] = { status: 503 };
    await agent.disconnect(mcp.url);
    expect(take("revoke")).toEqual([{ type: "revoke", outcome: "failed", code: "server_error", ...details }]);
  });

  it("say who waited for a lease, and what was done in the store", async () => {
    const { agentWith, mcp, take, expire } = await loggedIn();
    await expire();
    take();
    await Promise.all([agentWith({ login: undefined }).token(mcp.url), agentWith({ login: undefined }).token(mcp.url)]);
    const found = take("lease", "store");
    const leases = found.filter(({ type }) => type === "lease");
    expect(leases).toMatchObject([
      { operation: "refresh", wait: "none", takeover: "none" },
      { operation: "refresh", wait: "held", takeover: "none" },
    ]);
    const done = found.map(({ operation, outcome }) => `${operation} ${outcome}`);
    expect(done).toEqual(expect.arrayContaining(["reserve ok", "save ok"]));
  });

  it("say that a machine requested a token, or why it got none", async () => {
    const { agentWith, mcp, issuer, details, take } = await loggedIn();
    const client = { clientId: "machine", clientSecret: "s".repeat(40), issuer: issuer.issuer };
    const machine = agentWith({ login: undefined, client, grant: { type: "client_credentials" } });
    take();
    await machine.token(mcp.url);
    await machine.token(mcp.url);
    const refresh = { type: "refresh", trigger: "requested", grant: "client_credentials", ...details };
    const source = (from: string) => ({ type: "token", source: from, ...details });
    expect(take("refresh", "token")).toEqual([
      { ...refresh, outcome: "refreshed" },
      source("requested"),
      source("stored"),
    ]);
    issuer.routes[TOKEN] = { status: 401, json: { error: "invalid_client" } };
    await machine.token(mcp.url, { forceRefresh: true }).catch(() => undefined);
    const failure = { outcome: "rejected", reason: "issuer", code: "invalid_client" };
    expect(take("refresh", "token")).toEqual([
      { ...refresh, ...failure },
      { type: "token", source: "none", code: "invalid_client", server: details.server },
    ]);
  });
});
