import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { AgentAuthError, type ErrorClass } from "../../src/errors.js";
import type { AgentClient } from "../../src/oauth/agent.js";
import {
  comesFromElsewhere,
  describeFailure,
  isOffered,
  loginHandlers,
  loginMiddlewares,
} from "../../src/oauth/login-handlers.js";
import { startScene } from "../helpers/issuer.js";
import { consent, cookieHeader, REDIRECT_URI, SECRET } from "./login/web-support.js";

type Visit = (page: "start" | "callback", query: string, init?: RequestInit) => Promise<Response>;

interface App {
  visit: Visit;
  onError: ReturnType<typeof vi.fn>;
}

/** The scopes that a link may name. */
const SCOPES = ["tools", "reports"];

/** Both forms of the pages; the user is named by the header `user`. */
const FORMS: [name: string, open: (agentOf: (user: string) => AgentClient, servers: string[]) => Promise<App>][] = [
  [
    "fetch-style handlers",
    async (agentOf, servers) => {
      const onError = vi.fn();
      const agent = ({ headers }: Request) => {
        const user = headers.get("user");
        return user === null ? undefined : agentOf(user);
      };
      const logins = loginHandlers({ agent, redirectUri: REDIRECT_URI, servers, scopes: SCOPES, onError });
      return {
        onError,
        visit: (page, query, init) => logins[page](new Request(`https://app.example/?${query}`, init)),
      };
    },
  ],
  [
    "handlers of Node",
    async (agentOf, servers) => {
      const onError = vi.fn();
      const agent = async ({ headers: { user } }: IncomingMessage) =>
        typeof user === "string" ? agentOf(user) : undefined;
      const logins = loginMiddlewares({ agent, redirectUri: REDIRECT_URI, servers, scopes: SCOPES, onError });
      const server = createServer((request, response) => {
        void logins[request.url?.startsWith("/start") ? "start" : "callback"](request, response);
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      onTestFinished(() => void server.close());
      const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      return {
        onError,
        visit: (page, query, init) => fetch(`${origin}/${page}?${query}`, { redirect: "manual", ...init }),
      };
    },
  ],
];

describe.each(FORMS)("the login pages as %s", (_name, open) => {
  async function start(loginSecret?: string) {
    const scene = await startScene();
    const agentOf = (profile: string) => scene.agent({ profile, loginSecret });
    const app = await open(agentOf, [scene.mcp.url]);
    const begin = (more = "", headers = {}) =>
      app.visit("start", `server=${encodeURIComponent(scene.mcp.url)}${more}`, {
        headers: { user: "alice", ...headers },
      });
    return { ...scene, ...app, begin, agentOf };
  }

  const finish = async (visit: Visit, started: Response, user = "alice") => {
    const { search } = await consent(started.headers.get("location") ?? "");
    const cookie = cookieHeader(...started.headers.getSetCookie());
    return visit("callback", search.slice(1), { headers: { user, cookie } });
  };

  it.each([undefined, SECRET])("log a user in and return to the page, with the secret %s", async (secret) => {
    const { begin, visit, mcp, agentOf } = await start(secret);
    const started = await begin(`&returnTo=${encodeURIComponent("/inbox")}&scope=tools`);
    expect(started.status).toBe(302);
    expect(started.headers.get("cache-control")).toBe("no-store");
    expect(started.headers.get("referrer-policy")).toBe("no-referrer");
    const cookies = started.headers.getSetCookie();
    expect(cookies).toHaveLength(secret === undefined ? 1 : 2);
    const [browser, saved] = cookies;
    expect(browser).toMatch(/^__Host-agentauth-[^;]+; Path=\/; Max-Age=600; Secure; HttpOnly; SameSite=Lax$/);
    // Only the callback gets the sealed login: the other pages have no use for it, and headers have a limit.
    const ofSaved = /^__Secure-agentauth-\w+-saved=[^;]+; Path=\/oauth\/callback; Max-Age=600; Secure; HttpOnly; Same/;
    if (secret !== undefined) expect(saved).toMatch(ofSaved);
    const done = await finish(visit, started);
    expect([done.status, done.headers.get("location")]).toEqual([302, "https://app.example/inbox"]);
    expect(done.headers.getSetCookie().map((one) => one.split(";").slice(0, 3))).toEqual(
      cookies.map((one) => [`${one.split("=")[0]}=`, one.split(";")[1], " Max-Age=0"]),
    );
    expect((await agentOf("alice").token(mcp.url)).value).toBe("access-as-1");
  });

  it.each([undefined, SECRET])("redirect once more for fewer scopes, with the secret %s", async (secret) => {
    const { begin, visit, mcp, issuer } = await start(secret);
    mcp.metadata["scopes_supported"] = ["tools"];
    issuer.metadata["scopes_supported"] = ["tools", "offline_access"];
    issuer.callback = { error: "invalid_scope", code: null };
    const again = await finish(visit, await begin());
    expect(new URL(again.headers.get("location") ?? "").searchParams.get("scope")).toBe("tools");
    issuer.callback = {};
    const live = again.headers.getSetCookie().filter((one) => !one.includes("Max-Age=0"));
    const { search } = await consent(again.headers.get("location") ?? "");
    const done = await visit("callback", search.slice(1), {
      headers: { user: "alice", cookie: cookieHeader(...live) },
    });
    expect(done.headers.get("location")).toBe("https://app.example/");
  });

  it("keep a sealed login small, however many scopes the issuer supports", async () => {
    const { begin, visit, mcp, issuer } = await start(SECRET);
    const scopes = Array.from({ length: 25 }, (_, at) => `https://issuer.example/auth/service-${at}.readonly`);
    mcp.metadata["scopes_supported"] = scopes.slice(0, 3);
    issuer.metadata["scopes_supported"] = [...scopes, ...scopes.map((one) => `${one}.more`)];
    const started = await begin();
    const saved = started.headers.getSetCookie()[1]?.split(";")[0] ?? "";
    expect(saved.length).toBeGreaterThan(500);
    expect(saved.length).toBeLessThan(1600);
    expect((await finish(visit, started)).headers.get("location")).toBe("https://app.example/");
    mcp.metadata["scopes_supported"] = scopes;
    const all = await begin();
    expect(all.headers.getSetCookie()[1]?.split(";")[0]?.length).toBeLessThan(2048);
    expect((await finish(visit, all)).status).toBe(302);
  });

  it("remove the oldest of the sealed logins that were abandoned, and no other cookie", async () => {
    const { begin, visit } = await start(SECRET);
    const logins: Response[] = [];
    let jar = ["session=1", "__Host-agentauth-x=1", "__Host-agentauth-0123456789abcdef-saved=1"];
    const removed: string[][] = [];
    for (let nth = 0; nth < 5; nth++) {
      const started = await begin("", { cookie: jar.join("; ") });
      const set = started.headers.getSetCookie();
      const ends = set.filter((one) => one.includes("Max-Age=0"));
      const gone = ends.map((one) => one.split("=")[0] ?? "");
      expect(ends.map((one) => one.split(";")[0])).toEqual(gone.map((name) => `${name}=`));
      removed.push(gone);
      const fresh = set.filter((one) => !one.includes("Max-Age=0")).map((one) => one.split(";")[0] ?? "");
      jar = [...jar.filter((one) => !gone.includes(one.split("=")[0] ?? "")), ...fresh];
      logins.push(started);
    }
    const namesOf = (response?: Response) =>
      response?.headers
        .getSetCookie()
        .filter((one) => !one.includes("Max-Age=0"))
        .map((one) => one.split("=")[0]);
    expect(removed).toEqual([[], [], [], namesOf(logins[0]), namesOf(logins[1])]);
    expect(jar).toHaveLength(3 + 2 * 3);
    expect(logins[3]?.headers.getSetCookie()[1]).toContain("Path=/oauth/callback; Max-Age=0");
    const { search } = await consent(logins[2]?.headers.get("location") ?? "");
    const done = await visit("callback", search.slice(1), { headers: { user: "alice", cookie: jar.join("; ") } });
    expect(done.headers.get("location")).toBe("https://app.example/");
  });

  it("remove no cookie where the store holds the logins", async () => {
    const { begin } = await start();
    const cookie = Array.from({ length: 9 }, (_, at) => `__Host-agentauth-0123456789abcde${at}=1`).join("; ");
    expect((await begin("", { cookie })).headers.getSetCookie()).toHaveLength(1);
  });

  it("answer 401 without a user of the web app", async () => {
    const { visit } = await start();
    for (const refused of [await visit("start", "server=x"), await visit("callback", "state=x")])
      expect([refused.status, await refused.text()]).toEqual([401, "Log in to this application first.\n"]);
  });

  it("offer no login at other servers, and send no request", async () => {
    const { visit, log } = await start();
    for (const server of ["https://evil.example/mcp", "", "http://169.254.169.254/"]) {
      const refused = await visit("start", `server=${server}`, { headers: { user: "alice" } });
      expect([refused.status, await refused.text()]).toEqual([404, "No login is offered at this server.\n"]);
    }
    expect(log).toEqual([]);
  });

  const page = "https://app.example/inbox?a=1";

  it.each([
    // Another origin of the same domain, such as the pages of a customer.
    [{ "sec-fetch-site": "same-site", referer: page }],
    // A browser without Fetch Metadata.
    [{ origin: "https://evil.example" }],
  ])("start no login for another site: %j", async (headers: Record<string, string>) => {
    const { begin, log } = await start();
    const refused = await begin("", headers);
    expect([refused.status, await refused.text()]).toEqual([403, "Start the login on this site.\n"]);
    expect(log).toEqual([]);
  });

  it.each([[{ "sec-fetch-site": "none" }], [{ origin: "https://app.example", referer: page }]])(
    "start a login for a page of the app, or an address that the user typed: %j",
    async (headers) => {
      const { begin } = await start();
      expect((await begin("", { ...headers })).status).toBe(302);
    },
  );

  it("request the scopes of a link only if the app lists them", async () => {
    const { begin, log } = await start();
    for (const scope of ["admin", "tools admin", "tools%20%20reports", "Tools"]) {
      const refused = await begin(`&scope=${scope}`);
      expect([refused.status, await refused.text()], scope).toEqual([403, "A scope is not offered.\n"]);
    }
    expect(log).toEqual([]);
    const started = await begin("&scope=reports%20tools");
    expect(new URL(started.headers.get("location") ?? "").searchParams.get("scope")).toBe("reports tools");
    expect((await begin("&scope=")).status).toBe(302);
  });

  it("request no scope of a link without a list", async () => {
    const { agentOf, mcp } = await start();
    const agent = () => agentOf("alice");
    const { start: page } = loginHandlers({ agent, redirectUri: REDIRECT_URI, servers: [mcp.url] });
    const query = `server=${encodeURIComponent(mcp.url)}&scope=tools`;
    expect((await page(new Request(`https://app.example/?${query}`))).status).toBe(403);
  });

  it("answer GET requests only", async () => {
    const { visit } = await start();
    for (const method of ["POST", "HEAD", "PUT"]) {
      const refused = await visit("callback", "state=x", { method, headers: { user: "alice" } });
      expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET"]);
      const text = method === "HEAD" ? [""] : ["The method is not allowed.\n"];
      expect([...text, "The method is not allowed.\n"]).toContain(await refused.text());
    }
  });

  it("refuse another page to return to", async () => {
    const { begin } = await start();
    const refused = await begin("&returnTo=//evil.example");
    expect([refused.status, await refused.text()]).toEqual([400, "The login failed: usage\n"]);
  });

  it("refuse a sealed login that no cookie can hold", async () => {
    const { begin, onError } = await start(SECRET);
    const noise = Array.from({ length: 150 }, () => crypto.randomUUID()).join("");
    expect((await begin(`&returnTo=/${noise}`)).status).toBe(400);
    expect(onError).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({
        code: "usage",
        class: "usage",
        message: expect.stringMatching(/^the sealed login has \d{4} characters, which is too much for a cookie$/),
        hint: "leave out loginSecret, and use a store that all processes share",
      }),
    );
  });

  it("show the code of an error, and give the operator the rest", async () => {
    const { begin, visit, issuer, onError } = await start();
    issuer.callback = { error: "access_denied", error_description: "<script>PLANTED", code: null };
    const failed = await finish(visit, await begin());
    expect([failed.status, await failed.text()]).toEqual([400, "The login failed: access_denied\n"]);
    expect(failed.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(failed.headers.get("x-content-type-options")).toBe("nosniff");
    expect(failed.headers.get("cache-control")).toBe("no-store");
    expect(failed.headers.get("referrer-policy")).toBe("no-referrer");
    expect(onError).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: "access_denied" }));
    issuer.callback = { error: "<script>PLANTED", code: null };
    expect(await (await finish(visit, await begin())).text()).not.toContain("PLANTED");
  });

  it.each([undefined, SECRET])("refuse the callback to another user, with the secret %s", async (secret) => {
    const { begin, visit, store } = await start(secret);
    expect((await finish(visit, await begin(), "mallory")).status).toBe(400);
    expect(await store.list()).toEqual([]);
  });

  it("answer 503 if the issuer is unavailable, and 500 for a mistake of the web app", async () => {
    const { begin, visit, issuer, mcp } = await start();
    issuer.routes["/pool/token"] = { status: 503 };
    expect((await finish(visit, await begin())).status).toBe(503);
    const broken = await open(() => {
      throw new RangeError("oops");
    }, [mcp.url]);
    const failed = await broken.visit("start", "", { headers: { user: "alice" } });
    expect([failed.status, await failed.text()]).toEqual([500, "The login failed: internal_error\n"]);
  });

  it("refuse a redirect address that is not safe", async () => {
    for (const make of [loginHandlers, loginMiddlewares])
      expect(() => make({ agent: () => undefined, redirectUri: "http://app.example/", servers: [] })).toThrow("https");
  });
});

