import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import type { AgentClient, AgentClientOptions } from "../../../src/oauth/agent.js";
import type { PreparedLogin } from "../../../src/oauth/login/authorization.js";
import { cookiePath } from "../../../src/oauth/login/web-app.js";
import { isSameText, openText, sealText } from "../../../src/oauth/login/web-login.js";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import { fileStore } from "../../../src/store/file/file.js";
import { memoryStore } from "../../../src/store/memory.js";
import { pendingError } from "../../helpers/captured.js";
import { temporaryFolder } from "../../helpers/folder.js";
import { startScene } from "../../helpers/issuer.js";
import { rejection } from "../../helpers/service.js";
import { browse, type Callback, cookieHeader, REDIRECT_URI, SECRET, visit } from "./web-support.js";

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
      expect(await rejection(agent.handleCallback(request, { saved }))).toMatchObject({
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
    expect(await rejection(second().handleCallback(request, { saved }))).toMatchObject(ERRORS.none);
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
    const parts = (started.saved ?? "").split(".");
    const bytes = parts.map((part) => Buffer.from(part, "base64url").toString("latin1"));
    expect(bytes.join()).toContain("A256GCM");
    expect(bytes.join()).not.toContain("verifier");
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
    expect(await rejection(agent().finishLogin(text, session))).toMatchObject({
      code: "usage",
      class: "usage",
      message: "the prepared login has lost its secrets: JSON and logs contain a mask in their place",
      hint: expect.stringContaining("startLogin"),
    });
    expect(login.outcomes).toMatchObject([{ ok: false, error: { code: "usage" } }]);
  });
});

interface Attempt {
  /** The login of the user who is attacked. */
  mine: Callback;
  /** The login of another user of the web app, at the same time. */
  other: Callback;
  agent: (options?: Partial<AgentClientOptions>) => AgentClient;
}

/** A callback; what it leaves out is that of the user who is attacked. */
interface Forged {
  address?: URL | string;
  saved?: string;
  /** `null` for none. */
  cookie?: string | null;
  options?: Partial<AgentClientOptions>;
}

type Row = [input: string, error: keyof typeof ERRORS, forge: (attempt: Attempt) => Forged | Promise<Forged>];

const START_AGAIN = "start the login again";
const BAD_SAVED = "the saved login cannot be used: ";
const ERRORS = {
  mismatch: {
    code: "browser_mismatch",
    message: "the callback came from another browser than the one that the login was started in: the cookie differs",
    hint: "send the cookie of startLogin with the redirect, from the host of redirectUri",
  },
  state: { code: "state_mismatch", message: "the callback does not belong to this login: its state differs" },
  length: { code: "bad_callback", message: "the address of the callback is longer than 65536 characters" },
  user: { code: "bad_saved_login", message: `${BAD_SAVED}it belongs to another user`, hint: START_AGAIN },
  seal: {
    code: "bad_saved_login",
    message: `${BAD_SAVED}it was not sealed with loginSecret, or was changed`,
    hint: START_AGAIN,
  },
  none: {
    code: "login_not_found",
    message:
      "no login waits for this callback: it was finished already, expired after 10 minutes, or is another user's",
    hint: START_AGAIN,
  },
};

