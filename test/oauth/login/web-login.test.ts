import { describe, expect, it } from "vitest";
import type { AgentClientOptions } from "../../../src/oauth/agent.js";
import type { PreparedLogin } from "../../../src/oauth/login/prepared-login.js";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import { fileStore } from "../../../src/store/file/file.js";
import { memoryStore } from "../../../src/store/memory.js";
import { pendingError } from "../../helpers/captured.js";
import { temporaryFolder } from "../../helpers/folder.js";
import { startScene } from "../../helpers/issuer.js";
import { browse, cookieHeader, REDIRECT_URI, SECRET, visit } from "./web-support.js";

const MINUTE = 60_000;
const SIGNAL = new AbortController().signal;

/** The options of the clients of two processes of a web app. */
const FORMS: [name: string, open: () => Partial<AgentClientOptions>[]][] = [
  ["in a memory store", () => twice(memoryStore())],
  ["in a file store", () => ofFolder(temporaryFolder())],
  ["sealed, with a file store", () => ofFolder(temporaryFolder()).map((one) => ({ ...one, loginSecret: SECRET }))],
  [
    "sealed, with a store that has no short-lived records",
    () => twice({ ...memoryStore(), shortLived: undefined }).map((one) => ({ ...one, loginSecret: SECRET })),
  ],
];

function twice(store: GrantStore) {
  return [{ store }, { store }];
}

function ofFolder(folder: string) {
  return [{ store: fileStore(folder) }, { store: fileStore(folder) }];
}

/** What a callback needs of a login that has begun. */
const callbackOptions = ({ saved, cookie }: { saved?: string | undefined; cookie?: string | undefined }) => ({
  saved,
  cookie,
});

