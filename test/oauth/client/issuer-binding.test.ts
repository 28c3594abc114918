import { beforeEach, describe, expect, it } from "vitest";
import { cliHint } from "../../../src/cli/runtime/hints.js";
import { AgentAuthError } from "../../../src/errors.js";
import type { AgentClientOptions } from "../../../src/oauth/agent.js";
import type { IssuerQuestion } from "../../../src/oauth/client/issuer-binding.js";
import type { GrantStore } from "../../../src/oauth/grant/grant-store.js";
import type { MachineGrant } from "../../../src/oauth/machine/types.js";
import { memoryStore } from "../../../src/store/memory.js";
import { clientKey, unsignedJwt } from "../../helpers/client-keys.js";
import { type Scene, startScene, type TestIssuer } from "../../helpers/issuer.js";
import { remedy } from "../../helpers/remedy.js";

const SECRET = "prod-secret-9";
const BY_SECRET = { clientId: "prod", clientSecret: SECRET };
const UNBOUND = { code: "issuer_unbound", class: "refused" };
const TOKEN = "/pool/token";

let scene: Scene;
beforeEach(async () => {
  scene = await startScene();
});

const agent = (options: Partial<AgentClientOptions>) =>
  scene.agent({ trustNamedIssuer: false, client: BY_SECRET, ...options });
const service = (options: Partial<AgentClientOptions> = {}) =>
  agent({ grant: { type: "client_credentials" }, ...options });
const bindings = async () => (await scene.store.listBindings()).map(({ boundAt: _, ...binding }) => binding);
const boundTo = (issuer: string, boundBy: string) => ({ profile: "default", clientId: "prod", issuer, boundBy });
const nothingSent = (issuer: TestIssuer) => {
  expect(issuer.to(TOKEN)).toEqual([]);
  expect(issuer.to("/pool/authorize")).toEqual([]);
};
const tokenFor = async (aud: unknown): Promise<MachineGrant> => {
  const assertion = await unsignedJwt({ iss: "platform", sub: "ci", ...(aud !== undefined && { aud }) });
  return { type: "jwt_bearer", assertion: () => assertion };
};
async function moveTo(name: string): Promise<TestIssuer> {
  const other = await scene.another(name);
  scene.mcp.metadata["authorization_servers"] = [other.issuer];
  return other;
}

describe("a machine whose issuer nobody names", () => {
  it.each<[string, () => Promise<Partial<AgentClientOptions>>]>([
    ["a secret", async () => ({ grant: { type: "client_credentials" } })],
    [
      "a private key",
      async () => ({
        client: { clientId: "prod", privateKey: (await clientKey()).key },
        grant: { type: "client_credentials" },
      }),
    ],
    ["an assertion alone", async () => ({ client: { clientId: "prod" }, grant: await tokenFor(scene.issuer.issuer) })],
    [
      "an id token",
      async () => ({
        client: { clientId: "prod" },
        grant: {
          type: "id_jag",
          idToken: () => unsignedJwt({ sub: "alice" }),
          idp: { tokenEndpoint: `${scene.issuer.origin}/idp`, clientId: "us" },
        },
      }),
    ],
  ])("sends nothing of %s, and says which issuer is named and what to paste", async (_what, options) => {
    const { mcp, issuer } = scene;
    await expect(agent(await options()).token(mcp.url)).rejects.toMatchObject({
      ...UNBOUND,
      message: expect.stringContaining(issuer.issuer),
      remedy: remedy({ action: "configure", option: "issuer", value: issuer.issuer, profile: "default" }),
    });
    nothingSent(issuer);
    expect(issuer.to("/idp")).toEqual([]);
    expect(await bindings()).toEqual([]);
  });

  it("is refused whatever way of authentication the server asks for", async () => {
    scene.issuer.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"];
    await expect(service().token(scene.mcp.url)).rejects.toMatchObject(UNBOUND);
    const { key: privateKey } = await clientKey();
    const byKey = service({ client: { clientId: "prod", privateKey } });
    await expect(byKey.token(scene.mcp.url)).rejects.toMatchObject(UNBOUND);
    nothingSent(scene.issuer);
  });

  it("does not exchange a token of somebody else there either", async () => {
    const exchanging = agent({ client: { clientId: "prod" }, login: undefined });
    const wish = { subjectToken: "subject-1", audience: "billing" };
    await expect(exchanging.exchange(scene.mcp.url, wish)).rejects.toMatchObject(UNBOUND);
    nothingSent(scene.issuer);
  });

  it("names the profile in what it offers to paste, and quotes what a shell would act on", async () => {
    const evil = await scene.another("evil", "/$(touch-x)'y");
    scene.mcp.metadata["authorization_servers"] = [evil.issuer];
    const error = await service({ profile: "work" })
      .token(scene.mcp.url)
      .catch((thrown: unknown) => thrown as Error);
    const about = { action: "configure", option: "issuer", value: evil.issuer, profile: "work" } as const;
    expect(error).toMatchObject({ ...UNBOUND, remedy: remedy(about) });
    const { hint } = cliHint(error as AgentAuthError);
    expect(hint).toContain("--profile work");
    expect(hint).toContain(`--issuer '${evil.origin}/$(touch-x)'\\''y'`);
  });

  it("is trusted once with trustNamedIssuer, and bound from then on", async () => {
    const { mcp, issuer } = scene;
    await service({ trustNamedIssuer: true }).token(mcp.url);
    expect(await bindings()).toEqual([boundTo(issuer.issuer, "trust-named-issuer")]);
    await service().token(mcp.url, { forceRefresh: true });
    const evil = await moveTo("evil");
    issuer.routes[TOKEN] = { status: 404, text: "gone" };
    const again = service({ trustNamedIssuer: true }).token(mcp.url, { forceRefresh: true });
    await expect(again).rejects.toMatchObject({ code: "issuer_changed" });
    nothingSent(evil);
  });
});

