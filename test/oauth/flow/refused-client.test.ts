import { describe, expect, it } from "vitest";
import type { AgentClientOptions } from "../../../src/oauth/agent.js";
import { obtainClient, refuseClient } from "../../../src/oauth/client/registration.js";
import { OAuthHttp } from "../../../src/oauth/http/http.js";
import { decodeLogin, encodeLogin } from "../../../src/oauth/login/login-codec.js";
import { memoryStore } from "../../../src/store/memory.js";
import { pendingError } from "../../helpers/captured.js";
import { madeClient } from "../../helpers/grant.js";
import { type Reply, type Scene, serverMetadata, startScene } from "../../helpers/issuer.js";
import { loginAt } from "../../helpers/remedy.js";

const FORM = "http://127.0.0.1/callback";
const TOKEN = "/pool/token";
const REGISTER = "/pool/register";
const HOUR = 3_600_000;
const INVALID: Reply = { status: 401, json: { error: "invalid_client" } };

const signal = new AbortController().signal;
const login = ({ agent, mcp }: Scene, options: Partial<AgentClientOptions> = {}) => agent(options).login(mcp.url);

describe("a client that the token endpoint does not take", () => {
  it("is replaced at the next login, whatever the login page says of it", async () => {
    const scene = await startScene();
    const { issuer, store } = scene;
    issuer.routes[TOKEN] = (_request, nth) => (nth <= 2 ? INVALID : { json: issuer.tokens(nth) });
    expect(await pendingError(login(scene))).toMatchObject({
      code: "invalid_client",
      class: "auth",
      hint: "log in again: another client is registered for that",
    });
    expect(issuer.to(TOKEN)).toHaveLength(2);
    expect(await store.readClient(issuer.issuer, FORM)).toMatchObject({ clientId: "client-as-1", isRefused: true });
    await login(scene);
    expect(await store.readClient(issuer.issuer, FORM)).toMatchObject({ clientId: "client-as-2" });
    await login(scene);
    expect(issuer.to(REGISTER)).toHaveLength(2);
  });

  it("is not replaced again and again where the issuer rejects each: the hint names another way", async () => {
    const scene = await startScene();
    const { issuer, clock } = scene;
    issuer.routes[TOKEN] = INVALID;
    expect(await pendingError(login(scene))).toMatchObject({
      hint: "log in again: another client is registered for that",
    });
    expect(await pendingError(login(scene))).toMatchObject({
      code: "invalid_client",
      hint: "give the client it knows as client",
      remedy: { action: "configure", option: "client" },
    });
    // One that was used for hours was forgotten by its issuer.
    issuer.routes[TOKEN] = (_request, nth) => ({ json: issuer.tokens(nth) });
    await login(scene);
    await clock.sleep(HOUR, signal);
    issuer.routes[TOKEN] = INVALID;
    expect(await pendingError(login(scene))).toMatchObject({
      hint: "log in again: another client is registered for that",
    });
  });

  it("is not mistaken for another one that was registered since", async () => {
    const store = memoryStore();
    const client = { ...madeClient(), clientId: "newer" };
    await store.saveClient(client, FORM);
    await refuseClient({ store, signal }, { ...client, clientId: "older" }, FORM);
    expect(await store.readClient(client.issuer, FORM)).toEqual(client);
  });

  it("is distinguished from one whose login failed for another reason", async () => {
    const scene = await startScene();
    const { issuer } = scene;
    issuer.routes[TOKEN] = { status: 400, json: { error: "invalid_grant" } };
    for (let nth = 0; nth < 2; nth++) expect(await pendingError(login(scene))).toMatchObject({ code: "invalid_grant" });
    expect(issuer.to(REGISTER)).toHaveLength(1);
  });

  it("is not replaced where it is pre-registered", async () => {
    const scene = await startScene();
    scene.issuer.routes[TOKEN] = INVALID;
    const error = await login(scene, { client: { clientId: "known" } }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "invalid_client" });
    expect(error).not.toHaveProperty("hint");
    expect(scene.issuer.to(REGISTER)).toEqual([]);
  });

  it("is replaced at once in a device login, where it was registered in an earlier one", async () => {
    const scene = await startScene();
    const { issuer } = scene;
    await login(scene, { flow: "device" });
    const code = { json: issuer.device() };
    issuer.routes["/pool/device"] = ({ headers, body }) =>
      `${body} ${atob(headers.authorization?.split(" ")[1] ?? "")}`.includes("client-as-1") ? INVALID : code;
    await login(scene, { flow: "device" });
    expect(issuer.to(REGISTER)).toHaveLength(2);
    issuer.routes["/pool/device"] = INVALID;
    expect(await pendingError(login(scene, { flow: "device" }))).toMatchObject({ code: "invalid_client" });
    expect(issuer.to(REGISTER)).toHaveLength(3);
  });

  it("is not replaced in the login that it was registered in", async () => {
    const scene = await startScene();
    scene.issuer.routes["/pool/device"] = INVALID;
    expect(await pendingError(login(scene, { flow: "device" }))).toMatchObject({ code: "invalid_client" });
    expect(scene.issuer.to(REGISTER)).toHaveLength(1);
  });
});