describe.each(FORMS)("a login of a web app, %s", (name, open) => {
  async function start() {
    const scene = await startScene();
    const [one = {}, two = {}] = open();
    const [first, second] = [() => scene.agent(one), () => scene.agent(two)];
    return { ...scene, first, second, stored: () => one.store?.read({ profile: "default", server: scene.mcp.url }) };
  }

  it("starts in one process, and is finished in another once", async () => {
    const { first, second, mcp, issuer } = await start();
    const { saved, request, url, state } = await browse(first(), mcp.url, { returnTo: "/inbox?a=b#c" });
    expect(saved === undefined).toBe(!name.startsWith("sealed"));
    expect(new URL(url).searchParams.get("state")).toBe(state);
    // As docs/web-login.md does, which the types must allow.
    const { done, redirect, cookie } = await second().handleCallback(request, { saved });
    expect([redirect, cookie]).toEqual([undefined, undefined]);
    expect(done).toMatchObject({ server: mcp.url, returnTo: "https://app.example/inbox?a=b#c" });
    expect(done?.token.value).toBe("access-as-1");
    expect((await first().token(mcp.url)).value).toBe("access-as-1");
    for (const agent of [first(), second()]) {
      expect(await pendingError(agent.handleCallback(request, { saved }))).toMatchObject({
        code: "login_not_found",
        class: "auth",
      });
    }
    expect(issuer.to("/pool/token")).toHaveLength(1);
  });

  it("is finished once of several callbacks at once", async () => {
    const { first, second, mcp, issuer } = await start();
    const { saved, request } = await browse(first(), mcp.url);
    const all = [first(), second(), first(), second()].map((agent) => agent.handleCallback(request, { saved }));
    const results = await Promise.allSettled(all);
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(issuer.to("/pool/token")).toHaveLength(1);
  });

  it("can be finished for ten minutes", async () => {
    const { first, second, mcp, clock } = await start();
    const early = await browse(first(), mcp.url);
    const late = await browse(first(), mcp.url);
    await clock.sleep(10 * MINUTE - 1, SIGNAL);
    expect((await second().handleCallback(early.request, callbackOptions(early))).done).toBeDefined();
    await clock.sleep(1, SIGNAL);
    const { request, saved } = late;
    expect(await pendingError(second().handleCallback(request, { saved }))).toMatchObject({ code: "login_not_found" });
  });

  it("in two tabs at once is two logins, which both are finished", async () => {
    const { first, second, mcp } = await start();
    const [one, two] = [await browse(first(), mcp.url), await browse(second(), mcp.url)];
    const cookie = cookieHeader(one.cookie, two.cookie);
    for (const { address, saved } of [two, one])
      expect((await second().handleCallback(address, { saved, cookie })).done).toBeDefined();
  });

  it("asks once more without offline_access if the issuer rejects it, and not a third time", async () => {
    const { first, second, mcp, issuer } = await start();
    mcp.metadata["scopes_supported"] = ["tools"];
    issuer.metadata["scopes_supported"] = ["tools", "offline_access"];
    issuer.callback = { error: "invalid_scope", code: null };
    const { request, saved, state, url } = await browse(first(), mcp.url, { returnTo: "/inbox" });
    expect(new URL(url).searchParams.get("scope")).toBe("tools offline_access");
    const { redirect, ...again } = await second().handleCallback(request, { saved });
    if (redirect === undefined || !("state" in again)) throw new Error("no second request");
    expect(again.state).not.toBe(state);
    expect(new URL(redirect).searchParams.get("scope")).toBe("tools");
    const rejected = await visit({ ...again, url: redirect });
    expect(await pendingError(first().handleCallback(rejected.request, callbackOptions(again)))).toMatchObject({
      code: "invalid_scope",
    });
    issuer.callback = {};
    const third = await browse(first(), mcp.url, { scope: "tools" });
    expect((await first().handleCallback(third.request, callbackOptions(third))).done).toBeDefined();
  });

  it("is finished after the second request, with the page to return to", async () => {
    const { first, second, mcp, issuer } = await start();
    issuer.metadata["scopes_supported"] = ["offline_access"];
    mcp.metadata["scopes_supported"] = ["tools"];
    issuer.callback = { error: "invalid_scope", code: null };
    const { request, saved } = await browse(first(), mcp.url, { returnTo: "/inbox" });
    const { redirect = "", ...again } = await second().handleCallback(request, { saved });
    if (!("state" in again)) throw new Error("no second request");
    issuer.callback = {};
    const accepted = await visit({ ...again, url: redirect });
    const { done } = await first().handleCallback(accepted.request, callbackOptions(again));
    expect(done?.returnTo).toBe("https://app.example/inbox");
  });

  it.each([true, false])(
    "stores an id token only with the nonce that the browser was sent with: %s",
    async (isRight) => {
      const { first, second, mcp, issuer, stored } = await start();
      const { request, saved, url } = await browse(first(), mcp.url, { scope: "openid" });
      const requested = new URL(url).searchParams;
      const nonce = isRight ? requested.get("nonce") : "another";
      const times = { iat: Date.UTC(2030, 0, 1) / 1000, exp: Date.UTC(2030, 0, 2) / 1000 };
      const claims = { iss: issuer.issuer, aud: requested.get("client_id"), sub: "alice", nonce, ...times };
      const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
      issuer.tokenAnswer = { id_token: `${part({ alg: "RS256" })}.${part(claims)}.c2ln` };
      await second().handleCallback(request, { saved });
      expect((await stored())?.tokens.idToken !== undefined).toBe(isRight);
    },
  );
});