describe("a browser that a login fails for", () => {
  it.each<[string, ErrorClass, number, string]>([
    ["access_denied", "auth", 400, "access_denied"],
    ["usage", "usage", 400, "usage"],
    ["bad_token_answer", "refused", 400, "bad_token_answer"],
    ["http_error", "remote", 400, "http_error"],
    ["timeout", "unavailable", 503, "timeout"],
    ["store_failed", "store", 500, "store_failed"],
    ["aborted", "aborted", 500, "aborted"],
    ["x".repeat(40), "auth", 400, "x".repeat(40)],
    ["x".repeat(41), "auth", 400, "internal_error"],
    ["a-code", "auth", 400, "internal_error"],
    ["acode\n", "auth", 400, "internal_error"],
    ["1code", "auth", 400, "internal_error"],
  ])("learns of %j (%s) the status %i and %s", (code, kind, status, shown) => {
    expect(describeFailure(new AgentAuthError(code, "m", { class: kind }))).toEqual({ status, code: shown });
  });

  it("learns of a bug that there is one", () => {
    expect(describeFailure(new Error("x"))).toEqual({ status: 500, code: "internal_error" });
  });
});

it.each([
  [{ "sec-fetch-site": "same-origin" }, false],
  [{ "sec-fetch-site": "none" }, false],
  [{ "sec-fetch-site": "same-site" }, true],
  [{ "sec-fetch-site": "cross-site" }, true],
  [{ "sec-fetch-site": "same-origin", origin: "https://evil.example" }, false],
  [{}, false],
  [{ origin: "https://app.example" }, false],
  [{ origin: "https://app.example:8443" }, true],
  [{ origin: "null" }, true],
  [{ referer: "https://app.example/a" }, false],
  [{ referer: "https://blog.app.example/post" }, true],
  [{ referer: "http://app.example/" }, true],
  [{ origin: "https://app.example", referer: "https://evil.example/" }, true],
])("a request with %j comes from elsewhere: %s", (headers, expected) => {
  expect(comesFromElsewhere(new Headers(headers as Record<string, string>), REDIRECT_URI)).toBe(expected);
});

it.each([
  [undefined, true],
  ["a", true],
  ["b a", true],
  ["a c", false],
  ["", false],
])("the scopes %j are offered: %s", (scope, expected) => {
  expect(isOffered(scope, ["a", "b"])).toBe(expected);
});