describe("the way in which a client proves itself", () => {
  /** An issuer that lists both ways and takes only the other one than it registers. */
  async function mistaken() {
    const scene = await startScene();
    const { issuer } = scene;
    issuer.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic", "client_secret_post"];
    issuer.routes[TOKEN] = ({ headers }, nth) =>
      headers.authorization === undefined ? INVALID : { json: issuer.tokens(nth) };
    return scene;
  }

  it("is Basic with the secret as it is where the issuer decodes nothing, and stays so", async () => {
    const scene = await startScene();
    const { issuer, mcp } = scene;
    issuer.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic"];
    const raw = `Basic ${btoa("pre:a/b+c=")}`;
    issuer.routes[TOKEN] = ({ headers }, nth) =>
      headers.authorization === raw ? { json: issuer.tokens(nth) } : INVALID;
    const client = { clientId: "pre", clientSecret: "a/b+c=", issuer: issuer.issuer };
    expect((await login(scene, { client })).value).toBe("access-as-3");
    await scene.agent().token(mcp.url, { forceRefresh: true });
    expect(issuer.to(TOKEN)).toHaveLength(4);
  });

  it("is the other one that the issuer lists where the first is not taken, and stays so", async () => {
    const scene = await mistaken();
    const { issuer, store, mcp } = scene;
    const token = await login(scene);
    expect(token.value).toBe("access-as-2");
    expect(issuer.form(TOKEN, 0).get("code")).toBe(issuer.form(TOKEN, 1).get("code"));
    expect(await store.readClient(issuer.issuer, FORM)).toMatchObject({ authMethod: "client_secret_basic" });
    await scene.agent().token(mcp.url, { forceRefresh: true });
    await login(scene);
    expect(issuer.to(TOKEN)).toHaveLength(4);
    expect(issuer.to(TOKEN).filter(({ headers }) => headers.authorization === undefined)).toHaveLength(1);
  });

  it("is not changed where the issuer lists no other, or the options name one", async () => {
    const listed = await mistaken();
    listed.issuer.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"];
    expect(await pendingError(login(listed))).toMatchObject({ code: "invalid_client" });
    expect(listed.issuer.to(TOKEN)).toHaveLength(1);
    const said = await mistaken();
    const client = { clientId: "known", clientSecret: "secret", authMethod: "client_secret_post" } as const;
    expect(await pendingError(login(said, { client }))).toMatchObject({ code: "invalid_client" });
    expect(said.issuer.to(TOKEN)).toHaveLength(1);
  });
});

describe("an issuer that forgets each client", () => {
  /** Registers a client that is then refused, at these hours. */
  async function clientsAt(issuer: string, hours: readonly number[]) {
    const store = memoryStore();
    let count = 0;
    const fetch = async () => {
      const registered = { client_id: `client-${++count}`, token_endpoint_auth_method: "none" };
      return Response.json({ redirect_uris: ["http://127.0.0.1:4711/callback"], ...registered }, { status: 201 });
    };
    const got: string[] = [];
    for (const hour of hours) {
      const client = await obtainClient({
        http: new OAuthHttp({ fetch }),
        server: serverMetadata({ issuer }),
        store,
        profile: "default",
        redirectUri: "http://127.0.0.1:4711/callback",
        clientName: "agentauth",
        preRegistered: undefined,
        clientMetadataUrl: undefined,
        scope: [],
        now: hour * HOUR,
        trace: () => undefined,
        signal,
      });
      got.push(client.clientId);
      await refuseClient({ store, signal }, client, FORM);
    }
    return got;
  }

  it("is given three within a day, then the last one is used", async () => {
    const clients = await clientsAt("https://as.example/pool", [0, 1, 2, 3, 23, 24.5, 24.6, 25.5]);
    expect(clients).toEqual([1, 2, 3, 3, 3, 4, 4, 5].map((nth) => `client-${nth}`));
  });

  it("on this machine may forget as many as it likes: developers restart it", async () => {
    const clients = await clientsAt("http://127.0.0.1:9/pool", [0, 1, 2, 3, 4]);
    expect(clients).toEqual([1, 2, 3, 4, 5].map((nth) => `client-${nth}`));
  });
});

