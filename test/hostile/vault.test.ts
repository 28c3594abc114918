import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import type { VaultOptions } from "../../src/vault/vault-handler.js";
import { consent, cookieHeader } from "../oauth/login/web-support.js";
import { ORIGIN, problemOf, startVault, type VaultScene } from "../vault/support.js";

const EVIL = "https://evil.example";
const FORM = "application/x-www-form-urlencoded";
const TOKEN = "0".repeat(36);
const COOKIE = `__Host-agentauth-form=${TOKEN}`;

/** Requests that change something, as another site or a careless page sends them. */
const CROSS_SITE: [name: string, headers: Record<string, string>, status: number][] = [
  ["another site", { "sec-fetch-site": "cross-site", origin: EVIL }, 403],
  ["another host of the domain", { "sec-fetch-site": "same-site", origin: "https://blog.app.example" }, 403],
  ["another site, in a browser without Fetch Metadata", { "sec-fetch-site": "", origin: EVIL }, 403],
  ["a sandboxed frame of another site", { "sec-fetch-site": "", origin: "null" }, 403],
  ["the same host without encryption", { "sec-fetch-site": "", origin: "http://app.example" }, 403],
  ["another port", { "sec-fetch-site": "", origin: `${ORIGIN}:8443` }, 403],
  ["text that is JSON", { "content-type": "text/plain" }, 415],
  ["a form in parts", { "content-type": "multipart/form-data; boundary=x" }, 415],
  ["no type", { "content-type": "" }, 415],
  ["a form without a token", { "content-type": FORM, cookie: COOKIE }, 403],
  ["a form without a cookie", { "content-type": FORM, cookie: "", token: TOKEN }, 403],
  [
    "a form with a cookie that comes twice",
    { "content-type": FORM, cookie: `${COOKIE}; ${COOKIE}`, token: TOKEN },
    403,
  ],
  ["a form with another token", { "content-type": FORM, cookie: COOKIE, token: TOKEN.replace("0", "1") }, 403],
];

/** Bodies that are no request. */
const BODIES: [name: string, body: string | Uint8Array<ArrayBuffer>, status: number][] = [
  ["no UTF-8", Uint8Array.of(0x22, 0xff, 0x22), 400],
  ["more than 16 KB", JSON.stringify({ server: "x".repeat(17_000) }), 413],
  ["no JSON", "{", 400],
  ["a list", "[]", 400],
  ["a number for a server", '{"server":1}', 400],
  ["an object for a server", '{"server":{"toString":"x"}}', 400],
  ["the server twice", '{"server":"https://a.example","server":"https://b.example"}', 400],
  ["a prototype", '{"__proto__":{"server":"x"}}', 400],
  ["deep nesting", `${'{"a":'.repeat(500)}1${"}".repeat(500)}`, 400],
];

async function connected(options: Partial<VaultOptions> = {}) {
  const scene = await startVault(options);
  expect((await scene.connect()).status).toBe(303);
  return { ...scene, requests: scene.log.length };
}

const stored = async ({ store }: Pick<VaultScene, "store">) => (await store.list()).map(({ profile }) => profile);

describe("the vault, against other sites", () => {
  it.each(CROSS_SITE)("refuses %s, and changes nothing", async (_name, { token, ...headers }, status) => {
    const scene = await connected({ token: true });
    for (const path of ["/connect", "/disconnect", "/token"]) {
      const fields = { server: scene.mcp.url, ...(token !== undefined && { form_token: token }) };
      const isForm = headers["content-type"] === FORM;
      const body = isForm ? `${new URLSearchParams(fields)}` : JSON.stringify(fields);
      const sent = { "sec-fetch-site": "same-origin", user: "ann", "content-type": "application/json", ...headers };
      const given = Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== ""));
      const request = new Request(`${ORIGIN}/vault${path}`, { method: "POST", headers: given, body });
      expect((await scene.vault.fetch(request)).status, path).toBe(status);
    }
    expect(await stored(scene)).toEqual(["ann"]);
    expect(scene.log).toHaveLength(scene.requests);
  });

  it("lets no page of another origin read a response, nor send a request that is not simple", async () => {
    const { send } = await connected();
    for (const [path, init] of [
      ["/connections", {}],
      ["/connect", { method: "OPTIONS", headers: { "access-control-request-method": "POST" } }],
    ] as const) {
      const { headers, status } = await send(path, { ...init, headers: { ...init, origin: EVIL } as never });
      expect([...headers.keys()].filter((name) => name.startsWith("access-control-"))).toEqual([]);
      expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
      expect(headers.get("cache-control")).toBe("no-store");
      expect(status).toBe(path === "/connections" ? 200 : 405);
    }
  });

  it.each([EVIL, "//evil.example", "/\\evil.example", "https://app.example@evil.example/", "javascript:alert(1)"])(
    "returns to no other origin: %s",
    async (page) => {
      const scene = await connected();
      for (const path of ["/connect", "/disconnect"]) {
        const body = { server: scene.mcp.url, return_to: page };
        expect(await problemOf(await scene.post(path, body)), path).toEqual([400, "usage"]);
        const form = new URLSearchParams({ ...body, form_token: TOKEN });
        const sent = await scene.send(path, { method: "POST", headers: { cookie: COOKIE }, body: form });
        expect(sent.headers.get("location"), path).toBe(`${ORIGIN}/?error=usage`);
      }
      expect(await stored(scene)).toEqual(["ann"]);
    },
  );
});