function altered({ address }: Callback, change: Record<string, string | null>): URL {
  const url = new URL(address);
  for (const [name, value] of Object.entries(change)) {
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  return url;
}

const nameOf = ({ cookie }: Callback) => cookie.split("=")[0] ?? "";
const forgedCookie = ({ mine }: Attempt) => ({ cookie: `${nameOf(mine)}=${crypto.randomUUID()}` });

/** Attempts of either form that leave the login as it was. */
const ROWS: Row[] = [
  ["no cookie", "mismatch", () => ({ cookie: null })],
  ["the cookie of another browser", "mismatch", ({ other }) => ({ cookie: cookieHeader(other.cookie) })],
  ["the cookie twice", "mismatch", ({ mine }) => ({ cookie: cookieHeader(mine.cookie, mine.cookie) })],
  ["an empty cookie", "mismatch", ({ mine }) => ({ cookie: `${nameOf(mine)}=` })],
  [
    "a cookie whose name is longer",
    "mismatch",
    ({ mine }) => ({ cookie: cookieHeader(mine.cookie).replace("=", "x=") }),
  ],
  ["no state", "state", ({ mine }) => ({ address: altered(mine, { state: null }) })],
  ["state twice", "state", ({ mine }) => ({ address: `${mine.address.href}&state=${mine.state}` })],
  ["a state of 1 MB", "length", ({ mine }) => ({ address: altered(mine, { state: "s".repeat(1024 * 1024) }) })],
  [
    "an error with a foreign state",
    "mismatch",
    ({ mine }) => ({
      address: altered(mine, { state: "foreign", code: null, error: "access_denied", error_description: "PLANTED" }),
    }),
  ],
];

const ofBob = () => ({ options: { loginHint: "bob" } });
const ofOther = ({ other }: Attempt) => ({ address: other.address, cookie: cookieHeader(other.cookie) });

const SEALED_ROWS: Row[] = [
  ...ROWS,
  ["the saved login of another user", "user", ({ other: { saved = "" } }) => ({ saved })],
  [
    "the saved login and the callback of another user",
    "user",
    (attempt) => ({ ...ofOther(attempt), saved: attempt.other.saved ?? "" }),
  ],
  ["the same login at a client for another account", "user", ofBob],
  [
    "the saved login of another tab",
    "state",
    async ({ mine, agent }) => {
      const { searchParams } = new URL(mine.url);
      const redirectUri = searchParams.get("redirect_uri") ?? "";
      const { saved = "" } = await agent().startLogin(searchParams.get("resource") ?? "", { redirectUri });
      return { saved };
    },
  ],
  [
    "a tampered saved login",
    "seal",
    ({ mine: { saved = "" } }) => {
      const at = saved.length >> 1;
      return { saved: saved.slice(0, at) + (saved[at] === "A" ? "B" : "A") + saved.slice(at + 1) };
    },
  ],
  ["a saved login that is cut", "seal", ({ mine }) => ({ saved: mine.saved?.slice(0, 20) ?? "" })],
  ["an empty saved login", "seal", () => ({ saved: "" })],
  ["a saved login of 1 MB", "seal", () => ({ saved: "A".repeat(1024 * 1024) })],
  ["a saved login that is not text of this package", "seal", () => ({ saved: "{}" })],
  ["a saved login at a client with another secret", "seal", () => ({ options: { loginSecret: "y".repeat(32) } })],
  ["a saved login at a client without a secret", "seal", () => ({ options: { loginSecret: undefined } })],
  ["a forged value of the cookie", "mismatch", forgedCookie],
];

const STORED_ROWS: Row[] = [
  ...ROWS,
  ["the callback of another user", "none", ofOther],
  ["the same login at a client for another account", "none", ofBob],
  ["a forged value of the cookie", "none", forgedCookie],
];

describe.each([
  ["sealed", SECRET, SEALED_ROWS],
  ["in the store", undefined, STORED_ROWS],
] as const)("the callback of a login that waits %s", (_name, loginSecret, rows) => {
  it.each(rows)("with %s is refused (%s), and the login can still be finished", async (_input, expected, forge) => {
    const scene = await startScene();
    const agent: Attempt["agent"] = (options) => scene.agent({ profile: "mine", loginSecret, ...options });
    const mine = await browse(agent(), scene.mcp.url);
    const other = await browse(agent({ profile: "other" }), scene.mcp.url);
    const { address, saved, cookie, options } = await forge({ mine, other, agent });
    const attempt = agent(options).handleCallback(address ?? mine.address, {
      saved: saved ?? mine.saved,
      ...(cookie !== null && { cookie: cookie ?? cookieHeader(mine.cookie) }),
    });
    const error = await rejection(attempt);
    expect(error).toMatchObject(ERRORS[expected]);
    expect(JSON.stringify(error)).not.toContain("PLANTED");
    expect(scene.issuer.to("/pool/token")).toEqual([]);
    for (const [login, profile] of [
      [mine, "mine"],
      [other, "other"],
    ] as const)
      expect((await agent({ profile }).handleCallback(login.request, login)).done).toBeDefined();
  });

  it.each([
    ["another iss", { iss: "https://evil.example" }, "iss_mismatch"],
    ["no iss, which was promised", { iss: null }, "iss_mismatch"],
    ["no code", { code: null }, "bad_callback"],
    ["an error of the issuer", { code: null, error: "access_denied" }, "access_denied"],
  ])("with %s is refused, and sends no request", async (_input, change, code) => {
    const { agent, issuer, mcp, store } = await startScene();
    issuer.metadata["authorization_response_iss_parameter_supported"] = true;
    const login = await browse(agent({ loginSecret }), mcp.url);
    const callback = { saved: login.saved, cookie: cookieHeader(login.cookie) };
    expect(await pendingError(agent({ loginSecret }).handleCallback(altered(login, change), callback))).toMatchObject({
      code,
    });
    expect(issuer.to("/pool/token")).toEqual([]);
    expect(await store.list()).toEqual([]);
  });
});

it.each(["expiresAt", "browser"])("a saved login without %s, sealed with the secret, is refused", async (member) => {
  const { agent, mcp, issuer } = await startScene();
  const { saved = "", request } = await browse(agent({ loginSecret: SECRET }), mcp.url);
  const text = (await openText(saved, [SECRET])) ?? "";
  const changed = await sealText(JSON.stringify({ ...JSON.parse(text), [member]: undefined }), SECRET);
  const attempt = agent({ loginSecret: SECRET }).handleCallback(request, { saved: changed });
  expect(await pendingError(attempt)).toMatchObject({ code: "bad_saved_login" });
  expect(issuer.to("/pool/token")).toEqual([]);
});

it("a sealed login that another process behind the store has finished is refused", async () => {
  const { agent, mcp, issuer, store } = await startScene();
  const { saved, request } = await browse(agent({ loginSecret: SECRET }), mcp.url);
  const shortLived = { put: async () => false, take: async () => undefined };
  const second = agent({ loginSecret: SECRET, store: { ...store, shortLived } });
  expect(await rejection(second.handleCallback(request, { saved }))).toMatchObject({ code: "login_not_found" });
  expect(issuer.to("/pool/token")).toEqual([]);
});

describe("a store that fails", () => {
  const down = () => Promise.reject(new AgentAuthError("store_failed", "the store is down", { class: "store" }));

  it("at the start is an error of the store", async () => {
    const { agent, mcp, store } = await startScene();
    const client = agent({ store: { ...store, shortLived: { put: down, take: down } } });
    expect(await pendingError(client.startLogin(mcp.url, { redirectUri: REDIRECT_URI }))).toMatchObject({
      class: "store",
    });
  });

  it.each([undefined, SECRET])("at the callback sends no code, and the login can be finished later", async (secret) => {
    const { agent, issuer, mcp, store } = await startScene();
    const login = await browse(agent({ loginSecret: secret }), mcp.url);
    const broken = agent({ loginSecret: secret, store: { ...store, shortLived: { put: down, take: down } } });
    expect(await pendingError(broken.handleCallback(login.request, login))).toMatchObject({ class: "store" });
    expect(issuer.to("/pool/token")).toEqual([]);
    expect((await agent({ loginSecret: secret }).handleCallback(login.request, login)).done).toBeDefined();
  });

  it("with a damaged file refuses the callback", async () => {
    const { agent, mcp } = await startScene();
    const folder = temporaryFolder();
    const client = agent({ store: fileStore(folder) });
    const login = await browse(client, mcp.url);
    for (const name of readdirSync(join(folder, "pending"))) writeFileSync(join(folder, "pending", name), "{");
    expect(await pendingError(client.handleCallback(login.request))).toMatchObject({ code: "bad_saved_login" });
  });
});

describe("a sealed text", () => {
  it.each(["", "{}", "ü€😀".repeat(7000), "x".repeat(64 * 1024)])("is opened with the secret", async (text) => {
    expect(await openText(await sealText(text, SECRET), ["y".repeat(32), SECRET])).toBe(text);
  });

  it("is another one each time", async () => {
    const [one, other] = [await sealText("{}", SECRET), await sealText("{}", SECRET)];
    expect(one.split(".")[2]).not.toBe(other.split(".")[2]);
    expect(one.split(".")[3]).not.toBe(other.split(".")[3]);
  });

  it("is shorter than the text, where the text repeats itself", async () => {
    expect((await sealText("scope ".repeat(1000), SECRET)).length).toBeLessThan(200);
  });

  it.each([64 * 1024 + 1, 5 * 1024 * 1024])("that inflates to %i bytes is not opened", async (length) => {
    const sealed = await sealText("x".repeat(length), SECRET);
    expect(sealed.length).toBeLessThan(100_000);
    expect(await openText(sealed, [SECRET])).toBeUndefined();
  });
});

it.each([
  ["state", "state", true],
  ["state", "stat", false],
  ["stat", "state", false],
  ["state", "statf", false],
  ["", "state", false],
])("whether %j and %j are equal is %s", (one, other, expected) => {
  expect(isSameText(one, other)).toBe(expected);
});

describe("the path of a cookie", () => {
  it.each([
    ["https://app.example/oauth/callback?a=b", "/oauth/callback"],
    ["https://app.example", "/"],
    ["https://app.example/oauth/cb;v=1/x", "/oauth/"],
    ["https://app.example/;Domain=example", "/"],
    ["https://app.example/a/%3B", "/a/%3B"],
  ])("of %s is %s", (page, path) => {
    expect(cookiePath(page)).toBe(path);
  });
});