describe("an issuer that the user names", () => {
  const named = (options: Partial<AgentClientOptions>) => service(options);

  it.each<[string, (issuer: string) => Partial<AgentClientOptions>]>([
    ["for the client", (issuer) => ({ client: { ...BY_SECRET, issuer } })],
    ["for the grant", (issuer) => ({ grant: { type: "client_credentials", issuer } })],
    ["for all", (issuer) => ({ issuer })],
  ])("%s is the only one that is used, and is bound", async (_where, options) => {
    const { mcp, issuer } = scene;
    const evil = await moveTo("evil");
    const refusal = { code: "issuer_mismatch", class: "refused", message: expect.stringContaining(evil.issuer) };
    await expect(named(options(issuer.issuer)).token(mcp.url)).rejects.toMatchObject(refusal);
    expect(evil.requests).toEqual([]);
    mcp.metadata["authorization_servers"] = [evil.issuer, issuer.issuer];
    await named(options(issuer.issuer)).token(mcp.url);
    expect(evil.requests).toEqual([]);
    expect(await bindings()).toEqual([boundTo(issuer.issuer, "issuer")]);
  });

  it("must be the same wherever it is named", () => {
    const options = { issuer: "https://a.example", client: { ...BY_SECRET, issuer: "https://b.example" } };
    expect(() => service(options)).toThrow(TypeError);
  });

  it("replaces the one that the client was bound to", async () => {
    const { mcp, issuer } = scene;
    await service({ issuer: issuer.issuer }).token(mcp.url);
    const next = await moveTo("next");
    await service({ issuer: next.issuer }).token(mcp.url);
    expect(await bindings()).toEqual([boundTo(next.issuer, "issuer")]);
  });

  it("judges logins without a client too, stored ones among them", async () => {
    const { mcp, issuer } = scene;
    await agent({ client: undefined }).login(mcp.url);
    const elsewhere = agent({ client: undefined, issuer: "https://other.example", login: undefined });
    await expect(elsewhere.token(mcp.url)).rejects.toMatchObject({ code: "login_required" });
    await expect(elsewhere.introspect(mcp.url)).rejects.toMatchObject({ code: "issuer_mismatch" });
    const asking = agent({ client: undefined, issuer: "https://other.example" });
    await expect(asking.login(mcp.url)).rejects.toMatchObject({ code: "issuer_mismatch", class: "refused" });
    expect((await agent({ client: undefined, issuer: issuer.issuer, login: undefined }).token(mcp.url)).value).toBe(
      "access-as-1",
    );
  });

  it("is held against the origin of a server of 2025-03-26", async () => {
    const { mcp } = scene;
    for (const path of ["/mcp", ""])
      mcp.routes[`/.well-known/oauth-protected-resource${path}`] = { status: 404, text: "" };
    for (const client of [BY_SECRET, undefined]) {
      const legacy = agent({ client, legacyDiscovery: true, issuer: scene.issuer.issuer });
      await expect(legacy.login(mcp.url)).rejects.toMatchObject({ code: "issuer_mismatch" });
    }
  });

  it("does not finish a login that began at another one", async () => {
    const { mcp, login } = scene;
    const begun = await agent({ client: undefined }).beginLogin(mcp.url, "http://127.0.0.1:49152/callback");
    const session = await login.open({ resource: mcp.url, issuer: "", signal: new AbortController().signal });
    const other = agent({ client: undefined, issuer: "https://other.example" });
    await expect(other.finishLogin(begun, session)).rejects.toMatchObject({ code: "issuer_mismatch" });
    expect(scene.issuer.to(TOKEN)).toEqual([]);
  });
});