describe("the vault, against its users", () => {
  it("answers the same whether another user has a connection or not", async () => {
    const scene = await connected({ token: true });
    const answers = async (user: string, server: string) =>
      Promise.all(
        [
          scene.send("/connections", { headers: { user } }),
          scene.post("/disconnect", { server }, { user }),
          scene.post("/token", { server }, { user }),
          scene.send("/nothing", { headers: { user } }),
        ].map(async (sent) => {
          const response = await sent;
          return [response.status, [...response.headers], await response.text()];
        }),
      );
    const before = await answers("mallory", scene.mcp.url);
    await scene.post("/disconnect", { server: scene.mcp.url });
    expect(await answers("mallory", scene.mcp.url)).toEqual(before);
    // A connection that is not there and one that cannot be are one.
    expect((await answers("mallory", "no address"))[1]).toEqual(before[1]);
  });

  it("answers 401 to all without a user, also where nothing is", async () => {
    const { vault, mcp } = await connected();
    const texts = new Set<string>();
    for (const path of ["/connections", "/connect", "/callback?state=x", "/token", "/nothing"])
      for (const method of ["GET", "POST"]) {
        const response = await vault.fetch(new Request(`${ORIGIN}/vault${path}`, { method }));
        expect(response.status).toBe(401);
        texts.add(await response.text());
      }
    expect(texts.size).toBe(1);
    expect([...texts].join()).not.toContain(mcp.url);
  });

  it("finishes no login of another user, nor in another browser", async () => {
    const scene = await startVault();
    const started = await scene.post("/connect", { server: scene.mcp.url });
    const { search } = await consent(((await started.json()) as { url: string }).url);
    const cookie = cookieHeader(...started.headers.getSetCookie());
    const cases: [Record<string, string>, string][] = [
      [{ user: "mallory", cookie }, "login_not_found"],
      [{ user: "ann" }, "browser_mismatch"],
    ];
    for (const [headers, code] of cases) {
      const refused = await scene.send(`/callback${search}`, { headers });
      expect(refused.headers.get("location")).toBe(`${ORIGIN}/?error=${code}`);
    }
    expect(await stored(scene)).toEqual([]);
    await scene.send(`/callback${search}`, { headers: { cookie } });
    expect(await stored(scene)).toEqual(["ann"]);
  });

  it("lists and ends no connection of another user, whatever the request names", async () => {
    const scene = await connected();
    const query = "profile=ann&user=ann&tenant=&cursor=";
    const listed = await scene.send(`/connections?${query}`, { headers: { user: "mallory" } });
    expect(await listed.json()).toEqual({ items: [], cursor: null });
    const body = { server: scene.mcp.url, profile: "ann", user: "ann" };
    expect((await scene.post("/disconnect", body, { user: "mallory" })).status).toBe(404);
    expect(await stored(scene)).toEqual(["ann"]);
  });

  it.each([
    "http://169.254.169.254/latest",
    "http://127.0.0.1:1/mcp",
    "file:///etc/passwd",
    "https://mcp.example/mcp\r\nset-cookie: a=b",
    "",
  ])("sends no request to a server that it does not offer: %j", async (server) => {
    const scene = await startVault({ token: true });
    for (const path of ["/connect", "/token", "/disconnect"])
      expect(await problemOf(await scene.post(path, { server })), path).toEqual([404, "not_found"]);
    expect(scene.log).toEqual([]);
  });

  it.each(BODIES)("refuses a body with %s", async (_name, body, status) => {
    const { send, log, requests } = await connected();
    const init = { method: "POST", headers: { "content-type": "application/json" }, body };
    for (const path of ["/connect", "/disconnect"]) expect((await send(path, init)).status, path).toBe(status);
    expect(log).toHaveLength(requests);
  });

  it("reads no body to its end that is too large", async () => {
    const { vault, send } = await connected();
    let parts = 0;
    const body = new ReadableStream({
      pull(controller) {
        parts++;
        controller.enqueue(new Uint8Array(1024).fill(32));
      },
    });
    const init = { method: "POST", headers: { "content-type": "application/json" }, body, duplex: "half" };
    expect((await send("/connect", init as RequestInit)).status).toBe(413);
    expect(parts).toBeLessThan(30);
    const twice = new URLSearchParams(`form_token=${TOKEN}&form_token=${TOKEN}`);
    expect((await send("/connect", { method: "POST", headers: { cookie: COOKIE }, body: twice })).status).toBe(400);
    expect(vault.formToken(new Request(ORIGIN, { headers: { cookie: COOKIE } })).token).toBe(TOKEN);
  });

  it("shows no cookie of another form in a page", () => {
    const planted = 'x"><script>alert(1)</script>';
    return startVault().then(({ vault }) => {
      const headers = { cookie: `__Host-agentauth-form=${planted}` };
      expect(vault.formToken(new Request(ORIGIN, { headers })).token).toMatch(/^[\w-]{36}$/);
    });
  });

  it("limits the requests of each user, and says when the next one may come", async () => {
    const { send, clock } = await startVault({ requestsPerMinute: 6 });
    const statuses = async (user: string, count: number) => {
      const all: number[] = [];
      for (let nth = 0; nth < count; nth++) all.push((await send("/connections", { headers: { user } })).status);
      return all;
    };
    expect(await statuses("mallory", 8)).toEqual([200, 200, 200, 200, 200, 200, 429, 429]);
    expect(await statuses("ann", 1)).toEqual([200]);
    const refused = await send("/nothing", { headers: { user: "mallory" } });
    expect([refused.headers.get("retry-after"), ...(await problemOf(refused))]).toEqual([
      "10",
      429,
      "too_many_requests",
    ]);
    await clock.sleep(10_000, new AbortController().signal);
    expect(await statuses("mallory", 2)).toEqual([200, 429]);
    await clock.sleep(3_600_000, new AbortController().signal);
    expect((await statuses("mallory", 7)).filter((status) => status === 200)).toHaveLength(6);
  });

  it("puts no text of an issuer or of a request into a header", async () => {
    const { connect, issuer, post, mcp } = await startVault();
    issuer.callback = { error: "x\r\nset-cookie: a=b", error_description: "PLANTED", code: null };
    const failed = await connect();
    expect(failed.headers.get("location")).toBe(`${ORIGIN}/?error=internal_error`);
    expect(failed.headers.getSetCookie()).toEqual([]);
    const page = "/page\r\nset-cookie: a=b";
    const started = await post("/connect", { server: mcp.url, return_to: page });
    expect(started.headers.getSetCookie()).toHaveLength(1);
  });
});

