import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/http/deadline.js";
import type { AgentClientOptions } from "../../../src/oauth/agent.js";
import { redirectForm } from "../../../src/oauth/client/registration.js";
import { pendingError } from "../../helpers/captured.js";
import { type Reply, reset, type Scene, silence, startScene } from "../../helpers/issuer.js";
import { remedy } from "../../helpers/remedy.js";

const FORM = "http://127.0.0.1/callback";

async function login({ agent, mcp }: Scene, options: Partial<AgentClientOptions> = {}) {
  return agent(options).login(mcp.url);
}

const registered = ({ issuer }: Scene, nth = 0) =>
  JSON.parse(issuer.to("/pool/register")[nth]?.body ?? "null") as Record<string, unknown>;

it("asks a server that wants to be left alone no second time before that", async () => {
  const scene = await startScene();
  scene.issuer.routes["/pool/register"] = { status: 429, headers: { "retry-after": "120" }, text: "" };
  // The store has the times of the system.
  const options = { clock: systemClock };
  const answers = [await pendingError(login(scene, options)), await pendingError(login(scene, options))];
  for (const error of answers) {
    expect(error).toMatchObject({ class: "unavailable", status: 429, retryAfter: 120 });
    expect(error).toMatchObject({
      message: expect.stringContaining("asks to wait 120 s before the next registration"),
    });
  }
  expect(scene.issuer.to("/pool/register")).toHaveLength(1);
});

describe("which client is used", () => {
  it("[11] registers one where none is given, and logs in with it (2026-07-28)", async () => {
    const scene = await startScene();
    await login(scene);
    expect(scene.login.requested().get("client_id")).toBe("client-as-1");
    expect(await scene.store.readClient(scene.issuer.issuer, FORM)).toMatchObject({
      clientId: "client-as-1",
      source: "dynamic",
    });
  });

  it("[12] prefers the one known beforehand, then the metadata document, then a registration, then says what to do (2025-11-25)", async () => {
    const scene = await startScene();
    const { issuer, login: person } = scene;
    const clientMetadataUrl = "https://client.example/agent.json";
    issuer.metadata["client_id_metadata_document_supported"] = true;
    await login(scene, { clientMetadataUrl, client: { clientId: "known" } });
    await login(scene, { clientMetadataUrl });
    expect(issuer.to("/pool/register")).toEqual([]);
    await login(scene);
    expect(person.urls.map((url) => url.searchParams.get("client_id"))).toEqual([
      "known",
      clientMetadataUrl,
      "client-as-1",
    ]);
    delete issuer.metadata["registration_endpoint"];
    const known = await scene.store.readClient(issuer.issuer, FORM);
    if (known) await scene.store.saveClient({ ...known, isRefused: true }, FORM);
    expect(await pendingError(login(scene))).toMatchObject({
      code: "no_registration",
      class: "auth",
      message: expect.stringContaining(issuer.issuer),
      remedy: remedy({
        action: "configure",
        option: "client",
        clientIssuer: issuer.issuer,
        also: "clientMetadataUrl",
      }),
    });
  });

  it("[13] uses the address of its metadata document as the client id, without a secret (2025-11-25)", async () => {
    const scene = await startScene();
    const clientMetadataUrl = "https://client.example/agent.json";
    scene.issuer.metadata["client_id_metadata_document_supported"] = true;
    await login(scene, { clientMetadataUrl });
    const form = scene.issuer.form("/pool/token");
    expect(form.get("client_id")).toBe(clientMetadataUrl);
    expect(form.get("client_secret")).toBeNull();
    expect(scene.issuer.to("/pool/token")[0]?.headers.authorization).toBeUndefined();
  });

  it.each([
    "http://client.example/agent.json",
    "https://client.example",
    "https://client.example/",
    "https://a@client.example/x",
    "https://client.example/x#y",
    "agent.json",
  ])(
    "[13] refuses %s as the address of a metadata document: https with a path (2025-11-25)",
    async (clientMetadataUrl) => {
      const scene = await startScene();
      scene.issuer.metadata["client_id_metadata_document_supported"] = true;
      expect(await pendingError(login(scene, { clientMetadataUrl }))).toMatchObject({ code: "usage", class: "usage" });
      expect(scene.login.urls).toEqual([]);
    },
  );

  it.each([undefined, false, "true", 1])(
    "[14] registers instead where the issuer's word on metadata documents is %j (2025-11-25)",
    async (supported) => {
      const scene = await startScene();
      scene.issuer.metadata["client_id_metadata_document_supported"] = supported;
      await login(scene, { clientMetadataUrl: "https://client.example/agent.json" });
      expect(scene.login.requested().get("client_id")).toBe("client-as-1");
    },
  );

  it("[15] uses a client id and secret that it was given, and neither registers nor drops them (2025-11-25)", async () => {
    const scene = await startScene();
    const { issuer } = scene;
    issuer.routes["/pool/authorize"] = { status: 400, text: "unknown client" };
    expect(
      await pendingError(login(scene, { client: { clientId: "known", clientSecret: "hush-hush" } })),
    ).toMatchObject({
      class: "refused",
    });
    expect(scene.login.requested().get("client_id")).toBe("known");
    expect(issuer.to("/pool/register")).toEqual([]);
    expect(issuer.to("/pool/authorize")).toHaveLength(1);
  });

  it.each<[string, AgentClientOptions["client"] & object, unknown, string]>([
    ["Basic where the issuer lists nothing", { clientId: "id", clientSecret: "hush-hush" }, undefined, "basic"],
    [
      "Post before Basic",
      { clientId: "id", clientSecret: "hush-hush" },
      ["none", "client_secret_basic", "client_secret_post"],
      "post",
    ],
    ["Post where only that is listed", { clientId: "id", clientSecret: "hush-hush" }, ["client_secret_post"], "post"],
    [
      "what it was told",
      { clientId: "id", clientSecret: "hush-hush", authMethod: "client_secret_post" },
      ["client_secret_basic"],
      "post",
    ],
    ["nothing without a secret", { clientId: "id" }, ["client_secret_basic"], "none"],
  ])("authenticates a client known beforehand by %s", async (_what, client, methods, how) => {
    const scene = await startScene();
    scene.issuer.metadata["token_endpoint_auth_methods_supported"] = methods;
    await login(scene, { client });
    const request = scene.issuer.to("/pool/token")[0];
    const form = scene.issuer.form("/pool/token");
    const way = request?.headers.authorization?.startsWith("Basic ")
      ? "basic"
      : form.has("client_secret")
        ? "post"
        : "none";
    expect(way).toBe(how);
  });

  it("[25] accepts no redirect address that is neither https nor on this machine (2025-06-18)", async () => {
    const scene = await startScene();
    for (const address of ["http://client.example/callback", "com.example.app:/callback", "callback"]) {
      scene.login.redirectUri = address;
      await expect(login(scene), address).rejects.toThrow(TypeError);
    }
    expect(scene.issuer.to("/pool/register")).toEqual([]);
    scene.login.redirectUri = "https://client.example/callback";
    await login(scene);
    expect(registered(scene)["redirect_uris"]).toEqual(["https://client.example/callback"]);
  });
});

