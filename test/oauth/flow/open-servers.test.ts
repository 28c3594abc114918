import { describe, expect, it } from "vitest";
import { AgentAuthError, isAgentAuthError } from "../../../src/errors.js";
import { systemClock } from "../../../src/http/deadline.js";
import type { AgentClient } from "../../../src/oauth/agent.js";
import { pendingError } from "../../helpers/captured.js";
import { type Reply, type Scene, startScene } from "../../helpers/issuer.js";
import { REDIRECT_URI } from "../login/web-support.js";

const SESSION = { "mcp-session-id": "s1" };
const ANSWER = { json: { jsonrpc: "2.0", id: 1, result: { tools: [] } } };

/** Makes the MCP server of a scene answer without a token, and name no issuer; the result undoes that. */
function openUp({ mcp }: Scene): () => void {
  const { routes } = mcp;
  const closed = { ...routes };
  delete routes[mcp.wellKnown];
  routes["/mcp"] = ANSWER;
  return () => Object.assign(routes, closed);
}

describe("a client that found a server to require no login", () => {
  it("gives no token of it, and says how to do without one", async () => {
    const scene = await startScene();
    openUp(scene);
    const agent = scene.agent();
    expect(await pendingError(agent.token(scene.mcp.url))).toMatchObject({
      code: "login_not_required",
      class: "auth",
      hint: "send the requests without a token, as fetch() does",
      remedy: { action: "connect", server: scene.mcp.url },
    });
    const { trace } = await agent.discover(scene.mcp.url);
    expect(trace[0]).toMatchObject({
      step: "challenge",
      method: "POST",
      status: 200,
      used: false,
      why: "the server does not explicitly require a bearer token",
    });
    scene.mcp.routes["/mcp"] = () => scene.mcp.refusal();
    expect((await scene.agent().discover(scene.mcp.url)).trace[0]).toMatchObject({
      step: "challenge",
      status: 401,
      used: true,
      why: "the server requires a bearer token",
    });
  });

  it.each([
    [true, "login_not_required", "the server answers without a token"],
    [false, "no_resource_metadata", "the server does not answer without a token"],
  ])("called in a session where it may require a token, and ended that: open %s", async (isOpen, code, why) => {
    const scene = await startScene();
    const { agent, mcp } = scene;
    openUp(scene);
    mcp.routes["/mcp"] = ({ headers, body }) => {
      if (body.includes("initialize")) return { ...ANSWER, headers: SESSION };
      if (headers["mcp-session-id"] === "s1" && isOpen) return ANSWER;
      return { status: 400, json: { jsonrpc: "2.0", id: null, error: { code: -32000, message: "no session" } } };
    };
    const { error, trace } = await agent().discover(mcp.url);
    expect(error).toMatchObject({ code });
    const { step, used, why: reason } = trace.findLast((entry) => entry.step === "challenge") ?? {};
    expect([step, used, reason]).toEqual(["challenge", isOpen, why]);
    const sent = mcp.to("/mcp").map(({ method, headers, body }) => {
      return [method, headers["mcp-session-id"], headers["mcp-protocol-version"], /"method":"(\S+?)"/.exec(body)?.[1]];
    });
    expect(sent).toEqual([
      ["POST", undefined, undefined, "tools/list"],
      ["POST", undefined, undefined, "initialize"],
      ["POST", "s1", "2025-11-25", "tools/list"],
      ["DELETE", "s1", "2025-11-25", undefined],
    ]);
  });

  it.each<[string, number, Reply, string]>([
    ["where it opens no session", 400, ANSWER, "no_resource_metadata"],
    ["where it opens no session", 404, ANSWER, "no_resource_metadata"],
    ["where it refuses one", 400, { status: 404, text: "" }, "no_resource_metadata"],
    ["where it refuses one that it names", 400, { status: 400, headers: SESSION, text: "" }, "no_resource_metadata"],
    ["where nothing is there", 404, { status: 404, text: "" }, "not_found"],
  ])("is none %s, after HTTP %d", async (_what, status, opened, code) => {
    const scene = await startScene();
    const { agent, mcp } = scene;
    openUp(scene);
    mcp.routes["/mcp"] = ({ body }) => (body.includes("initialize") ? opened : { status, text: "" });
    const work = agent().token(mcp.url);
    expect(await pendingError(work)).toMatchObject({ code });
    expect(mcp.to("/mcp").map(({ body }) => body.includes("initialize"))).toEqual([false, true]);
  });

  it("uses a login that another process has stored since", async () => {
    const scene = await startScene();
    const { agent, mcp } = scene;
    const close = openUp(scene);
    const one = agent({ login: undefined });
    expect((await one.fetch(mcp.url)).status).toBe(200);
    close();
    await agent().login(mcp.url);
    mcp.routes["/mcp"] = ANSWER;
    expect((await one.fetch(mcp.url)).status).toBe(200);
    expect(mcp.tokens()).toEqual(["Bearer access-as-1"]);
  });

  it.each([
    ["a bug", new RangeError("oops")],
    ["a store that did not answer", new AgentAuthError("store_unavailable", "late", { class: "unavailable" })],
    ["an issuer's own refusal", new AgentAuthError("login_required", "no", { class: "auth", status: 400 })],
  ])("is not one that failed once with %s", async (_what, failure) => {
    const scene = await startScene();
    const { agent, mcp, store } = scene;
    openUp(scene);
    let reads = 0;
    const read: typeof store.read = (key) => (reads++ === 0 ? Promise.reject(failure) : store.read(key));
    const one = agent({ store: { ...store, read } });
    await expect(one.fetch(mcp.url)).rejects.toBe(failure);
    expect(mcp.requests).toEqual([]);
    expect((await one.fetch(mcp.url)).status).toBe(200);
  });

  it.each([401, 403])("logs in when the server answers %d with a challenge", async (status) => {
    const scene = await startScene();
    const { agent, mcp, login } = scene;
    const close = openUp(scene);
    // The store notes failed logins by the clock of the machine.
    const one = agent({ clock: systemClock });
    await one.fetch(mcp.url);
    close();
    const challenge = mcp.challenge ?? "";
    mcp.routes["/mcp"] = ({ headers }) =>
      headers.authorization ? ANSWER : { status, headers: { "www-authenticate": challenge }, text: "" };
    expect((await one.fetch(mcp.url)).status).toBe(200);
    expect(login.opened).toHaveLength(1);
  });

  it("returns a 403 without a challenge as it is", async () => {
    const scene = await startScene();
    const { agent, mcp } = scene;
    openUp(scene);
    const one = agent();
    await one.fetch(mcp.url);
    mcp.routes["/mcp"] = { status: 403, text: "no" };
    const requested = mcp.requests.length;
    const response = await one.fetch(mcp.url);
    expect([response.status, await response.text(), mcp.requests.length]).toEqual([403, "no", requested + 1]);
  });
});