describe("startLogin", () => {
  it("registers an https redirect address as that of a web client", async () => {
    const { agent, issuer, mcp } = await startScene();
    await agent().startLogin(mcp.url, { redirectUri: REDIRECT_URI });
    const [registration] = issuer.to("/pool/register");
    expect(JSON.parse(registration?.body ?? "")).toMatchObject({
      redirect_uris: [REDIRECT_URI],
      application_type: "web",
    });
  });

  it("requires a place for the login", async () => {
    const { agent, mcp, store } = await startScene();
    const client = agent({ store: { ...store, shortLived: undefined } });
    await expect(client.startLogin(mcp.url, { redirectUri: REDIRECT_URI })).rejects.toThrow(
      "startLogin requires the option loginSecret, or a store with shortLived records",
    );
  });

  it("does not send the user off where the store did not store the login", async () => {
    const { agent, mcp, store } = await startScene();
    const shortLived = { put: async () => false, take: async () => undefined };
    const client = agent({ store: { ...store, shortLived } });
    expect(await pendingError(client.startLogin(mcp.url, { redirectUri: REDIRECT_URI }))).toMatchObject({
      code: "store_failed",
      class: "store",
    });
  });

  it("rejects a short loginSecret", async () => {
    const { agent } = await startScene();
    for (const loginSecret of ["short", [SECRET, ""]])
      expect(() => agent({ loginSecret })).toThrow("loginSecret must have at least 32 characters");
  });

  it("seals with the first of several secrets, and each one opens", async () => {
    const { agent, mcp } = await startScene();
    const older = "x".repeat(32);
    const { request, saved } = await browse(agent({ loginSecret: older }), mcp.url);
    const { done } = await agent({ loginSecret: [SECRET, older] }).handleCallback(request, { saved });
    expect(done).toBeDefined();
    const next = await browse(agent({ loginSecret: [SECRET, older] }), mcp.url);
    expect(
      (await agent({ loginSecret: SECRET }).handleCallback(next.request, callbackOptions(next))).done,
    ).toBeDefined();
  });

  it("shows no secret in what it returns", async () => {
    const { agent, mcp } = await startScene();
    const started = await agent({ loginSecret: SECRET, dpop: "auto" }).startLogin(mcp.url, {
      redirectUri: REDIRECT_URI,
    });
    const bytes = Buffer.from(started.saved ?? "", "base64url").toString("latin1");
    expect(bytes).not.toContain("verifier");
    expect(started.saved?.length).toBeLessThan(4000);
  });
});

describe("the login that a browser carries", () => {
  it("fits into a cookie at an issuer that supports hundreds of scopes", async () => {
    const { agent, mcp, issuer } = await startScene();
    mcp.metadata["scopes_supported"] = ["tools"];
    issuer.metadata["scopes_supported"] = Array.from({ length: 200 }, () => crypto.randomUUID());
    const { saved } = await browse(agent({ loginSecret: SECRET }), mcp.url);

    expect(saved?.length).toBeLessThan(4000);
  });

  it("is for the same user at the second request", async () => {
    const { agent, mcp, issuer } = await startScene();
    issuer.metadata["scopes_supported"] = ["offline_access"];
    mcp.metadata["scopes_supported"] = ["tools"];
    issuer.callback = { error: "invalid_scope", code: null };
    const ofAnn = agent({ loginSecret: SECRET, loginHint: "ann" });
    const { request, saved } = await browse(ofAnn, mcp.url);
    const { redirect = "" } = await ofAnn.handleCallback(request, { saved });
    expect(new URL(redirect).searchParams.get("login_hint")).toBe("ann");
  });
});

describe("a prepared login that was stored as JSON", () => {
  it("is rejected with the reason, and its session is closed", async () => {
    const scene = await startScene();
    const { agent, login, mcp } = scene;
    const prepared = await agent().beginLogin(mcp.url, login.redirectUri);
    const text = JSON.parse(JSON.stringify(prepared)) as PreparedLogin;
    const signal = new AbortController().signal;
    const session = await login.open({ resource: mcp.url, issuer: prepared.issuer.issuer, signal });
    expect(await pendingError(agent().finishLogin(text, session))).toMatchObject({
      code: "usage",
      class: "usage",
      message: "the prepared login has lost its secrets: JSON and logs contain a mask in their place",
      hint: expect.stringContaining("startLogin"),
    });
    expect(login.outcomes).toMatchObject([{ ok: false, error: { code: "usage" } }]);
  });
});