describe("registering", () => {
  it("[16] posts its metadata as JSON, with the redirect address of this very login (2025-06-18)", async () => {
    const scene = await startScene();
    scene.mcp.metadata["scopes_supported"] = ["a", "b"];
    await login(scene, { clientName: "My Agent" });
    const request = scene.issuer.to("/pool/register")[0];
    expect(request?.headers["content-type"]).toMatch(/^application\/json/);
    expect(request?.headers.authorization).toBeUndefined();
    expect(registered(scene)).toEqual({
      client_name: "My Agent",
      redirect_uris: [scene.login.redirectUri],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "client_secret_basic",
      application_type: "native",
      scope: "a b",
    });
    expect(scene.login.requested().get("redirect_uri")).toBe(scene.login.redirectUri);
  });

  it("[17] says that it is a native application (2026-07-28)", async () => {
    const scene = await startScene();
    await login(scene);
    expect(registered(scene)["application_type"]).toBe("native");
  });

  it("registers at the address for clients with a certificate where requests show one", async () => {
    const { agent, mcp, issuer } = await startScene();
    issuer.metadata["mtls_endpoint_aliases"] = { registration_endpoint: `${issuer.issuer}/mtls/register` };
    issuer.routes["/pool/mtls/register"] = issuer.routes["/pool/register"] ?? {};
    await agent({ mutualTls: true }).login(mcp.url);
    expect([issuer.to("/pool/mtls/register").length, issuer.to("/pool/register").length]).toEqual([1, 0]);
  });

  it("[35] registers for refresh tokens (2026-07-28)", async () => {
    const scene = await startScene();
    await login(scene);
    expect(registered(scene)["grant_types"]).toContain("refresh_token");
  });

  it("registers for token exchange where the server says that it does that, and without where it then refuses", async () => {
    const scene = await startScene();
    const exchange = "urn:ietf:params:oauth:grant-type:token-exchange";
    scene.issuer.metadata["grant_types_supported"] = ["authorization_code", "refresh_token", exchange];
    scene.mcp.metadata["scopes_supported"] = ["a"];
    const sent: { grant_types: string[]; scope?: string }[] = [];
    scene.issuer.routes["/pool/register"] = ({ body }) => {
      sent.push(JSON.parse(body) as (typeof sent)[number]);
      return sent.length < 4
        ? { status: 400, json: { error: "invalid_client_metadata" } }
        : { status: 201, json: { client_id: "made", client_secret: "hush-hush" } };
    };
    await login(scene);
    const usual = ["authorization_code", "refresh_token"];
    expect(sent.map(({ grant_types, scope }) => [grant_types, scope])).toEqual([
      [[...usual, exchange], "a"],
      [[...usual, exchange], undefined],
      [usual, "a"],
      [usual, undefined],
    ]);
  });

  it.each([
    [["client_secret_post"], "client_secret_post"],
    [["none"], "none"],
    [["private_key_jwt", "none"], "none"],
    [undefined, "client_secret_basic"],
  ])("asks for a way to authenticate that %j has: %s", async (methods, requested) => {
    const scene = await startScene();
    scene.issuer.metadata["token_endpoint_auth_methods_supported"] = methods;
    await login(scene);
    expect(registered(scene)["token_endpoint_auth_method"]).toBe(requested);
  });

  it.each([200, 201])("accepts an answer with HTTP %d", async (status) => {
    const scene = await startScene();
    scene.issuer.routes["/pool/register"] = { status, json: { client_id: "made", client_secret: "hush-hush" } };
    await login(scene);
    expect(scene.login.requested().get("client_id")).toBe("made");
  });

  it.each<[string, Record<string, unknown>, string]>([
    ["no client id", { client_id: undefined }, "client_id"],
    ["an empty client id", { client_id: "" }, "client_id"],
    ["an object as the client id", { client_id: { a: 1 } }, "client_id"],
    ["a client id of 100 KB", { client_id: "x".repeat(100_000) }, "client_id"],
    ["a client id with a line break", { client_id: "a\r\nb" }, "client_id"],
    ["another redirect address", { redirect_uris: ["https://evil.example/callback"] }, "redirect_uris"],
    [
      "one redirect address more",
      { redirect_uris: ["http://127.0.0.1:49152/callback", "https://evil.example/"] },
      "redirect_uris",
    ],
    ["a secret that is no string", { client_secret: 7 }, "client_secret"],
    ["a secret of 9 KB", { client_secret: "x".repeat(9000) }, "client_secret"],
    [
      "a way to authenticate that it does not have",
      { token_endpoint_auth_method: "private_key_jwt" },
      "token_endpoint_auth_method",
    ],
  ])("refuses %s in the answer, and keeps nothing", async (_what, over, field) => {
    const scene = await startScene();
    scene.issuer.registrationAnswer = over;
    expect(await pendingError(login(scene))).toMatchObject({
      class: "refused",
      message: expect.stringContaining(field),
    });
    expect(await scene.store.readClient(scene.issuer.issuer, FORM)).toBeUndefined();
    expect(scene.login.urls).toEqual([]);
  });

  it("takes a client for a public one if the answer repeats the way to authenticate and has no secret", async () => {
    const scene = await startScene();
    scene.issuer.registrationAnswer = { client_secret: undefined, token_endpoint_auth_method: "client_secret_basic" };
    await login(scene);
    const client = await scene.store.readClient(scene.issuer.issuer, FORM);
    expect([client?.authMethod, client?.clientSecret]).toEqual(["none", undefined]);
  });

  it("[18] says what the issuer has against the redirect address, harmless and cut (2026-07-28)", async () => {
    const scene = await startScene();
    const description = `\u001b[31mno loopback${"!".repeat(1000)}`;
    scene.issuer.routes["/pool/register"] = {
      status: 400,
      json: { error: "invalid_redirect_uri", error_description: description },
    };
    const error = await login(scene).catch((thrown: unknown) => thrown as Error);
    expect(error).toMatchObject({ code: "invalid_redirect_uri", class: "remote", status: 400 });
    expect((error as Error).message).toContain("\\e[31mno loopback!!!");
    expect((error as Error).message.length).toBeLessThan(500);
  });

  it("uses one registration for every port of this machine", async () => {
    const scene = await startScene();
    await login(scene);
    scene.login.redirectUri = "http://127.0.0.1:50000/callback";
    await login(scene);
    expect(scene.issuer.to("/pool/register")).toHaveLength(1);
    expect(scene.login.opened.map(({ preferredRedirectUri }) => preferredRedirectUri)).toEqual([
      undefined,
      "http://127.0.0.1:49152/callback",
    ]);
  });

  it.each([
    ["http://127.0.0.1:1234/callback", "http://127.0.0.1/callback"],
    ["http://localhost:1234/callback", "http://localhost/callback"],
    ["https://client.example:8443/cb", "https://client.example:8443/cb"],
  ])("holds %s for the form %s", (address, form) => {
    expect(redirectForm(address)).toBe(form);
  });

  it("registers once for logins that begin at once", async () => {
    const scene = await startScene();
    const other = await startScene();
    other.mcp.metadata["authorization_servers"] = [scene.issuer.issuer];
    const agent = scene.agent();
    await Promise.all([agent.login(scene.mcp.url), agent.login(other.mcp.url)]);
    expect(scene.issuer.to("/pool/register")).toHaveLength(1);
  });

  it("registers again when its secret expires within a minute, and not before", async () => {
    const scene = await startScene();
    const inAnHour = scene.clock.epoch() / 1000 + 3600;
    scene.issuer.registrationAnswer = { client_secret_expires_at: inAnHour };
    await login(scene);
    await scene.clock.sleep(3_539_000, new AbortController().signal);
    await login(scene);
    expect(scene.issuer.to("/pool/register")).toHaveLength(1);
    await scene.clock.sleep(2000, new AbortController().signal);
    await login(scene);
    expect(scene.issuer.to("/pool/register")).toHaveLength(2);
    expect(scene.login.requested(2).get("client_id")).toBe("client-as-2");
  });

  it.each<[string, Reply]>([
    ["rejects the request", { status: 400, text: "unknown client" }],
    ["fails at the client", { status: 500, text: "" }],
    ["redirects to a page for errors", { status: 303, headers: { location: "/error?error=invalid_client" } }],
    [
      "redirects to one at another host",
      { status: 302, headers: { location: "https://a.example/?error=unauthorized_client" } },
    ],
    [
      "redirects to one about the address",
      { status: 307, headers: { location: "?error=invalid_redirect_uri&state=x" } },
    ],
  ])(
    "registers again, before the browser opens, where an issuer that has forgotten the client %s",
    async (_what, reply) => {
      const scene = await startScene();
      const { issuer, login: person, log } = scene;
      await login(scene);
      const answer = issuer.routes["/pool/authorize"];
      issuer.routes["/pool/authorize"] = (request, nth) => {
        if (request.url.includes("client_id=client-as-1")) return reply;
        return typeof answer === "function" ? answer(request, nth) : {};
      };
      log.length = 0;
      const traced: unknown[] = [];
      await login(scene, { onTrace: (entry) => void traced.push(entry) });
      expect(traced).toContainEqual({
        step: "authorization",
        method: "GET",
        url: `${issuer.origin}/pool/authorize`,
        used: false,
        why: "the issuer no longer knows this client; another one is registered",
      });
      expect(person.urls.map((url) => url.searchParams.get("client_id"))).toEqual(["client-as-1", "client-as-2"]);
      expect(log.indexOf("as POST /pool/register")).toBeLessThan(log.indexOf("person authorize"));
      expect(await scene.store.readClient(issuer.issuer, FORM)).toMatchObject({ clientId: "client-as-2" });
    },
  );

  it("registers again once in a login, not for ever", async () => {
    const scene = await startScene();
    await login(scene);
    scene.issuer.routes["/pool/authorize"] = { status: 400, text: "unknown client" };
    expect(await pendingError(login(scene))).toMatchObject({ class: "refused" });
    expect(scene.issuer.to("/pool/register")).toHaveLength(2);
  });

  it.each<[string, Reply]>([
    ["is longer than a megabyte", { text: "x".repeat(1_100_000) }],
    ["is no JSON and says that it is", { headers: { "content-type": "application/json" }, text: "<html>" }],
    ["breaks off", reset],
    ["does not come", silence],
    ["fails with 503", { status: 503, text: "" }],
    ["redirects to a login that has an error", { status: 302, headers: { location: "/login?error=session_expired" } }],
    ["redirects to an address that cannot be read", { status: 302, headers: { location: "http://[" } }],
  ])(
    "keeps a registration, and opens the browser, where the login page %s for anything but a browser",
    async (_what, answer) => {
      const scene = await startScene();
      const { issuer, login: person, agent, mcp } = scene;
      await login(scene);
      const usual = issuer.routes["/pool/authorize"];
      issuer.routes["/pool/authorize"] = (request, nth) =>
        nth === 2 ? answer : typeof usual === "function" ? usual(request, nth) : {};
      await agent({ timeoutMs: 5_000 }).login(mcp.url);
      expect(person.urls).toHaveLength(2);
      expect(issuer.to("/pool/authorize")).toHaveLength(3);
      expect(issuer.to("/pool/register")).toHaveLength(1);
    },
  );

  it("opens no browser after the caller has left while the login page was requested", async () => {
    const scene = await startScene();
    await login(scene);
    const controller = new AbortController();
    scene.issuer.routes["/pool/authorize"] = { raw: () => controller.abort() };
    const work = scene.agent().login(scene.mcp.url, { signal: controller.signal });
    expect(await pendingError(work)).toMatchObject({ code: "aborted" });
    expect(scene.login.urls).toHaveLength(1);
  });

  it("keeps a registration that the issuer sends on to its login", async () => {
    const scene = await startScene();
    await login(scene);
    await login(scene);
    expect(scene.issuer.to("/pool/register")).toHaveLength(1);
  });
});