describe("whether a server requires a login", () => {
  const required = async ({ agent, mcp }: Scene) => agent({ maxRetries: 0 }).requiresLogin(mcp.url);

  it("is known where a login is stored, and else after one request that is challenged", async () => {
    const scene = await startScene();
    expect(await required(scene)).toBe(true);
    expect(scene.mcp.to("/mcp")).toHaveLength(1);
    await scene.agent().login(scene.mcp.url);
    const requests = scene.log.length;
    expect(await required(scene)).toBe(true);
    expect(scene.log).toHaveLength(requests);
  });

  it.each<[string, Reply, boolean, number]>([
    ["answers", ANSWER, false, 1],
    ["forbids", { status: 403, text: "" }, true, 1],
    ["answers without a result", { json: { error: {} } }, true, 1],
    ["wants a session that it does not open", { status: 400, text: "" }, true, 2],
  ])("is found out of one that %s and names no issuer", async (_what, reply, expected, requests) => {
    const scene = await startScene();
    openUp(scene);
    scene.mcp.routes["/mcp"] = reply;
    expect(await required(scene)).toBe(expected);
    expect(scene.mcp.to("/mcp")).toHaveLength(requests);
  });

  it("is so where it answers, and names an issuer", async () => {
    const scene = await startScene();
    scene.mcp.routes["/mcp"] = ANSWER;
    expect(await required(scene)).toBe(true);
    scene.issuer.metadata["issuer"] = "https://elsewhere.example";
    expect(await required(scene)).toBe(true);
  });

  it("is not known where nothing is there, or a peer does not answer", async () => {
    const scene = await startScene();
    const { mcp } = scene;
    openUp(scene);
    mcp.routes["/mcp"] = { status: 404, text: "" };
    expect(await pendingError(required(scene))).toMatchObject({ code: "not_found" });
    mcp.routes["/mcp"] = ANSWER;
    mcp.routes[mcp.wellKnown] = { status: 503, text: "" };
    expect(await pendingError(required(scene))).toMatchObject({ code: "server_error", class: "unavailable" });
  });
});

