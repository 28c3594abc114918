import { describe, expect, it } from "vitest";
import type { AgentClientOptions } from "../../../src/oauth/agent.js";
import {
  DOCUMENT_PORTS,
  DOCUMENT_REDIRECTS,
  FIRST_DOCUMENT_REDIRECT,
  findDocumentUrlProblem,
  refuseDocument,
  usesDocument,
} from "../../../src/oauth/client/metadata-document.js";
import { memoryStore } from "../../../src/store/memory.js";
import { pendingError } from "../../helpers/captured.js";
import { madeClient } from "../../helpers/grant.js";
import type { Reply, Scene } from "../../helpers/issuer.js";
import { startScene } from "../../helpers/issuer.js";

const DOCUMENT = "https://client.example/agent.json";
const DAY = 24 * 3_600_000;
const REGISTER = "/pool/register";
const TOKEN = "/pool/token";
const AUTHORIZE = "/pool/authorize";

/** A scene whose issuer supports documents. */
async function sceneWithDocuments(): Promise<Scene> {
  const scene = await startScene();
  scene.issuer.metadata["client_id_metadata_document_supported"] = true;
  return scene;
}

const login = ({ agent, mcp }: Scene, options: Partial<AgentClientOptions> = {}) =>
  agent({ clientMetadataUrl: DOCUMENT, ...options }).login(mcp.url);

const clients = ({ login: { urls } }: Scene) => urls.map((url) => url.searchParams.get("client_id"));

const ofDocument = ({ url }: { url: string }) => url.includes(encodeURIComponent(DOCUMENT));

/** The issuer answers authorization requests of the document with this. */
function answerDocument({ issuer }: Scene, reply: Reply): void {
  issuer.routes[AUTHORIZE] = (request, nth) =>
    ofDocument(request) ? reply : { status: 302, headers: { location: issuer.callbackTo(request, nth) } };
}

describe("a metadata document that the issuer refuses", () => {
  it.each([400, 401, 403, 404])(
    "with a page (HTTP %d) is replaced by a registration in the same login",
    async (status) => {
      const scene = await sceneWithDocuments();
      answerDocument(scene, { status, text: "unknown client" });
      const said: string[] = [];
      await login(scene, { onProgress: ({ text }) => said.push(text) });
      expect(clients(scene)).toEqual(["client-as-1"]);
      expect(said).toEqual([
        `"${scene.issuer.issuer}" refuses the client metadata document "${DOCUMENT}"; a registered client is used instead`,
      ]);
    },
  );

  it("is not tried again within a day, and then once more", async () => {
    const scene = await sceneWithDocuments();
    const { issuer, clock } = scene;
    answerDocument(scene, { status: 400, text: "" });
    await login(scene);
    const tried = () => issuer.to(AUTHORIZE).filter(ofDocument).length;
    expect(tried()).toBe(1);
    await login(scene);
    expect([tried(), issuer.to(REGISTER).length]).toEqual([1, 1]);
    await clock.sleep(DAY, new AbortController().signal);
    await login(scene);
    expect([tried(), issuer.to(REGISTER).length]).toEqual([2, 1]);
    expect(clients(scene)).toEqual(["client-as-1", "client-as-1", "client-as-1"]);
  });

  it("is used all the same where the issuer refuses the registration, or registers nothing", async () => {
    const scene = await sceneWithDocuments();
    const { issuer, login: user } = scene;
    let isBrowser = false;
    user.before = () => {
      isBrowser = true;
    };
    // A page that only a browser can read.
    issuer.routes[AUTHORIZE] = (request, nth) =>
      isBrowser
        ? { status: 302, headers: { location: issuer.callbackTo(request, nth) } }
        : { status: 403, text: "robot?" };
    issuer.routes[REGISTER] = { status: 403, json: { error: "access_denied" } };
    await login(scene);
    isBrowser = false;
    delete issuer.metadata["registration_endpoint"];
    await login(scene);
    expect(clients(scene)).toEqual([DOCUMENT, DOCUMENT]);
  });

  it("at the token endpoint is replaced at the next login", async () => {
    const scene = await sceneWithDocuments();
    const { issuer } = scene;
    issuer.routes[TOKEN] = (request, nth) =>
      new URLSearchParams(request.body).get("client_id") === DOCUMENT
        ? { status: 401, json: { error: "invalid_client" } }
        : { json: issuer.tokens(nth) };
    expect(await pendingError(login(scene))).toMatchObject({
      code: "invalid_client",
      hint: /^log in again: a client is/,
    });
    await login(scene);
    expect(clients(scene)).toEqual([DOCUMENT, "client-as-1"]);
  });

  it.each(["invalid_client", "unauthorized_client", "invalid_client_metadata"])(
    "with %s in the callback is replaced at the next login",
    async (error) => {
      const scene = await sceneWithDocuments();
      const { issuer } = scene;
      issuer.callback = { error, code: null };
      expect(await pendingError(login(scene))).toMatchObject({ code: error, hint: /^log in again: a client is/ });
      issuer.callback = {};
      await login(scene);
      expect(clients(scene)).toEqual([DOCUMENT, "client-as-1"]);
    },
  );

  it("stays the client after the user has denied the login", async () => {
    const scene = await sceneWithDocuments();
    scene.issuer.callback = { error: "access_denied", code: null };
    expect(await pendingError(login(scene))).toMatchObject({ code: "access_denied" });
    scene.issuer.callback = {};
    await login(scene);
    expect(clients(scene)).toEqual([DOCUMENT, DOCUMENT]);
  });
});