describe("clients of several issuers", () => {
  it("[5] keeps one registration for each issuer (2026-07-28)", async () => {
    const scene = await startScene();
    const other = await scene.another("other");
    await login(scene);
    scene.mcp.metadata["authorization_servers"] = [other.issuer];
    await login(scene);
    scene.mcp.metadata["authorization_servers"] = [scene.issuer.issuer];
    await login(scene);
    expect(scene.login.urls.map((url) => url.searchParams.get("client_id"))).toEqual([
      "client-as-1",
      "client-other-1",
      "client-as-1",
    ]);
    expect(scene.issuer.to("/pool/register")).toHaveLength(1);
  });

  it("[19] shows a new issuer nothing of the old one's client or tokens (2026-07-28)", async () => {
    const scene = await startScene();
    const other = await scene.another("other");
    await login(scene);
    scene.mcp.metadata["authorization_servers"] = [other.issuer];
    scene.mcp.accepts = (token) => token.startsWith("access-other");
    expect((await scene.agent().fetch(scene.mcp.url)).status).toBe(200);
    const seen = JSON.stringify(other.requests);
    for (const secret of ["client-as-1", "secret-as-1", "access-as", "refresh-as", "code-as"])
      expect(seen).not.toContain(secret);
    expect((await scene.store.list()).map(({ issuer }) => issuer)).toEqual([other.issuer]);
  });

  it("[19] does not use a client known to one issuer with another (2026-07-28)", async () => {
    const scene = await startScene();
    const other = await scene.another("other");
    scene.mcp.metadata["authorization_servers"] = [other.issuer];
    const client = { clientId: "shared-client", clientSecret: "hush-hush", issuer: scene.issuer.issuer };
    const error = await login(scene, { client }).catch((thrown: unknown) => thrown as Error);
    expect(error).toMatchObject({ code: "issuer_mismatch", class: "refused" });
    expect((error as Error).message).toContain(scene.issuer.issuer);
    expect((error as Error).message).toContain(other.issuer);
    expect(other.to("/pool/token")).toEqual([]);
    expect(JSON.stringify(other.requests)).not.toContain("shared-client");
  });

  it("[19] holds a client that names no issuer to the one it was used with first (2026-07-28)", async () => {
    const scene = await startScene();
    const other = await scene.another("other");
    const client = { clientId: "shared-client", clientSecret: "hush-hush" };
    await login(scene, { client });
    scene.mcp.metadata["authorization_servers"] = [other.issuer];
    expect(await pendingError(login(scene, { client }))).toMatchObject({ code: "issuer_changed" });
    expect(JSON.stringify(other.requests)).not.toContain("shared-client");
    await login(scene, { client: { ...client, issuer: other.issuer } });
    expect(other.to("/pool/token")).toHaveLength(1);
  });
});