describe("a server that lists its tools without a token, and whose challenge to calls alone names its metadata", () => {
  async function startHalfOpen() {
    const scene = await startScene();
    const { mcp } = scene;
    openUp(scene);
    const path = "/metadata-of-the-challenge";
    mcp.routes[path] = () => ({ json: mcp.metadata });
    mcp.challenge = `Bearer resource_metadata="${mcp.origin}${path}"`;
    mcp.routes["/mcp"] = ({ headers, body }) =>
      headers.authorization || !body.includes("tools/call") ? ANSWER : mcp.refusal();
    const send = (agent: AgentClient, method: string) =>
      agent.fetch(mcp.url, { method: "POST", body: JSON.stringify({ jsonrpc: "2.0", id: 1, method }) });
    return { ...scene, send };
  }

  it("is logged in to for a call", async () => {
    const { agent, mcp, login, send } = await startHalfOpen();
    const one = agent({ clock: systemClock });
    expect((await send(one, "tools/list")).status).toBe(200);
    expect(login.opened).toEqual([]);
    expect((await send(one, "tools/call")).status).toBe(200);
    expect((await send(one, "tools/call")).status).toBe(200);
    expect(login.opened).toHaveLength(1);
    expect(mcp.tokens()).toEqual(["Bearer access-as-1", "Bearer access-as-1"]);
  });

  it("is logged in to for the transport of an SDK, which names the challenge", async () => {
    const { agent, mcp, login } = await startHalfOpen();
    const provider = agent({ clock: systemClock }).authProvider(mcp.url);
    expect(await provider.token()).toBeUndefined();
    const response = new Response("", { status: 401, headers: { "www-authenticate": mcp.challenge ?? "" } });
    await provider.onUnauthorized({ response });
    expect(await provider.token()).toBe("access-as-1");
    expect(login.opened).toHaveLength(1);
  });

  it("gets a token of a machine grant", async () => {
    const { agent, mcp, send } = await startHalfOpen();
    const client = { clientId: "robot", clientSecret: "machine-secret" };
    const one = agent({ login: undefined, grant: { type: "client_credentials" }, client });
    expect((await send(one, "tools/list")).status).toBe(200);
    expect((await send(one, "tools/call")).status).toBe(200);
    expect(mcp.tokens()).toEqual(["Bearer access-as-1"]);
  });

  it("passes on a failure of the login that is no refusal", async () => {
    const { agent, login, send } = await startHalfOpen();
    login.before = () => Promise.reject(new RangeError("no browser"));
    await expect(send(agent(), "tools/call")).rejects.toThrow(new RangeError("no browser"));
    const late = new AgentAuthError("timeout", "late", { class: "unavailable" });
    login.before = () => Promise.reject(late);
    await expect(send(agent(), "tools/call")).rejects.toBe(late);
  });

  it("needs a login for a call of a client that cannot log in", async () => {
    const { agent, send } = await startHalfOpen();
    const one = agent({ login: undefined });
    expect((await send(one, "tools/list")).status).toBe(200);
    expect(await pendingError(send(one, "tools/call"))).toMatchObject({ code: "login_required" });
  });

  it("is logged in to by the remedy of the error, which names the metadata of the challenge", async () => {
    const { agent, mcp, issuer, send } = await startHalfOpen();
    const error = await pendingError(send(agent({ login: undefined }), "tools/call"));
    const remedy = isAgentAuthError(error) ? error.remedy : undefined;
    if (remedy?.action !== "login") throw new Error(`no login: ${String(error)}`);
    expect(remedy.resourceMetadata).toBe(`${mcp.origin}/metadata-of-the-challenge`);
    const started = await remedy.start?.({ redirectUri: REDIRECT_URI });
    expect(started?.url).toContain(`${issuer.issuer}/authorize?`);
  });
});