describe("a token of a metadata document that the MCP server rejects", () => {
  it("right after the login leads to a registration at the next one", async () => {
    const scene = await sceneWithDocuments();
    const { mcp, agent } = scene;
    const client = agent({ clientMetadataUrl: DOCUMENT });
    await client.login(mcp.url);
    mcp.accepts = () => clients(scene).length > 1;
    expect((await client.fetch(mcp.url)).status).toBe(200);
    expect(clients(scene)).toEqual([DOCUMENT, "client-as-1"]);
  });

  it("is not meant by a login that the user asks for", async () => {
    const scene = await sceneWithDocuments();
    for (let nth = 0; nth < 2; nth++) await login(scene);
    expect(clients(scene)).toEqual([DOCUMENT, DOCUMENT]);
  });

  it("long after the login leads to a login with the document", async () => {
    const scene = await sceneWithDocuments();
    const { mcp, agent, clock, issuer } = scene;
    issuer.tokenAnswer = { refresh_token: undefined, expires_in: 36_000 };
    const client = agent({ clientMetadataUrl: DOCUMENT });
    await client.login(mcp.url);
    await clock.sleep(3_600_000, new AbortController().signal);
    mcp.accepts = () => clients(scene).length > 1;
    expect((await client.fetch(mcp.url)).status).toBe(200);
    expect(clients(scene)).toEqual([DOCUMENT, DOCUMENT]);
  });
});

describe("a metadata document", () => {
  const NOW = 1_800_000_000_000;
  const SERVER = { takesClientIdDocuments: true, registrationEndpoint: "https://as.example/register" };

  it.each<[boolean, string, number | undefined, object, object]>([
    [true, "where the issuer takes it", undefined, {}, {}],
    [false, "where it takes none", undefined, { takesClientIdDocuments: false }, {}],
    [false, "beside a client that is registered", undefined, {}, { preRegistered: { clientId: "a" } }],
    [false, "without an address", undefined, {}, { clientMetadataUrl: undefined }],
    [false, "that is to be none", undefined, {}, { clientMetadataUrl: "none" }],
    [false, "right after a refusal", NOW, {}, {}],
    [false, "on the day of a refusal", NOW - DAY + 1, {}, {}],
    [true, "a day after a refusal", NOW - DAY, {}, {}],
    [true, "before a refusal, by a clock that was set back", NOW + 1, {}, {}],
    [true, "after a refusal by an issuer that registers nothing", NOW, { registrationEndpoint: undefined }, {}],
  ])("is the client, %s: %s", async (isUsed, _when, refusedAt, server, over) => {
    const store = memoryStore();
    const client = { ...madeClient(), clientId: DOCUMENT, issuer: "https://as.example" };
    if (refusedAt === undefined) await store.saveClient({ ...client, registeredAt: [NOW] }, DOCUMENT);
    else await refuseDocument(store, client, refusedAt);
    const use = { store, preRegistered: undefined, clientMetadataUrl: DOCUMENT, now: NOW, ...over };
    expect(await usesDocument({ ...use, server: { ...SERVER, ...server } as never }, client.issuer)).toBe(isUsed);
  });
});

it("asks for the redirect address with a fixed port, which the document has", async () => {
  const scene = await sceneWithDocuments();
  await login(scene);
  await login(scene, { clientMetadataUrl: undefined });
  expect(scene.login.opened.map(({ preferredRedirectUri }) => preferredRedirectUri)).toEqual([
    FIRST_DOCUMENT_REDIRECT,
    undefined,
  ]);
});

it("has the redirect addresses of both loopback hosts, without a port and with each fixed one", () => {
  const ports = ["", ...DOCUMENT_PORTS.map((port) => `:${port}`)];
  const redirects = ports.flatMap((port) => ["127.0.0.1", "localhost"].map((host) => `http://${host}${port}/callback`));
  expect(DOCUMENT_REDIRECTS).toEqual(redirects);
  expect(FIRST_DOCUMENT_REDIRECT).toBe(redirects[2]);
});

it.each([
  ["https://client.example/agent.json", undefined],
  ["https://client.example:8443/agent.json?v=2", undefined],
  ["http://client.example/agent.json", "must be an https address"],
  ["agent.json", "must be an https address"],
  ["https://user@client.example/x", "must have no user name and no password"],
  ["https://:pw@client.example/x", "must have no user name and no password"],
  ["https://client.example/", "must have a path"],
  ["https://client.example/x#", "must have no fragment"],
  ["https://client.example/a/../x", "must be written as https://client.example/x"],
  ["https://client.example/%2e/x", "must be written as https://client.example/x"],
  ["https://client.example:443/x", "must be written as https://client.example/x"],
  ["https://CLIENT.example/x", "must be written as https://client.example/x"],
])("the address %s of a document: %s", (url, problem) => {
  expect(findDocumentUrlProblem(url)).toBe(problem);
});