describe("the vault, and secrets", () => {
  it("has no token in any response, nor in what is printed of it", async () => {
    const scene = await startVault();
    const texts: string[] = [];
    const note = async (sent: Response | Promise<Response>) => {
      const response = await sent;
      texts.push(inspect([...response.headers]), await response.text());
    };
    await note(scene.connect());
    await note(scene.send("/connections"));
    await note(scene.post("/token", { server: scene.mcp.url }));
    scene.issuer.routes["/pool/revoke"] = { status: 400, json: { error: "access-as-1 refresh-as-1" } };
    await note(scene.post("/disconnect", { server: scene.mcp.url }));
    await note(scene.connect());
    texts.push(inspect(scene.vault, { depth: 9, showHidden: true }));
    expect(texts.join("\n")).not.toMatch(/(?:access|refresh|secret)-as-|code-as-/);
  });

  it("knows no route to a token unless it is switched on", async () => {
    const { post, mcp } = await connected();
    expect(await problemOf(await post("/token", { server: mcp.url }))).toEqual([404, "not_found"]);
    expect(await problemOf(await post("/nothing", {}))).toEqual([404, "not_found"]);
    const on = await connected({ token: true });
    expect((await on.post("/token", { server: on.mcp.url })).status).toBe(200);
    expect((await on.send("/token", { headers: {} })).status).toBe(405);
    const body = new URLSearchParams({ form_token: TOKEN, server: on.mcp.url });
    expect((await on.send("/token", { method: "POST", headers: { cookie: COOKIE }, body })).status).toBe(415);
  });
});
