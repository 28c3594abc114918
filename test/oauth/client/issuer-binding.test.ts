import { describe, expect } from "vitest";
import { cliHint } from "../../../src/cli/runtime/hints.js";
import { AgentAuthError } from "../../../src/errors.js";
import type { AgentClientOptions } from "../../../src/oauth/agent.js";
import type { IssuerQuestion } from "../../../src/oauth/client/issuer-binding.js";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import type { MachineGrant } from "../../../src/oauth/model/machine-grant.js";
import { memoryStore } from "../../../src/store/memory.js";
import { pendingError } from "../../helpers/captured.js";
import { unsignedJwt } from "../../helpers/client-keys.js";
import { startMcp, type TestIssuer } from "../../helpers/issuer.js";
import { remedy } from "../../helpers/remedy.js";
import { sceneTest } from "../support.js";

const SECRET = "prod-secret-9";
const BY_SECRET = { clientId: "prod", clientSecret: SECRET };
const UNBOUND = { code: "issuer_unbound", class: "refused" };
const TOKEN = "/pool/token";

const it = sceneTest
  /** A client with a secret, whose issuer must be known. */
  .extend(
    "agent",
    ({ scene }) =>
      (options: Partial<AgentClientOptions>) =>
        scene.agent({ trustNamedIssuer: false, client: BY_SECRET, ...options }),
  )
  /** The same as a machine. */
  .extend(
    "service",
    ({ agent }) =>
      (options: Partial<AgentClientOptions> = {}) =>
        agent({ grant: { type: "client_credentials" }, ...options }),
  )
  /** A workload whose assertion is for this audience. */
  .extend(
    "workload",
    ({ scene, agent }) =>
      async (aud: unknown) =>
        agent({ client: { clientId: "prod" }, grant: await tokenFor(aud), issuer: scene.issuer.issuer }),
  )
  .extend(
    "bindings",
    ({ scene }) =>
      async () =>
        (await scene.store.listBindings()).map(({ boundAt: _, ...binding }) => binding),
  )
  .extend(
    "removeBinding",
    ({ scene }) =>
      () =>
        scene.store.removeBinding({ profile: "default", clientId: "prod" }),
  )
  /** Makes the MCP server name another issuer. */
  .extend("moveTo", ({ scene }) => async (name: string) => {
    const other = await scene.another(name);
    scene.mcp.metadata["authorization_servers"] = [other.issuer];
    return other;
  })
  /** The questions to the user. */
  .extend("questions", (): IssuerQuestion[] => [])
  /** A user who answers so. */
  .extend("answering", ({ questions }) => (answer: boolean) => async (question: IssuerQuestion) => {
    questions.push(question);
    return answer;
  });

const boundTo = (issuer: string, boundBy: string) => ({ profile: "default", clientId: "prod", issuer, boundBy });
const nothingSent = (issuer: TestIssuer) => {
  expect(issuer.to(TOKEN)).toEqual([]);
  expect(issuer.to("/pool/authorize")).toEqual([]);
};
const tokenFor = async (aud: unknown): Promise<MachineGrant> => {
  const assertion = await unsignedJwt({ iss: "platform", sub: "ci", exp: 4e9, ...(aud !== undefined && { aud }) });
  return { type: "jwt_bearer", assertion: () => assertion, workload: "ci" };
};

describe("a machine without a named issuer", () => {
  it("does not exchange a token of another client there either", async ({ scene, agent }) => {
    const exchanging = agent({ client: { clientId: "prod" }, login: undefined });
    const wish = { subjectToken: "subject-1", audience: "billing" };
    expect(await pendingError(exchanging.exchange(scene.mcp.url, wish))).toMatchObject(UNBOUND);
    nothingSent(scene.issuer);
  });

  it("names the profile in what it offers to paste, and leaves out what a shell would act on", async ({
    scene,
    service,
  }) => {
    const evil = await scene.another("evil", "/$(touch-x)'y");
    scene.mcp.metadata["authorization_servers"] = [evil.issuer];
    const error = await service({ profile: "work" })
      .token(scene.mcp.url)
      .catch((thrown: unknown) => thrown as Error);
    const details = { action: "configure", option: "issuer", value: evil.issuer, profile: "work" } as const;
    expect(error).toMatchObject({ ...UNBOUND, remedy: remedy(details) });
    const { hint } = cliHint(error as AgentAuthError);
    expect(hint).toContain("--profile work");
    expect(hint).toContain("--issuer <url>");
    expect(hint).not.toContain("touch-x");
  });

  it("is trusted once with trustNamedIssuer, and bound from then on", async ({ scene, service, bindings, moveTo }) => {
    const { mcp, issuer } = scene;
    await service({ trustNamedIssuer: true }).token(mcp.url);
    expect(await bindings()).toEqual([boundTo(issuer.issuer, "trust-named-issuer")]);
    await service().token(mcp.url, { forceRefresh: true });
    const evil = await moveTo("evil");
    issuer.routes[TOKEN] = { status: 404, text: "gone" };
    const again = service({ trustNamedIssuer: true }).token(mcp.url, { forceRefresh: true });
    expect(await pendingError(again)).toMatchObject({ code: "issuer_changed" });
    nothingSent(evil);
  });
});