describe("a person whose client has a secret or a key", () => {
  const asked: IssuerQuestion[] = [];
  const answering = (answer: boolean) => async (question: IssuerQuestion) => {
    asked.push(question);
    return answer;
  };
  beforeEach(() => void asked.splice(0));

  it("is refused where nobody can be asked, also in two steps", async () => {
    const { mcp, issuer } = scene;
    await expect(agent({}).login(mcp.url)).rejects.toMatchObject(UNBOUND);
    const { key: privateKey } = await clientKey();
    const byKey = agent({ client: { clientId: "prod", privateKey } });
    await expect(byKey.beginLogin(mcp.url, "http://127.0.0.1:49152/callback")).rejects.toMatchObject(UNBOUND);
    nothingSent(issuer);
  });

  it("is asked once, and not again after a logout", async () => {
    const { mcp, issuer } = scene;
    const first = agent({ confirmIssuer: answering(true) });
    await first.login(mcp.url);
    expect(asked).toEqual([{ clientId: "prod", issuer: issuer.issuer, server: mcp.url }]);
    expect(await bindings()).toEqual([boundTo(issuer.issuer, "confirmation")]);
    await first.logout(mcp.url);
    await agent({ confirmIssuer: answering(false) }).login(mcp.url);
    expect(asked).toHaveLength(1);
  });

  it("who says no sends nothing, and is bound to nothing", async () => {
    const { mcp, issuer } = scene;
    await expect(agent({ confirmIssuer: answering(false) }).login(mcp.url)).rejects.toMatchObject(UNBOUND);
    nothingSent(issuer);
    expect(await bindings()).toEqual([]);
  });

  it("is not asked for a machine, nor in a flow on another device without an answer", async () => {
    const { mcp, issuer } = scene;
    await expect(service({ confirmIssuer: answering(true) }).token(mcp.url)).rejects.toMatchObject(UNBOUND);
    expect(asked).toEqual([]);
    issuer.metadata["device_authorization_endpoint"] = `${issuer.issuer}/device`;
    await expect(agent({ flow: "device" }).login(mcp.url)).rejects.toMatchObject(UNBOUND);
    expect(issuer.to("/pool/device")).toEqual([]);
  });
});

describe("a client without a secret", () => {
  const PUBLIC = { clientId: "prod" };

  it("needs no issuer to log in, is bound by that, and goes to no other issuer", async () => {
    const { mcp, issuer } = scene;
    await agent({ client: PUBLIC }).login(mcp.url);
    expect(await bindings()).toEqual([boundTo(issuer.issuer, "use")]);
    await agent({ client: PUBLIC }).logout(mcp.url);
    const evil = await moveTo("evil");
    await expect(agent({ client: PUBLIC }).login(mcp.url)).rejects.toMatchObject({ code: "issuer_changed" });
    nothingSent(evil);
  });

  it("is not bound by a login that failed", async () => {
    scene.issuer.routes[TOKEN] = { status: 400, json: { error: "invalid_grant" } };
    await expect(agent({ client: PUBLIC }).login(scene.mcp.url)).rejects.toMatchObject({ code: "invalid_grant" });
    expect(await bindings()).toEqual([]);
  });

  it("vouches with its login for no secret that it gets later", async () => {
    const evil = await moveTo("evil");
    await agent({ client: PUBLIC }).login(scene.mcp.url);
    await expect(service().token(scene.mcp.url)).rejects.toMatchObject(UNBOUND);
    await scene.store.removeBinding({ profile: "default", clientId: "prod" });
    await expect(service().token(scene.mcp.url)).rejects.toMatchObject(UNBOUND);
    expect(evil.to(TOKEN)).toHaveLength(1);
    await service({ trustNamedIssuer: true }).token(scene.mcp.url);
    expect(await bindings()).toEqual([boundTo(evil.issuer, "trust-named-issuer")]);
  });
});