describe("a login", () => {
  it("reports that the server names another authorization server than the one of the login before", async () => {
    const scene = await startScene();
    const reported: string[] = [];
    const onProgress = ({ text }: { text: string }) => void reported.push(text);
    await login(scene, { onProgress });
    await login(scene, { onProgress });
    expect(reported).toEqual([]);
    const other = await scene.another("other");
    scene.mcp.metadata["authorization_servers"] = [other.issuer];
    const silent = await scene.another("silent");
    await login(scene, { onProgress });
    scene.mcp.metadata["authorization_servers"] = [silent.issuer];
    await login(scene);
    expect(reported).toEqual([
      `"${scene.mcp.url}" names another authorization server than before: "${other.issuer}", not "${scene.issuer.issuer}"; clients and tokens of the old one are not sent to the new one`,
    ]);
  });
});

describe("scopes that the issuer does not like", () => {
  const STRICT = ["a", "b", "offline_access"];

  /** An issuer that lists `offline_access`, and takes no request with one of these. */
  async function strict(disliked: readonly string[], listed = STRICT) {
    const scene = await startScene();
    const { issuer, mcp, login: person } = scene;
    mcp.metadata["scopes_supported"] = ["a", "b"];
    issuer.metadata["scopes_supported"] = listed;
    const isDisliked = (scope: string | null | undefined) => scope?.split(" ").some((one) => disliked.includes(one));
    person.alter = (callback) => {
      if (!isDisliked(person.urls.at(-1)?.searchParams.get("scope"))) return undefined;
      return new URLSearchParams({ state: callback.get("state") ?? "", error: "invalid_scope" });
    };
    const code = { json: issuer.device() };
    issuer.routes["/pool/device"] = ({ body }) =>
      isDisliked(new URLSearchParams(body).get("scope")) ? { status: 400, json: { error: "invalid_scope" } } : code;
    return scene;
  }

  it("are requested once more without the one that was added, and that is reported", async () => {
    const silent = await strict(["offline_access"]);
    await login(silent);
    expect(await silent.store.list()).toMatchObject([{ requestedScope: "a b" }]);
    const scene = await strict(["offline_access"]);
    const reported: string[] = [];
    await login(scene, { onProgress: ({ text }) => void reported.push(text) });
    const requested = scene.login.urls.map(({ searchParams: query }) => [query.get("scope"), query.get("prompt")]);
    expect(requested).toEqual([
      ["a b offline_access", "consent"],
      ["a b", null],
    ]);
    expect(reported).toEqual([
      `"${scene.issuer.issuer}" lists "offline_access" but does not grant it with the other scopes; requesting without it`,
    ]);
    const [first, second] = scene.login.urls.map(({ searchParams: query }) => query.get("state"));
    expect(first).not.toBe(second);
    expect(scene.login.opened).toHaveLength(1);
    expect(scene.login.outcomes).toEqual([{ ok: true, login: { server: scene.mcp.url, issuer: scene.issuer.issuer } }]);
    expect(await scene.store.list()).toMatchObject([{ requestedScope: "a b" }]);
  });

  it("are requested once more in a device login", async () => {
    const scene = await strict(["offline_access"]);
    await login(scene, { flow: "device" });
    expect([0, 1].map((nth) => scene.issuer.form("/pool/device", nth).get("scope"))).toEqual([
      "a b offline_access",
      "a b",
    ]);
    expect(await scene.store.list()).toMatchObject([{ requestedScope: "a b" }]);
  });

  it("are requested once more in the second step of a login in two", async () => {
    const scene = await strict(["offline_access"]);
    const begun = await scene.agent().beginLogin(scene.mcp.url, scene.login.redirectUri);
    const kept = decodeLogin(encodeLogin({ ...begun, profile: "default" }));
    await scene.agent().finishLogin(kept, await scene.login.open({ resource: "", issuer: "", signal }));
    expect(scene.login.urls).toHaveLength(2);
    expect(await scene.store.list()).toMatchObject([{ requestedScope: "a b" }]);
  });

  it.each(["browser", "device"] as const)("are not requested a third time (%s)", async (flow) => {
    const scene = await strict(["a"]);
    expect(await pendingError(login(scene, { flow }))).toMatchObject({
      code: "invalid_scope",
      remedy: loginAt(scene.mcp.url, { option: "scope" }),
    });
    expect(scene.login.urls.length + scene.issuer.to("/pool/device").length).toBe(2);
  });

  it.each(["browser", "device"] as const)("are not changed where the caller names them (%s)", async (flow) => {
    const scene = await strict(["offline_access"]);
    expect(await pendingError(scene.agent({ flow }).login(scene.mcp.url, { scope: "a offline_access" }))).toMatchObject(
      {
        code: "invalid_scope",
        remedy: loginAt(scene.mcp.url, { scope: "a" }),
      },
    );
    expect(scene.login.urls.length + scene.issuer.to("/pool/device").length).toBe(1);
  });
});