describe("an issuer that the user names", () => {
  it.for<[string, (issuer: string) => Partial<AgentClientOptions>]>([
    ["for the client", (issuer) => ({ client: { ...BY_SECRET, issuer } })],
    ["for the grant", (issuer) => ({ grant: { type: "client_credentials", issuer } })],
    ["for all", (issuer) => ({ issuer })],
  ])(
    "%s is the only one that is used, and is bound",
    async ([_where, options], { scene, service, bindings, moveTo }) => {
      const { mcp, issuer } = scene;
      const evil = await moveTo("evil");
      const refusal = { code: "issuer_mismatch", class: "refused", message: expect.stringContaining(evil.issuer) };
      expect(await pendingError(service(options(issuer.issuer)).token(mcp.url))).toMatchObject(refusal);
      mcp.metadata["authorization_servers"] = ["https://other.example", evil.issuer];
      expect(await pendingError(service(options(issuer.issuer)).token(mcp.url))).toMatchObject(refusal);
      expect(evil.requests).toEqual([]);
      mcp.metadata["authorization_servers"] = [evil.issuer, issuer.issuer];
      await service(options(issuer.issuer)).token(mcp.url);
      expect(evil.requests).toEqual([]);
      expect(await bindings()).toEqual([boundTo(issuer.issuer, "issuer")]);
    },
  );

  it("must be the same wherever it is named", ({ service }) => {
    const options = { issuer: "https://a.example", client: { ...BY_SECRET, issuer: "https://b.example" } };
    expect(() => service(options)).toThrow(TypeError);
  });

  it("replaces the one that the client was bound to", async ({ scene, service, bindings, moveTo }) => {
    const { mcp, issuer } = scene;
    await service({ issuer: issuer.issuer }).token(mcp.url);
    const next = await moveTo("next");
    await service({ issuer: next.issuer }).token(mcp.url);
    expect(await bindings()).toEqual([boundTo(next.issuer, "issuer")]);
  });

  it("judges logins without a client too, stored ones among them", async ({ scene, agent }) => {
    const { mcp, issuer } = scene;
    // It publishes nothing.
    const other = `${issuer.origin}/other`;
    await agent({ client: undefined }).login(mcp.url);
    const elsewhere = agent({ client: undefined, issuer: other, login: undefined });
    expect(await pendingError(elsewhere.token(mcp.url))).toMatchObject({ code: "login_required" });
    expect(await pendingError(elsewhere.introspect(mcp.url))).toMatchObject({ code: "issuer_mismatch" });
    const asking = agent({ client: undefined, issuer: other });
    expect(await pendingError(asking.login(mcp.url))).toMatchObject({ code: "issuer_mismatch", class: "refused" });
    expect((await agent({ client: undefined, issuer: issuer.issuer, login: undefined }).token(mcp.url)).value).toBe(
      "access-as-1",
    );
  });

  it("is used in place of the origin of a server of 2025-03-26", async ({ scene, agent }) => {
    const { mcp, issuer } = scene;
    for (const path of ["/mcp", ""])
      mcp.routes[`/.well-known/oauth-protected-resource${path}`] = { status: 404, text: "" };
    for (const client of [BY_SECRET, undefined]) {
      const legacy = agent({ client, policy: { legacyDiscovery: true }, issuer: issuer.issuer });
      expect((await legacy.login(mcp.url)).issuer).toBe(issuer.issuer);
      const bound = { clientId: "prod", issuer: "https://other.example" };
      const strict = agent({ client: bound, policy: { legacyDiscovery: true } });
      expect(await pendingError(strict.login(mcp.url))).toMatchObject({ code: "issuer_mismatch" });
    }
    delete issuer.routes["/pool/.well-known/oauth-authorization-server"];
    const absent = agent({ client: undefined, policy: { legacyDiscovery: true }, issuer: issuer.issuer });
    expect(await pendingError(absent.login(mcp.url))).toMatchObject({ code: "issuer_mismatch" });
  });

  it("does not finish a login that began at another one", async ({ scene, agent }) => {
    const { mcp, login } = scene;
    const begun = await agent({ client: undefined }).beginLogin(mcp.url, "http://127.0.0.1:49152/callback");
    const session = await login.open({ resource: mcp.url, issuer: "", signal: new AbortController().signal });
    const other = agent({ client: undefined, issuer: "https://other.example" });
    expect(await pendingError(other.finishLogin(begun, session))).toMatchObject({ code: "issuer_mismatch" });
    expect(scene.issuer.to(TOKEN)).toEqual([]);
  });
});