describe("a login of the time before bindings", () => {
  const forget = () => scene.store.removeBinding({ profile: "default", clientId: "prod" });

  it("still says where its client belongs, and that is kept when it ends", async () => {
    const { mcp, issuer } = scene;
    const trusting = service({ trustNamedIssuer: true });
    await trusting.token(mcp.url);
    await forget();
    await service().token(mcp.url, { forceRefresh: true });
    expect(await bindings()).toEqual([boundTo(issuer.issuer, "earlier-login")]);
    await forget();
    await service().logout(mcp.url);
    expect(await bindings()).toEqual([boundTo(issuer.issuer, "earlier-login")]);
    await service().token(mcp.url);
  });

  it("keeps its client from every other issuer, also from one that is to be trusted", async () => {
    await service({ trustNamedIssuer: true }).token(scene.mcp.url);
    await forget();
    const evil = await moveTo("evil");
    for (const client of [BY_SECRET, { clientId: "prod" }]) {
      const login = agent({ client, trustNamedIssuer: true }).login(scene.mcp.url);
      await expect(login).rejects.toMatchObject({ code: "issuer_changed" });
    }
    nothingSent(evil);
  });

  it("of several issuers counts at each of them", async () => {
    const { mcp, issuer } = scene;
    await agent({ trustNamedIssuer: true }).login(mcp.url);
    const next = await moveTo("next");
    await agent({ issuer: next.issuer, loginHint: "work" }).login(mcp.url);
    await forget();
    await agent({ loginHint: "work" }).login(mcp.url);
    mcp.metadata["authorization_servers"] = [issuer.issuer];
    await forget();
    await agent({}).login(mcp.url);
    expect(next.to(TOKEN).length + issuer.to(TOKEN).length).toBe(4);
  });
});

describe("a machine's token from an issuer", () => {
  it("that its client is not bound to any more is not asked for there again", async () => {
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

  it("is no reason to refuse an issuer that the user names, but to trust none that is to be bound", async () => {
    const { mcp, issuer } = scene;
    const trusting = service({ store: store(), trustNamedIssuer: true });
    await expect(trusting.token(mcp.url)).rejects.toMatchObject({ code: "store_failed" });
    nothingSent(issuer);
    const said: string[] = [];
    await service({ store: store(), issuer: issuer.issuer, onProgress: ({ text }) => said.push(text) }).token(mcp.url);
    expect(said.join()).toContain("the disk is full");
  });
});

describe("an assertion", () => {
  const workload = async (aud: unknown) =>
    agent({ client: { clientId: "prod" }, grant: await tokenFor(aud), issuer: scene.issuer.issuer });

  it.each<[string, () => unknown]>([
    ["the issuer", () => scene.issuer.issuer],
    ["the token endpoint", () => `${scene.issuer.issuer}/token`],
    ["the issuer among others", () => ["https://other.example", scene.issuer.issuer]],
  ])("for %s is sent", async (_what, aud) => {
    await (await workload(aud())).token(scene.mcp.url);
    expect(scene.issuer.to(TOKEN)).toHaveLength(1);
  });

  it.each<[string, unknown, string]>([
    ["another issuer", "https://honest.example", "https://honest.example"],
    ["several others", ["https://a.example", "https://b.example"], "https://b.example"],
    ["nobody", undefined, "has no aud"],
  ])("for %s is not, and both sides are named", async (_what, aud, said) => {
    const error = await (await workload(aud)).token(scene.mcp.url).catch((thrown: unknown) => thrown as Error);
    expect(error).toMatchObject({ code: "wrong_audience", class: "refused", message: expect.stringContaining(said) });
    expect(error).toMatchObject({ message: expect.stringContaining(scene.issuer.issuer) });
    nothingSent(scene.issuer);
  });
});
