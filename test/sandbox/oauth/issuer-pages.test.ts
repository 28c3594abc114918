import type * as oauth from "oauth4webapi";
import { describe, expect } from "vitest";
import { it as base } from "../support.js";
import { asCallback, asPage, Browser, type Page } from "./browser.js";
import { begin, callTool, discover, landing, logIn, post, REDIRECT_URI, redeem, register } from "./support.js";

const DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code";

interface Device {
  device_code: string;
  user_code: string;
  verification_uri: string;
  verification_uri_complete: string;
}

const it = base
  .extend("options", { devices: 5 })
  .extend("browser", ({ sandbox }) => new Browser(sandbox.origin))
  .extend("as", ({ sandbox }) => discover(sandbox))
  /** Goes as far as the page that asks for consent. */
  .extend("toConsent", ({ browser, as }) => async (client: oauth.Client, params: Record<string, string> = {}) => {
    const begun = await begin(as, client, params);
    const login = asPage(await browser.open(begun.url));
    const consent = asPage(await browser.press(login, "account", "carol"));
    return { begun, login, consent };
  })
  /** Begins a device login. */
  .extend("beginDevice", ({ sandbox, as }) => async () => {
    const client = await register(as, { grant_types: [DEVICE_CODE, "refresh_token"], response_types: [] });
    const response = await post({ client }, as.device_authorization_endpoint, { resource: sandbox.mcpUrl });
    const device = (await response.json()) as Device;
    const form = { grant_type: DEVICE_CODE, device_code: device.device_code };
    return { device, poll: () => post({ client }, as.token_endpoint, form) };
  });

const OUR_TAG = new RegExp(
  "^<(!doctype html|/?(html|head|title|style|body|main|h1|p|strong|b|small|dl|div|dt|dd|ul|li|code|label|footer)|" +
    "/?(meta|form|button|input|html|label))" +
    '( (name|value|class|method|action|type|lang|charset|content|id|for|autocomplete)="[^"<>]*"| autofocus| required)*>$',
);