describe("a user whose client has a secret or a key", () => {
  it("is prompted once, and again after the logout of the last login", async ({
    scene,
    agent,
    bindings,
    questions,
    answering,
  }) => {
    const { mcp, issuer } = scene;
    const first = agent({ confirmIssuer: answering(true) });
    await first.login(mcp.url);
    expect(questions).toEqual([{ clientId: "prod", issuer: issuer.issuer, server: mcp.url }]);
    expect(await bindings()).toEqual([boundTo(issuer.issuer, "confirmation")]);
    await agent({ confirmIssuer: answering(false), loginHint: "work" }).login(mcp.url);
    await first.disconnect(mcp.url);
    expect([questions.length, await bindings()]).toEqual([1, [boundTo(issuer.issuer, "confirmation")]]);
    await first.disconnect(mcp.url, { account: "work" });
    expect(await bindings()).toEqual([]);
    expect(await pendingError(agent({ confirmIssuer: answering(false) }).login(mcp.url))).toMatchObject(UNBOUND);
    expect(questions).toHaveLength(2);
  });

  it("of a workload without a client ends with its token too", async ({ scene, agent, bindings }) => {
    const { mcp, issuer } = scene;
    const ci = agent({ client: undefined, grant: await tokenFor(issuer.issuer), issuer: issuer.issuer });
    await ci.token(mcp.url);
    const [{ account = null } = {}] = await ci.status(mcp.url);
    expect(await bindings()).toHaveLength(1);
    await ci.disconnect(mcp.url, { account });
    expect(await bindings()).toEqual([]);
  });

  it("who says no sends nothing, and is bound to nothing", async ({ scene, agent, bindings, answering }) => {
    const { mcp, issuer } = scene;
    expect(await pendingError(agent({ confirmIssuer: answering(false) }).login(mcp.url))).toMatchObject(UNBOUND);
    nothingSent(issuer);
    expect(await bindings()).toEqual([]);
  });

  it("is not prompted about a machine, nor in a flow on another device without an answer", async ({
    scene,
    agent,
    service,
    questions,
    answering,
  }) => {
    const { mcp, issuer } = scene;
    expect(await pendingError(service({ confirmIssuer: answering(true) }).token(mcp.url))).toMatchObject(UNBOUND);
    expect(questions).toEqual([]);
    issuer.metadata["device_authorization_endpoint"] = `${issuer.issuer}/device`;
    expect(await pendingError(agent({ flow: "device" }).login(mcp.url))).toMatchObject(UNBOUND);
    expect(issuer.to("/pool/device")).toEqual([]);
  });
});

