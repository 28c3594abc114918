import { decodeJwt } from "jose";
import { describe, expect, onTestFinished, vi } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import { AgentClient, type AgentClientOptions } from "../../../src/oauth/agent.js";
import { Secret } from "../../../src/redact.js";
import { type SandboxMachine, startSandbox } from "../../../src/sandbox/index.js";
import type { AgentEvent } from "../../../src/telemetry/events.js";
import { pendingError } from "../../helpers/captured.js";
import { altering, EXCHANGE, forged, companyTest as it, JWT_BEARER } from "./company-support.js";

const DAY_MS = 86_400_000;

describe("one login at the company's identity provider", () => {
  it("gives tokens for its servers without another prompt", async ({
    agent,
    agentWith,
    servers,
    tokenRequests,
    user,
  }) => {
    const login = await agent.loginIdp();
    expect(login).toMatchObject({ grant: "idp", state: "valid", refreshable: true, client_id: "sandbox-desktop" });
    expect(user.requested().get("scope")).toBe("openid offline_access");
    expect(user.requested().get("code_challenge_method")).toBe("S256");
    expect(user.requested().get("nonce")).toMatch(/./);
    expect(user.requested().has("login_hint")).toBe(false);
    expect(user.requested().has("resource")).toBe(false);
    for (const server of servers) {
      const token = await agent.token(server);
      expect(decodeJwt(token.value)).toMatchObject({ sub: "alice", aud: server, client_id: "sandbox-workload" });
      // Any other process gets it from the store, and needs to name neither the provider nor the client.
      const other = agentWith({ client: undefined, login: undefined, idp: "stored" });
      expect((await other.token(server)).value).toBe(token.value);
      expect((await other.fetch(server, { method: "POST", body: "{}" })).status).not.toBe(401);
    }
    expect(user.opened).toHaveLength(1);
    expect(tokenRequests()).toEqual([
      "idp authorization_code 200",
      ...servers.flatMap(() => [`idp ${EXCHANGE} 200`, `server ${JWT_BEARER} 200`]),
    ]);
  });

  it("leads to a login at a server whose issuer takes no assertions", async ({ store, user }) => {
    await using plain = await startSandbox({ autoApprove: true, devices: 1 });
    await using company = await startSandbox({ autoApprove: true, machineGrants: true, devices: 1 });
    const { idp } = company.machine as SandboxMachine;
    const named = { issuer: idp.issuer, clientId: idp.nativeClient.clientId };
    const said: string[] = [];
    const onProgress = ({ text }: { text: string }) => void said.push(text);
    const agent = new AgentClient({ store, login: user, idp: named, onProgress });
    await agent.loginIdp();
    expect((await agent.token(plain.mcpUrl)).issuer).toBe(plain.authUrl(plain.ids.pool));
    expect(user.opened).toHaveLength(2);
    expect(said).toEqual([]);
  });

  it("leads to a login at a server whose issuer knows no client of ours, and says which option names one", async ({
    agentWith,
    machine,
    servers: [server],
    store,
    user,
  }) => {
    const said: string[] = [];
    const onProgress = ({ text }: { text: string }) => void said.push(text);
    const unnamed = { client: undefined, clientMetadataUrl: "none" } as const;
    await agentWith(unnamed).loginIdp();
    expect((await agentWith(unnamed).token(server)).value).toMatch(/./);
    await store.remove({ profile: "default", server });
    expect((await agentWith({ ...unnamed, onProgress }).token(server)).value).toMatch(/./);
    expect(user.opened).toHaveLength(3);
    expect(said).toEqual([
      `"${machine.issuer}" takes assertions of the identity provider for "${server}", but no client that it knows is named: set client.clientId and client.issuer`,
    ]);
    await store.remove({ profile: "default", server });
    const remedy = { action: "configure", option: "client", value: machine.issuer };
    for (const changes of [{ login: undefined }, {}]) {
      const error = await pendingError(agentWith({ ...unnamed, ...changes }).token(server, { login: false }));
      expect(error).toMatchObject({ code: "login_required", remedy });
    }
  });

  it("must be named where the profile has several, or ends where its provider issues nothing more", async ({
    agent,
    agentWith,
    sandbox,
    servers: [server],
    store,
  }) => {
    const stored = agentWith({ login: undefined, idp: "stored" });
    await agent.loginIdp();
    const [login] = await store.list();
    if (login === undefined) throw new Error("no login");
    const without = (name: "idToken" | "refreshToken") => ({ ...login.tokens, [name]: undefined });
    const other = { ...login, server: "https://other.example/", issuer: "https://other.example" };
    await store.save(other, undefined);
    expect(await pendingError(stored.token(server))).toMatchObject({ code: "account_ambiguous", class: "usage" });
    await store.remove(other);
    sandbox.clock.advance(DAY_MS);
    const ended = { ...login, generation: login.generation + 1, tokens: without("refreshToken") };
    await store.save(ended, login.generation);
    expect(await pendingError(stored.token(server))).toMatchObject({
      message: expect.stringContaining("the id token has expired, and there is no refresh token"),
    });
  });

  it("comes after the user's own login at the server", async ({
    agent,
    agentWith,
    servers: [server],
    tokenRequests,
  }) => {
    const own = await agentWith({ idp: undefined, client: undefined }).token(server);
    await agent.loginIdp();
    expect((await agentWith({ client: undefined }).token(server)).value).toBe(own.value);
    expect(tokenRequests().join()).not.toContain(EXCHANGE);
  });

  it("is required where the options name the provider, and the error says which", async ({
    agentWith,
    servers,
    user,
  }) => {
    const agent = agentWith({ login: undefined });
    expect(await pendingError(agent.token(servers[0]))).toMatchObject({
      code: "login_required",
      message: expect.stringContaining("not logged in at the identity provider"),
      remedy: { action: "login", idp: true, server: expect.stringMatching(/\/idp$/) },
    });
    expect(user.opened).toEqual([]);
  });

  it("works without a resource, which the issuer then decides", async ({ agent, agentWith, servers: [server] }) => {
    await agent.loginIdp();
    expect(decodeJwt((await agentWith({ resource: "none" }).token(server)).value)["aud"]).toBe(server);
  });

  it("is renewed once by all clients together, and no refresh token is used twice", async ({
    agent,
    agentWith,
    sandbox,
    servers,
    tokenRequests,
    user,
  }) => {
    await agent.loginIdp();
    const crowd = Array.from({ length: 8 }, () => agentWith());
    for (let day = 1; day <= 4; day++) {
      sandbox.clock.advance(DAY_MS);
      const before = tokenRequests().length;
      const values = await Promise.all(
        crowd.flatMap((one) => servers.map(async (url) => (await one.token(url)).value)),
      );
      expect(new Set(values).size).toBe(servers.length);
      expect(tokenRequests().slice(before).sort()).toEqual([
        "idp refresh_token 200",
        ...servers.map(() => `idp ${EXCHANGE} 200`),
        ...servers.map(() => `server ${JWT_BEARER} 200`),
      ]);
    }
    expect(user.opened).toHaveLength(1);
  });

  it("keeps a refresh that cannot be stored, and stores it when that is possible", async ({
    agent,
    agentWith,
    sandbox,
    servers: [server],
    store,
    tokenRequests,
  }) => {
    await agent.loginIdp();
    sandbox.clock.advance(DAY_MS);
    let isFull = true;
    const diskFull = () => Promise.reject(new AgentAuthError("store_failed", "disk full", { class: "store" }));
    const reserve: typeof store.reserve = async (key) => {
      const room = await store.reserve(key);
      return { ...room, save: (...grant) => (isFull ? diskFull() : room.save(...grant)) };
    };
    const before = tokenRequests().length;
    const other = agentWith({ store: { ...store, reserve } });
    expect(await pendingError(other.token(server))).toMatchObject({ code: "grant_not_saved" });
    isFull = false;
    expect((await other.token(server)).value).toMatch(/./);
    expect(tokenRequests().slice(before)).toEqual([
      "idp refresh_token 200",
      `idp ${EXCHANGE} 200`,
      `server ${JWT_BEARER} 200`,
    ]);
  });

  it("has the secret of the stored client for that client alone", async ({ agent, agentWith, machine, store }) => {
    await agent.loginIdp();
    const [login] = await store.list();
    if (login === undefined) throw new Error("no login");
    const client = { ...login.client, clientSecret: new Secret("stored-secret") };
    await store.save({ ...login, client, generation: login.generation + 1 }, login.generation);
    const { issuer } = machine.idp;
    const clientOf = async (idp: AgentClientOptions["idp"]) => {
      const { client: used } = await agentWith({ idp }).beginIdpLogin("http://127.0.0.1:3000/callback");
      return [used.clientId, used.clientSecret?.reveal()];
    };
    const { clientId } = client;
    expect(await clientOf({ issuer })).toEqual([clientId, "stored-secret"]);
    expect(await clientOf("stored")).toEqual([clientId, "stored-secret"]);
    expect(await clientOf({ issuer, clientId })).toEqual([clientId, "stored-secret"]);
    expect(await clientOf({ issuer, clientId: "other" })).toEqual(["other", undefined]);
    expect(await clientOf({ issuer, clientId, clientSecret: "named" })).toEqual([clientId, "named"]);
  });

  it("is found once for each server, until it ends", async ({ agent, agentWith, servers: [server], store }) => {
    await agent.loginIdp();
    await agent.token(server);
    const lists = vi.spyOn(store, "list");
    onTestFinished(() => lists.mockRestore());
    const other = agentWith({ login: undefined, idp: "stored" });
    await other.token(server);
    lists.mockClear();
    await other.token(server);
    // Whether the user has a login at the server itself is looked up each time.
    expect(lists).toHaveBeenCalledTimes(1);
    await agent.logoutIdp();
    expect(await pendingError(other.token(server))).toMatchObject({ code: "login_required", remedy: { server } });
  });

  it("is that of one user, among the users of one client", async ({ agentWith, servers: [server] }) => {
    const agent = agentWith();
    const [alice, bob] = [agent.for({ user: "alice" }), agent.for({ user: "bob" })];
    await alice.loginIdp();
    const { value } = await alice.token(server);
    expect(await pendingError(bob.token(server))).toMatchObject({ code: "login_required" });
    await bob.loginIdp();
    expect((await bob.token(server)).value).not.toBe(value);
    expect((await alice.token(server)).value).toBe(value);
  });

  it("goes on with its refresh token where a refresh returns no id token", async ({
    agent,
    agentWith,
    sandbox,
    servers: [server],
  }) => {
    await agent.loginIdp();
    sandbox.clock.advance(DAY_MS);
    const subjects: (string | null)[] = [];
    const fetch = altering(({ id_token: _, ...body }, form) => {
      if (form.has("subject_token_type")) subjects.push(form.get("subject_token_type"));
      return body;
    });
    const refreshes: unknown[] = [];
    const onEvent = (event: AgentEvent | object) => {
      if ("trigger" in event) refreshes.push([event.grant, event.trigger, event.outcome]);
    };
    expect((await agentWith({ fetch, onEvent }).token(server)).value).toMatch(/./);
    expect(subjects).toEqual(["urn:ietf:params:oauth:token-type:refresh_token"]);
    expect(refreshes).toEqual([
      ["refresh_token", "requested", "refreshed"],
      ["id_jag", "requested", "refreshed"],
    ]);
  });

  it("is one in each profile", async ({ agent, agentWith, machine, user }) => {
    await agent.loginIdp();
    const idp = { issuer: "https://other.example", clientId: "a" };
    expect(await pendingError(agentWith({ idp, client: undefined }).loginIdp())).toMatchObject({
      code: "usage",
      message: expect.stringContaining(
        `at the identity provider "${machine.idp.issuer}" is stored in the profile default`,
      ),
    });
    expect(user.opened).toHaveLength(1);
  });

  it("ends with all that came from it", async ({ agent, agentWith, servers, store }) => {
    await agent.loginIdp();
    for (const server of servers) await agent.token(server);
    await agentWith({ idp: undefined, client: undefined }).login(servers[0]);
    expect((await agent.status()).map(({ grant }) => grant).sort()).toEqual(["id-jag", "id-jag", "idp", "login"]);
    const ended = await agent.logoutIdp();
    expect(ended.map(({ account }) => account?.replace(/:[0-9a-f]+$/, ""))).toEqual([
      "grant:idp",
      "grant:id_jag:sandbox-workload",
      "grant:id_jag:sandbox-workload",
    ]);
    expect((await store.list()).map(({ account }) => account)).toEqual([undefined]);
    expect(await agent.logoutIdp()).toEqual([]);
    expect(await pendingError(agentWith({ login: undefined }).token(servers[1]))).toMatchObject({
      code: "login_required",
    });
  });
});

describe("an id token of the provider", () => {
  it.for<[string, (token: unknown) => unknown, RegExp]>([
    ["is for several clients, without azp", (token) => forged(token, { aud: ["sandbox-desktop", "b"] }), /signature/],
    ["has expired", (token) => forged(token, { exp: 1 }), /signature|exp/],
    ["has another signature", (token) => forged(token, { sub: "mallory" }), /signature verification failed/],
  ])("that %s is refused, and no login is stored", async ([_what, alter, said], { agentWith, store }) => {
    const fetch = altering(({ id_token, ...body }) => {
      const altered = alter(id_token);
      return altered === undefined ? body : { ...body, id_token: altered };
    });
    const refused = expect(agentWith({ fetch }).loginIdp()).rejects;
    await refused.toMatchObject({ code: "bad_token_answer", class: "refused", message: expect.stringMatching(said) });
    expect(await store.list()).toEqual([]);
  });
});