function expectSafe(page: Page): void {
  // Every tag is one of ours with attributes of ours, so that no text has become one.
  for (const tag of page.html.match(/<[^>]*>?/g) ?? []) expect(tag).toMatch(OUR_TAG);
  const policy = page.headers.get("content-security-policy") ?? "";
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toContain("unsafe");
  expect(policy).not.toContain("script-src");
  expect(page.headers.get("x-frame-options")).toBe("DENY");
  // With no-referrer, a browser sends "Origin: null" with the form, which is refused.
  expect(page.headers.get("referrer-policy")).toBe("same-origin");
  expect(page.html).not.toMatch(/action="http/);
  expect(page.headers.get("cache-control")).toContain("no-store");
}

describe("the pages", () => {
  it("log a user in and ask for consent", async ({ sandbox, browser, as, toConsent }) => {
    const client = await register(as);
    const { begun, login, consent } = await toConsent(client, { resource: sandbox.mcpUrl, scope: "mcp reports:read" });
    for (const page of [login, consent]) {
      expectSafe(page);
      expect(page.html).toContain("Test agent");
      expect(page.headers.get("content-security-policy")).toContain("form-action 'self' http://127.0.0.1:9;");
    }
    expect(login.html).toContain("Log in as Alice Example");
    for (const shown of ["Carol Example", "127.0.0.1:9", sandbox.mcpUrl, "reports:read"]) {
      expect(consent.html).toContain(shown);
    }
    const callback = asCallback(await browser.press(consent, "decision", "allow"));
    const tokens = await redeem(as, client, begun, callback);
    const who = await callTool(sandbox.mcpUrl, tokens.access_token, "admin_report");
    expect(who.status).toBe(200);
    expect((await (await callTool(sandbox.mcpUrl, tokens.access_token, "whoami")).text()).includes("carol")).toBe(true);
  });

  it("work without scripts and by keyboard alone: links, fields and buttons only, each with a text", async ({
    as,
    toConsent,
  }) => {
    const { consent, login } = await toConsent(await register(as));
    for (const { html } of [login, consent]) {
      expect(html).not.toMatch(/tabindex|<div[^>]*role=/);
      for (const [, text] of html.matchAll(/<button[^>]*>(.*?)<\/button>/g)) expect(text).not.toBe("");
      expect(html).toMatch(/:focus-visible/);
      expect(html).toMatch(/prefers-color-scheme:dark/);
      expect(html).toMatch(/name="viewport"/);
    }
  });

  it("can be refused, at either one", async ({ sandbox, browser, as, toConsent }) => {
    const client = await register(as);
    const { begun, consent } = await toConsent(client);
    const denied = asCallback(await browser.press(consent, "decision", "deny"));
    expect(Object.fromEntries(denied.searchParams)).toMatchObject({ error: "access_denied", state: begun.state });
    const stranger = new Browser(sandbox.origin);
    const login = asPage(await stranger.open((await begin(as, client)).url));
    const cancelled = asCallback(await stranger.press(login, "decision", "deny"));
    expect(cancelled.searchParams.get("error")).toBe("access_denied");
  });

  it("remember who logged in, for the server of one pool", async ({ sandbox, browser, as, toConsent }) => {
    await toConsent(await register(as));
    const again = asPage(await browser.open((await begin(as, await register(as))).url));
    expect(again.html).toContain("logged in as <strong>Carol Example");
    const [, other] = sandbox.data.pools(sandbox.ids.domain);
    const theirs = await discover(sandbox, other?.id);
    const elsewhere = asPage(await browser.open((await begin(theirs, await register(theirs))).url));
    expect(elsewhere.html).toContain("Log in as");
    await browser.press(elsewhere, "account", "bob");
    const back = asPage(await browser.open((await begin(as, await register(as))).url));
    expect(back.html).toContain("logged in as <strong>Carol Example");
  });

  it("log no user in without the browser's own cookies, or with an unknown user", async ({ sandbox, browser, as }) => {
    const { url } = asPage(await browser.open((await begin(as, await register(as))).url));
    const stranger = new Browser(sandbox.origin);
    const stolen = asPage(await stranger.open(url, { account: "alice" }));
    expect([stolen.status, stolen.html.includes("expired")]).toEqual([400, true]);
    expectSafe(stolen);
    expect(asPage(await browser.open(url, { account: "mallory" })).status).toBe(400);
    expect(asPage(await browser.open(url, {})).status).toBe(400);
  });

  it.for([
    '</title><script>alert(1)</script><img src=x onerror="alert(1)">',
    "\" autofocus onfocus='alert(1)' x=\"",
    "admin\u202egnp.exe\u0000\u001b[31m",
    `&lt;${"x".repeat(5000)}`,
  ])("escape a hostile client name: %j", async (client_name, { browser, as }) => {
    const client = await register(as, {
      client_name,
      application_type: "native",
      redirect_uris: ["com.example.app:/cb?<b>"],
    });
    const begun = await begin(as, client, { redirect_uri: "com.example.app:/cb?<b>" });
    const login = asPage(await browser.open(begun.url));
    const consent = asPage(await browser.press(login, "account", "bob"));
    for (const page of [login, consent]) {
      expectSafe(page);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there
      expect(page.html).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
      expect(page.html.length).toBeLessThan(10_000);
    }
    expect(consent.html).toContain("com.example.app:");
  });

  it("escape hostile scopes and show the error of a request that cannot be sent back", async ({
    browser,
    as,
    toConsent,
  }) => {
    const client = await register(as);
    const { consent } = await toConsent(client, { scope: "<script>x</script>" });
    expectSafe(consent);
    const wrong = await begin(as, client, { redirect_uri: "https://evil.example/<script>" });
    const error = asPage(await browser.open(wrong.url));
    expect([error.status, error.html.includes("invalid_redirect_uri")]).toEqual([400, true]);
    expectSafe(error);
    wrong.url.searchParams.set("client_id", "<script>alert(1)</script>");
    expectSafe(asPage(await browser.open(wrong.url)));
  });
});

describe("automatic login", () => {
  it.override("options", { devices: 5, autoApprove: "dmitri" });

  it("needs neither cookies nor pages, whatever the prompt", async ({ sandbox, as }) => {
    const client = await register(as, { application_type: "native" });
    for (const prompt of [{}, { prompt: "login" }, { prompt: "consent" }, { prompt: "login consent" }]) {
      const begun = await begin(as, client, { ...prompt, resource: sandbox.mcpUrl });
      const response = await fetch(begun.url, { redirect: "manual" });
      expect(response.status).toBe(303);
      expect(response.headers.getSetCookie()).toEqual([]);
      const tokens = await redeem(as, client, begun, new URL(response.headers.get("location") ?? ""));
      const who = await callTool(sandbox.mcpUrl, tokens.access_token, "whoami");
      expect(await who.text()).toContain("dmitri");
    }
  });

  it("still sends errors back, and shows those that cannot be", async ({ as }) => {
    const client = await register(as);
    const { url, state } = await begin(as, client, { response_type: "token" });
    const sent = new URLSearchParams((await landing(url)).hash.slice(1));
    expect(Object.fromEntries(sent)).toMatchObject({ error: "unsupported_response_type", state });
    expect(sent.has("iss")).toBe(false);
    const unknown = await fetch((await begin(as, { ...client, client_id: "nobody" })).url, { redirect: "manual" });
    expect(unknown.status).toBe(400);
  });
});

describe("logout", () => {
  it("ends the session after asking", async ({ browser, as, toConsent }) => {
    const client = await register(as, { post_logout_redirect_uris: ["http://127.0.0.1:9/bye"] });
    await toConsent(client);
    const requested = asPage(await browser.open(as.end_session_endpoint ?? ""));
    expectSafe(requested);
    expect(requested.html).toContain("Log out?");
    const done = asPage(await browser.press(requested, "logout", "yes"));
    expect(done.html).toContain("Logged out");
    const again = asPage(await browser.open((await begin(as, client)).url));
    expect(again.html).toContain("Log in as");
  });

  it("asks nothing where no user is logged in, and goes where the client registered", async ({ browser, as }) => {
    expect(asPage(await browser.open(as.end_session_endpoint ?? "")).html).toContain("Logged out");
    const client = await register(as, { post_logout_redirect_uris: ["http://127.0.0.1:9/bye"] });
    const url = new URL(as.end_session_endpoint ?? "");
    url.search = new URLSearchParams({
      client_id: client.client_id,
      post_logout_redirect_uri: "http://127.0.0.1:9/bye",
      state: "s",
    }).toString();
    expect(asCallback(await browser.open(url)).href).toBe("http://127.0.0.1:9/bye?state=s");
    url.searchParams.set("post_logout_redirect_uri", "https://evil.example/");
    expect(asPage(await browser.open(url)).status).toBe(400);
  });

  it("takes the hint of an id token", async ({ start }) => {
    const sandbox = await start({ autoApprove: true });
    const { as, client, tokens } = await logIn(
      sandbox,
      { scope: "openid mcp" },
      { post_logout_redirect_uris: ["http://127.0.0.1:9/bye"] },
    );
    const url = new URL(as.end_session_endpoint ?? "");
    url.searchParams.set("id_token_hint", tokens.id_token ?? "");
    url.searchParams.set("post_logout_redirect_uri", "http://127.0.0.1:9/bye");
    expect(asCallback(await new Browser(sandbox.origin).open(url)).href).toBe("http://127.0.0.1:9/bye");
    expect(client.client_id).toBeDefined();
    expect(JSON.stringify(sandbox.requests)).not.toContain(tokens.id_token);
  });
});

describe("the device flow", () => {
  it.override("options", { devices: 5, deviceFlow: true });

  it("lets the user type the code", async ({ sandbox, browser, beginDevice }) => {
    const { device, poll } = await beginDevice();
    expect(await (await poll()).json()).toMatchObject({ error: "authorization_pending" });
    const input = asPage(await browser.open(device.verification_uri));
    const wrong = asPage(await browser.press(input, undefined, undefined, { user_code: "nonsense" }));
    expect(wrong.html).toContain("is not valid");
    const confirm = asPage(await browser.press(wrong, undefined, undefined, { user_code: device.user_code }));
    expect(confirm.html).toContain(device.user_code);
    const login = asPage(await browser.press(confirm));
    const consent = asPage(await browser.press(login, "account", "bob"));
    const done = asPage(await browser.press(consent, "decision", "allow"));
    for (const page of [input, wrong, confirm, login, consent, done]) expectSafe(page);
    expect(done.html).toContain("connected");
    const tokens = (await (await poll()).json()) as { access_token: string; refresh_token: string };
    expect((await callTool(sandbox.mcpUrl, tokens.access_token, "whoami")).status).toBe(200);
    expect(sandbox.data.deviceCount(sandbox.ids.pool)).toBe(6);
    expect(JSON.stringify(sandbox.requests)).not.toContain(device.user_code);
  });

  it("takes the complete address, and refuses by a button", async ({ sandbox, browser, beginDevice }) => {
    const { device, poll } = await beginDevice();
    const confirm = asPage(await browser.open(device.verification_uri_complete));
    expectSafe(confirm);
    await browser.press(confirm, "abort", "yes");
    expect(await (await poll()).json()).toMatchObject({ error: "access_denied" });
    expect(JSON.stringify(sandbox.requests)).not.toContain(device.user_code);
  });
});

describe("the device flow where the sandbox logs in by itself", () => {
  it.override("options", { devices: 5, deviceFlow: true, autoApprove: true });

  it("is done by opening the complete address", async ({ beginDevice }) => {
    const { device, poll } = await beginDevice();
    const response = await fetch(device.verification_uri_complete);
    expect(await response.text()).toContain("connected");
    expect((await poll()).status).toBe(200);
  });
});

it("redirects to where the client registered only", async ({ browser, as }) => {
  const client = await register(as);
  const page = asPage(await browser.open((await begin(as, client, { redirect_uri: `${REDIRECT_URI}/other` })).url));
  expect(page.status).toBe(400);
});