describe("a client without a secret", () => {
  const PUBLIC = { clientId: "prod" };

  it("needs no issuer to log in, is bound by that, and goes to no other issuer", async ({
    scene,
    agent,
    bindings,
    moveTo,
  }) => {
    const { mcp, issuer } = scene;
    await agent({ client: PUBLIC }).login(mcp.url);
    expect(await bindings()).toEqual([boundTo(issuer.issuer, "use")]);
    const evil = await moveTo("evil");
    expect(await pendingError(agent({ client: PUBLIC }).login(mcp.url))).toMatchObject({ code: "issuer_changed" });
    nothingSent(evil);
  });

  it("stays at its issuer where the server lists it second", async ({ scene, agent, moveTo }) => {
    const { mcp, issuer, store } = scene;
    const clients = [agent({ client: PUBLIC }), scene.agent({ profile: "registered" })];
    for (const client of clients) await client.login(mcp.url);
    const other = await moveTo("other");
    mcp.metadata["authorization_servers"] = [other.issuer, issuer.issuer];
    await clients[0]?.disconnect(mcp.url);
    await store.saveBinding(
      { profile: "default", clientId: "prod", issuer: issuer.issuer, boundBy: "use", boundAt: 0 },
      undefined,
    );
    for (const client of clients) expect((await client.login(mcp.url)).issuer).toBe(issuer.issuer);
    nothingSent(other);
  });

  it("is not bound by a login that failed", async ({ scene, agent, bindings }) => {
    scene.issuer.routes[TOKEN] = { status: 400, json: { error: "invalid_grant" } };
    expect(await pendingError(agent({ client: PUBLIC }).login(scene.mcp.url))).toMatchObject({ code: "invalid_grant" });
    expect(await bindings()).toEqual([]);
  });

  it("binds no secret that it gets later by its login", async ({ scene, agent, service, bindings, moveTo }) => {
    const evil = await moveTo("evil");
    await agent({ client: PUBLIC }).login(scene.mcp.url);
    expect(await pendingError(service().token(scene.mcp.url))).toMatchObject(UNBOUND);
    await scene.store.removeBinding({ profile: "default", clientId: "prod" });
    expect(await pendingError(service().token(scene.mcp.url))).toMatchObject(UNBOUND);
    expect(evil.to(TOKEN)).toHaveLength(1);
    await service({ trustNamedIssuer: true }).token(scene.mcp.url);
    expect(await bindings()).toEqual([boundTo(evil.issuer, "trust-named-issuer")]);
  });
});

describe("a login whose binding could not be stored", () => {
  it("still says where its client belongs", async ({ scene, service, bindings, removeBinding }) => {
    const { mcp, issuer } = scene;
    const trusting = service({ trustNamedIssuer: true });
    await trusting.token(mcp.url);
    await removeBinding();
    await service().token(mcp.url, { forceRefresh: true });
    expect(await bindings()).toEqual([boundTo(issuer.issuer, "earlier-login")]);
  });

  it("keeps its client from every other issuer, also from one that is to be trusted", async ({
    scene,
    agent,
    service,
    moveTo,
    removeBinding,
  }) => {
    await service({ trustNamedIssuer: true }).token(scene.mcp.url);
    await removeBinding();
    const evil = await moveTo("evil");
    for (const client of [BY_SECRET, { clientId: "prod" }]) {
      const login = agent({ client, trustNamedIssuer: true }).login(scene.mcp.url);
      expect(await pendingError(login)).toMatchObject({ code: "issuer_changed" });
    }
    nothingSent(evil);
  });

  it("of several issuers counts at each of them", async ({ scene, agent, moveTo, removeBinding }) => {
    const { mcp, issuer } = scene;
    await agent({ trustNamedIssuer: true }).login(mcp.url);
    const next = await moveTo("next");
    await agent({ issuer: next.issuer, loginHint: "work" }).login(mcp.url);
    await removeBinding();
    await agent({ loginHint: "work" }).login(mcp.url);
    mcp.metadata["authorization_servers"] = [issuer.issuer];
    await removeBinding();
    await agent({}).login(mcp.url);
    expect(next.to(TOKEN).length + issuer.to(TOKEN).length).toBe(4);
    // A binding to one of them would take the secret from the other.
    await removeBinding();
    for (const one of [issuer, next]) {
      one.tokenAnswer = { issued_token_type: "urn:ietf:params:oauth:token-type:access_token" };
      delete one.metadata["grant_types_supported"];
      const { url } = await startMcp("mcp-of", scene.log, one);
      await agent({}).exchange(url, { subjectToken: "subject-1", audience: "billing" });
    }
    expect([issuer, next].map((one) => one.to(TOKEN).length)).toEqual([3, 3]);
  });

  it("with a client that an issuer registered under the same id is none of this client", async ({
    scene,
    agent,
    service,
    moveTo,
  }) => {
    const evil = await moveTo("evil");
    evil.registrationAnswer = {
      client_id: "prod",
      client_secret: "theirs",
      token_endpoint_auth_method: "client_secret_post",
    };
    await agent({ client: undefined }).login(scene.mcp.url);
    expect((await scene.store.list())[0]?.client).toMatchObject({ clientId: "prod", source: "dynamic" });
    expect(await pendingError(service().token(scene.mcp.url))).toMatchObject(UNBOUND);
    expect(evil.to(TOKEN)).toHaveLength(1);
  });
});

