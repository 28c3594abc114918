import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import type { AgentClient, AgentClientOptions } from "../../../src/oauth/agent.js";
import { readQueryParameters } from "../../../src/oauth/login/web-app.js";
import { openText, sealText } from "../../../src/oauth/login/web-login.js";
import { fileStore } from "../../../src/store/file/file.js";
import { captured, pendingError } from "../../helpers/captured.js";
import { temporaryFolder } from "../../helpers/folder.js";
import { startScene } from "../../helpers/issuer.js";
import { browse, type Callback, cookieHeader, REDIRECT_URI, SECRET } from "../login/web-support.js";

interface Attempt {
  /** The login of the user who is attacked. */
  mine: Callback;
  /** The login of another user of the web app, at the same time. */
  other: Callback;
  agent: (options?: Partial<AgentClientOptions>) => AgentClient;
}

type Row = [input: string, code: string, attempt: (attempt: Attempt) => Promise<unknown>];

function altered({ address }: Callback, change: Record<string, string | null>): URL {
  const url = new URL(address);
  for (const [name, value] of Object.entries(change)) {
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  return url;
}

/** Attempts of either form that leave the login as it was. */
const ROWS: Row[] = [
  ["no cookie", "browser_mismatch", ({ mine, agent }) => agent().handleCallback(mine.address, { saved: mine.saved })],
  [
    "the cookie of another browser",
    "browser_mismatch",
    ({ mine, other, agent }) =>
      agent().handleCallback(mine.address, { saved: mine.saved, cookie: cookieHeader(other.cookie) }),
  ],
  [
    "the cookie twice",
    "browser_mismatch",
    ({ mine, agent }) =>
      agent().handleCallback(mine.address, { saved: mine.saved, cookie: cookieHeader(mine.cookie, mine.cookie) }),
  ],
  [
    "an empty cookie",
    "browser_mismatch",
    ({ mine, agent }) =>
      agent().handleCallback(mine.address, { saved: mine.saved, cookie: `${mine.cookie.split("=")[0]}=` }),
  ],
  [
    "a cookie whose name is longer",
    "browser_mismatch",
    ({ mine, agent }) =>
      agent().handleCallback(mine.address, {
        saved: mine.saved,
        cookie: mine.cookie.split(";")[0]?.replace("=", "x="),
      }),
  ],
  [
    "no state",
    "state_mismatch",
    ({ mine, agent }) =>
      agent().handleCallback(altered(mine, { state: null }), { saved: mine.saved, cookie: cookieHeader(mine.cookie) }),
  ],
  [
    "state twice",
    "state_mismatch",
    ({ mine, agent }) =>
      agent().handleCallback(`${mine.address.href}&state=${mine.state}`, {
        saved: mine.saved,
        cookie: cookieHeader(mine.cookie),
      }),
  ],
  [
    "a state of 1 MB",
    "bad_callback",
    ({ mine, agent }) =>
      agent().handleCallback(altered(mine, { state: "s".repeat(1024 * 1024) }), {
        saved: mine.saved,
        cookie: cookieHeader(mine.cookie),
      }),
  ],
  [
    "an error with a foreign state",
    "browser_mismatch",
    ({ mine, agent }) =>
      agent().handleCallback(
        altered(mine, { state: "foreign", code: null, error: "access_denied", error_description: "PLANTED" }),
        { saved: mine.saved, cookie: cookieHeader(mine.cookie) },
      ),
  ],
];

const SEALED_ROWS: Row[] = [
  ...ROWS,
  [
    "the saved login of another user",
    "bad_saved_login",
    ({ mine, other, agent }) => agent().handleCallback(mine.request, { saved: other.saved }),
  ],
  [
    "the saved login and the callback of another user",
    "bad_saved_login",
    ({ other, agent }) => agent().handleCallback(other.request, { saved: other.saved }),
  ],
  [
    "the same login at a client for another account",
    "bad_saved_login",
    ({ mine, agent }) => agent({ loginHint: "bob" }).handleCallback(mine.request, { saved: mine.saved }),
  ],
  [
    "the saved login of another tab",
    "state_mismatch",
    async ({ mine, agent }) => {
      const { searchParams } = new URL(mine.url);
      const redirectUri = searchParams.get("redirect_uri") ?? "";
      const { saved } = await agent().startLogin(searchParams.get("resource") ?? "", { redirectUri });
      return agent().handleCallback(mine.request, { saved });
    },
  ],
  [
    "a tampered saved login",
    "bad_saved_login",
    ({ mine: { saved = "", request }, agent }) => {
      const at = saved.length >> 1;
      const changed = saved.slice(0, at) + (saved[at] === "A" ? "B" : "A") + saved.slice(at + 1);
      return agent().handleCallback(request, { saved: changed });
    },
  ],
  [
    "a saved login that is cut",
    "bad_saved_login",
    ({ mine: { saved = "", request }, agent }) => agent().handleCallback(request, { saved: saved.slice(0, 20) }),
  ],
  ["an empty saved login", "bad_saved_login", ({ mine, agent }) => agent().handleCallback(mine.request, { saved: "" })],
  [
    "a saved login of 1 MB",
    "bad_saved_login",
    ({ mine, agent }) => agent().handleCallback(mine.request, { saved: "A".repeat(1024 * 1024) }),
  ],
  [
    "a saved login that is not text of this package",
    "bad_saved_login",
    ({ mine, agent }) => agent().handleCallback(mine.request, { saved: "{}" }),
  ],
  [
    "a saved login at a client with another secret",
    "bad_saved_login",
    ({ mine: { request, saved }, agent }) => agent({ loginSecret: "y".repeat(32) }).handleCallback(request, { saved }),
  ],
  [
    "a saved login at a client without a secret",
    "bad_saved_login",
    ({ mine: { request, saved }, agent }) => agent({ loginSecret: undefined }).handleCallback(request, { saved }),
  ],
  [
    "a forged value of the cookie",
    "browser_mismatch",
    ({ mine: { address, saved, cookie }, agent }) =>
      agent().handleCallback(address, { saved, cookie: `${cookie.split("=")[0]}=${crypto.randomUUID()}` }),
  ],
];

const STORED_ROWS: Row[] = [
  ...ROWS,
  ["the callback of another user", "login_not_found", ({ other, agent }) => agent().handleCallback(other.request)],
  [
    "the same login at a client for another account",
    "login_not_found",
    ({ mine, agent }) => agent({ loginHint: "bob" }).handleCallback(mine.request),
  ],
  [
    "a forged value of the cookie",
    "login_not_found",
    ({ mine: { address, cookie }, agent }) =>
      agent().handleCallback(address, { cookie: `${cookie.split("=")[0]}=${crypto.randomUUID()}` }),
  ],
];

describe.each([
  ["sealed", SECRET, SEALED_ROWS],
  ["in the store", undefined, STORED_ROWS],
] as const)("the callback of a login that waits %s", (_name, loginSecret, rows) => {
  it.each(rows)("with %s is refused with %s, and the login can still be finished", async (_input, code, attempt) => {
    const scene = await startScene();
    const agent: Attempt["agent"] = (options) => scene.agent({ profile: "mine", loginSecret, ...options });
    const mine = await browse(agent(), scene.mcp.url);
    const other = await browse(agent({ profile: "other" }), scene.mcp.url);
    const error = (await pendingError(attempt({ mine, other, agent }))) as AgentAuthError;
    expect(error).toMatchObject({ code });
    expect(captured(error)).toMatchSnapshot();
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

describe("the page to return to", () => {
  it.each([
    "//evil.example",
    "///evil.example",
    "https://evil.example/",
    "https://app.example.evil.example/",
    "https://app.example@evil.example/",
    "https://user:pw@app.example/",
    "http://app.example/",
    "https://app.example:444/",
    "\\\\evil.example",
    "/\\evil.example",
    "/\t/evil.example",
    "\n//evil.example",
    " //evil.example",
    "javascript:alert(1)",
    "data:text/html,x",
    "blob:https://app.example/x",
  ])("%j is refused before any request", async (returnTo) => {
    const { agent, log, mcp } = await startScene();
    const started = agent().startLogin(mcp.url, { redirectUri: REDIRECT_URI, returnTo });
    expect(await pendingError(started)).toMatchObject({ code: "usage", message: expect.stringContaining("returnTo") });
    expect(log).toEqual([]);
  });

  it.each([
    ["/", "https://app.example/"],
    ["inbox", "https://app.example/oauth/inbox"],
    ["https://app.example/a?b=c#d", "https://app.example/a?b=c#d"],
    // With the origin, a path that begins with two slashes is no host.
    ["https://app.example//evil.example", "https://app.example//evil.example"],
  ])("%j is the absolute address %j", async (returnTo, expected) => {
    const { agent, mcp } = await startScene();
    const login = await browse(agent(), mcp.url, { returnTo });
    expect((await agent().handleCallback(login.request)).done?.returnTo).toBe(expected);
  });
});

it("the parameters of a callback are those of its query alone, which may contain a question mark", () => {
  const [address, parameters] = [
    "https://app.example/callback?state=s?x&iss=a#state=t&code=c",
    { state: "s?x", iss: "a" },
  ];
  for (const one of [address, new URL(address)])
    expect(Object.fromEntries(readQueryParameters(one))).toEqual(parameters);
});

describe("the redirect address", () => {
  it.each([
    "http://app.example/callback",
    "javascript:alert(1)",
    "/callback",
    "",
    "https://app.example/callback#fragment",
    "https://app.example/callback#",
    "https://user@app.example/callback",
  ])("%j is refused before any request", async (redirectUri) => {
    const { agent, log, mcp } = await startScene();
    const started = agent().startLogin(mcp.url, { redirectUri });
    expect(await pendingError(started)).toMatchObject({
      code: "usage",
      message: expect.stringContaining("redirectUri"),
    });
    expect(log).toEqual([]);
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
  expect(await pendingError(second.handleCallback(request, { saved }))).toMatchObject({ code: "login_not_found" });
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