describe("a client that another process binds at the same moment", () => {
  /** A store where that has happened right before a binding is saved. */
  const raced = (store: GrantStore, issuer: string): GrantStore => ({
    ...store,
    saveBinding: async (binding, expected) => {
      await store.saveBinding({ ...binding, issuer, boundBy: "confirmation" }, expected);
      return store.saveBinding(binding, expected);
    },
  });

  it.for<[string, (issuer: string) => Partial<AgentClientOptions>]>([
    ["that is to be trusted", () => ({ trustNamedIssuer: true })],
    ["that the user names", (issuer) => ({ issuer })],
    ["that the user confirms", () => ({ grant: undefined, confirmIssuer: async () => true })],
  ])(
    "is not used at an issuer %s, if the other process bound it elsewhere",
    async ([_how, options], { scene, service }) => {
      const { mcp, issuer } = scene;
      const racing = service({ store: raced(scene.store, "https://other.example"), ...options(issuer.issuer) });
      expect(await pendingError(racing.token(mcp.url))).toMatchObject({
        code: "issuer_changed",
        message: expect.stringContaining('belongs to "https://other.example"'),
      });
      nothingSent(issuer);
    },
  );

  it("is used where both bound it to the same issuer", async ({ scene, service, bindings }) => {
    const { mcp, issuer } = scene;
    await service({ store: raced(scene.store, issuer.issuer), trustNamedIssuer: true }).token(mcp.url);
    expect(await bindings()).toEqual([boundTo(issuer.issuer, "confirmation")]);
  });
});

describe("a machine's token from an issuer", () => {
  it("that its client is not bound to any more is not requested there again", async ({ scene, service, moveTo }) => {
    const { mcp, issuer } = scene;
    await service({ issuer: issuer.issuer }).token(mcp.url);
    const next = await moveTo("next");
    const binding = await scene.store.readBinding({ profile: "default", clientId: "prod" });
    if (binding) await scene.store.saveBinding({ ...binding, issuer: next.issuer }, binding);
    await service().token(mcp.url, { forceRefresh: true });
    expect(issuer.to(TOKEN)).toHaveLength(1);
    expect(next.to(TOKEN)).toHaveLength(1);
  });
});

describe("a store that cannot be written", () => {
  const full = new AgentAuthError("store_failed", "the disk is full", { class: "store" });
  const store = (): GrantStore => ({ ...memoryStore(), saveBinding: () => Promise.reject(full) });

  it("is no reason to refuse an issuer that the user names, but to trust none that is to be bound", async ({
    scene,
    service,
  }) => {
    const { mcp, issuer } = scene;
    const trusting = service({ store: store(), trustNamedIssuer: true });
    expect(await pendingError(trusting.token(mcp.url))).toMatchObject({ code: "store_failed" });
    nothingSent(issuer);
    const said: string[] = [];
    await service({ store: store(), issuer: issuer.issuer, onProgress: ({ text }) => said.push(text) }).token(mcp.url);
    expect(said).toContainEqual(
      expect.stringMatching(/^the issuer of the client "\w+" cannot be stored in .+: the disk is full$/),
    );
    expect((await service({ store: store(), issuer: issuer.issuer }).token(mcp.url)).value).toMatch(/./);
  });
});

describe("an assertion", () => {
  it.for<[string, (issuer: string) => unknown]>([
    ["the issuer", (issuer) => issuer],
    ["the token endpoint", (issuer) => `${issuer}/token`],
    ["a list of the issuer", (issuer) => [issuer]],
  ])("for %s is sent", async ([_what, aud], { scene, workload }) => {
    await (await workload(aud(scene.issuer.issuer))).token(scene.mcp.url);
    expect(scene.issuer.to(TOKEN)).toHaveLength(1);
  });
});
