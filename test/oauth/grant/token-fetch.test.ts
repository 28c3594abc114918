import { describe, expect, it } from "vitest";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import { pendingError } from "../../helpers/captured.js";
import { type Scene, startScene } from "../../helpers/issuer.js";
import { loginAt } from "../../helpers/remedy.js";
import { until } from "../../helpers/server.js";
import { rejection } from "../../helpers/service.js";

const TOKEN = "/pool/token";
const SIGNAL = new AbortController().signal;

/** A scene with a login; the requests of the login are forgotten. */
async function loggedIn(over: Record<string, unknown> = {}): Promise<Scene> {
  const scene = await startScene();
  scene.issuer.tokenAnswer = over;
  await scene.agent().login(scene.mcp.url);
  scene.log.length = 0;
  return scene;
}

/** Has the server answer 403 insufficient_scope until the token has these scopes. */
function wantScope({ mcp, store }: Scene, scope: string): void {
  const answer = mcp.routes["/mcp"];
  mcp.routes["/mcp"] = async (request, nth) => {
    const grants = await store.list();
    const brought = request.headers.authorization?.slice(7);
    const grant = grants.find(({ tokens }) => tokens.accessToken.reveal() === brought);
    const granted = grant?.tokens.scope?.split(" ") ?? [];
    if (brought === undefined || scope.split(" ").every((one) => granted.includes(one))) {
      return typeof answer === "function" ? answer(request, nth) : {};
    }
    const challenge = `Bearer error="insufficient_scope", scope="${scope}", resource_metadata="${mcp.origin}${mcp.wellKnown}"`;
    return { status: 403, headers: { "www-authenticate": challenge }, text: "" };
  };
}

describe("sending a token", () => {
  it("[32] goes in the Authorization header of every request, and never in the query (2025-06-18)", async () => {
    const { agent, mcp } = await loggedIn();
    const one = agent();
    for (let nth = 0; nth < 3; nth++) {
      const response = await one.fetch(mcp.url, { headers: { accept: "text/plain" } });
      expect([response.status, await response.json()]).toEqual([200, { ok: true }]);
    }
    expect(mcp.tokens()).toEqual(["Bearer access-as-1", "Bearer access-as-1", "Bearer access-as-1"]);
    expect(mcp.requests.every(({ url }) => !url.includes("access"))).toBe(true);
    expect(mcp.requests.at(-1)?.headers.accept).toBe("text/plain");
  });

  it.each<[number, string, boolean]>([
    [431, "", true],
    [400, "<center>Request Header Or Cookie Too Large</center>", true],
    [400, "Size of a request header field exceeds server limit.", true],
    [413, "request headers are too large", true],
    [413, "the body is too large", false],
    [400, "no tools", false],
  ])("names the size of a token that is too large for the headers: HTTP %i with %j", async (status, text, isNamed) => {
    for (const access_token of ["t".repeat(9000), "t".repeat(900)]) {
      const { agent, mcp } = await loggedIn({ access_token });
      const headers = { "content-type": "text/html", "content-length": String(text.length) };
      mcp.routes["/mcp"] = { status, headers, text };
      const outcome = await agent()
        .fetch(mcp.url)
        .catch((error: unknown) => error);
      const message = expect.stringContaining(`(HTTP ${status}): the token alone has 9000 characters`);
      const isLarge = access_token.length === 9000;
      expect(outcome).toMatchObject(isNamed && isLarge ? { code: "http_error", class: "remote", message } : { status });
      if (outcome instanceof Response) expect(await outcome.text()).toBe(text);
    }
  });

  it("replaces an Authorization header that was there", async () => {
    const { agent, mcp } = await loggedIn();
    await agent().fetch(mcp.url, { headers: { Authorization: "Basic abc" } });
    await agent().fetch(new Request(mcp.url, { headers: { Authorization: "Basic abc" } }));
    expect(mcp.tokens()).toEqual(["Bearer access-as-1", "Bearer access-as-1"]);
  });

  it("refreshes an expired token before it is sent", async () => {
    const { agent, mcp, clock } = await loggedIn();
    await clock.sleep(3_600_000, new AbortController().signal);
    await agent().fetch(mcp.url);
    expect(mcp.tokens()).toEqual(["Bearer access-as-2"]);
  });

  it.each<[string, RequestInit]>([
    ["a body", { method: "POST", body: "for this server" }],
    ["additional headers", { headers: { "x-api-key": "for this server" } }],
    ["a session", { headers: { "mcp-session-id": "for this server" } }],
    ["another method", { method: "DELETE" }],
  ])("takes a request with %s to no other origin", async (_what, init) => {
    const scene = await loggedIn();
    const other = await scene.another("other");
    for (const status of [301, 302, 308]) {
      scene.mcp.routes["/mcp"] = { status, headers: { location: `${other.origin}/mcp` }, text: "" };
      const code = init.method && status === 302 ? "login_required" : "redirect_refused";
      expect(await pendingError(scene.agent().fetch(scene.mcp.url, init))).toMatchObject({ code });
    }
    expect(other.requests).toEqual([]);
  });

  it.each(["GET", "HEAD"])("takes a %s with nothing but public headers to another origin", async (method) => {
    const scene = await loggedIn();
    const other = await scene.another("other");
    other.routes["/mcp"] = { json: {} };
    scene.mcp.routes["/mcp"] = { status: 307, headers: { location: `${other.origin}/mcp` }, text: "" };
    const headers = {
      accept: "text/plain",
      "accept-encoding": "identity",
      "accept-language": "en",
      "cache-control": "no-cache",
      "if-modified-since": "Thu, 01 Jan 1970 00:00:00 GMT",
      "if-none-match": "a",
      pragma: "no-cache",
      range: "bytes=0-",
      "user-agent": "test",
    };
    expect((await scene.agent().fetch(scene.mcp.url, { method, headers })).status).toBe(200);
    const { "accept-encoding": _, ...others } = headers;
    expect(other.to("/mcp")).toMatchObject([{ method, headers: others }]);
    expect(other.to("/mcp")[0]?.headers.authorization).toBeUndefined();
  });

  it("follows no redirect of a private request where its caller does not want that", async () => {
    const scene = await loggedIn();
    scene.mcp.routes["/mcp"] = { status: 307, headers: { location: "/moved" }, text: "" };
    const init = { headers: { "x-key": "b" } };
    expect((await scene.agent().fetch(scene.mcp.url, { ...init, redirect: "manual" })).status).toBe(307);
    await expect(scene.agent().fetch(scene.mcp.url, { ...init, redirect: "error" })).rejects.toThrow();
    expect(scene.mcp.to("/moved")).toEqual([]);
  });

  it("is of the server that is named, for the addresses below it alone", async () => {
    const { agent, mcp } = await loggedIn();
    mcp.routes["/mcp/tools"] = { json: { ok: true } };
    const one = agent();
    expect((await one.fetch(`${mcp.url}/tools?a=b`, { server: mcp.url })).status).toBe(200);
    expect((await one.fetch(mcp.url, { server: mcp.url })).status).toBe(200);
    expect(mcp.requests.filter(({ headers }) => headers.authorization)).toHaveLength(2);
    for (const url of [`${mcp.origin}/mcp2`, `${mcp.origin}/`, mcp.url.replace("http:", "https:")])
      await expect(one.fetch(url, { server: mcp.url })).rejects.toThrow(
        new TypeError(`the option server is "${mcp.url}", and the address "${url}" is not below it`),
      );
  });

  it("tells its caller each token right before it is sent", async () => {
    const { agent, mcp } = await loggedIn();
    mcp.accepts = (token) => token === "access-as-2";
    const tokens: string[] = [];
    await agent().fetch(mcp.url, { onToken: (token) => tokens.push(token.reveal()) });
    expect(tokens).toEqual(["access-as-1", "access-as-2"]);
  });

  it("takes such a request along inside the origin, with the token", async () => {
    const scene = await loggedIn();
    scene.mcp.routes["/mcp"] = { status: 307, headers: { location: "/moved" }, text: "" };
    scene.mcp.routes["/moved"] = ({ body, headers }) => ({ json: [body, headers["x-key"], headers.authorization] });
    const response = await scene.agent().fetch(scene.mcp.url, { method: "POST", body: "a", headers: { "x-key": "b" } });
    expect(await response.json()).toEqual(["a", "b", "Bearer access-as-1"]);
  });

  it("takes nothing that another origin says for a verdict on the token", async () => {
    const scene = await loggedIn();
    const other = await scene.another("other");
    for (const [status, challenge] of [
      [401, 'Bearer error="invalid_token"'],
      [403, 'Bearer error="insufficient_scope", scope="everything"'],
    ] as const) {
      other.routes["/mcp"] = { status, headers: { "www-authenticate": challenge }, text: "" };
      scene.mcp.routes["/mcp"] = { status: 302, headers: { location: `${other.origin}/mcp` }, text: "" };
      expect((await scene.agent().fetch(scene.mcp.url)).status).toBe(status);
    }
    expect(scene.issuer.to(TOKEN)).toHaveLength(1);
    expect(scene.login.opened).toHaveLength(1);
  });

  it("gives the server's other answers as they are", async () => {
    const { agent, mcp, issuer } = await loggedIn();
    for (const status of [400, 403, 404, 429, 500]) {
      mcp.routes["/mcp"] = { status, text: "its own" };
      const response = await agent().fetch(mcp.url);
      expect([response.status, await response.text()]).toEqual([status, "its own"]);
    }
    expect(issuer.to(TOKEN)).toHaveLength(1);
  });

  it("heeds the signal of the request", async () => {
    const { agent, mcp } = await loggedIn();
    const controller = new AbortController();
    mcp.routes["/mcp"] = { raw: () => controller.abort() };
    await expect(agent().fetch(mcp.url, { signal: controller.signal })).rejects.toThrow();
    await expect(agent().fetch(new Request(mcp.url, { signal: controller.signal }))).rejects.toThrow();
  });
});

describe("a server that refuses every token", () => {
  const MINUTES = 60_000;

  it("has the user log in once, not for every request", async () => {
    const scene = await loggedIn({ refresh_token: undefined });
    const one = scene.agent();
    scene.mcp.accepts = () => false;
    for (let nth = 0; nth < 10; nth++) {
      expect((await one.fetch(scene.mcp.url)).status).toBe(401);
      await scene.clock.sleep(1000, SIGNAL);
    }
    expect(scene.login.opened).toHaveLength(2);
    await scene.clock.sleep(5 * MINUTES, SIGNAL);
    await one.fetch(scene.mcp.url);
    expect(scene.login.opened).toHaveLength(3);
  });

  it("is brought three new tokens a minute at most, whichever way they came", async () => {
    const scene = await loggedIn();
    const one = scene.agent();
    scene.mcp.accepts = () => false;
    const outcomes = [];
    for (let nth = 0; nth < 10; nth++) {
      outcomes.push(
        await one.fetch(scene.mcp.url).then(
          ({ status }) => status,
          (error: { code: string }) => error.code,
        ),
      );
      await scene.clock.sleep(1000, SIGNAL);
    }
    expect(outcomes.slice(-3)).toEqual(["renewal_storm", "renewal_storm", "renewal_storm"]);
    expect(scene.login.opened).toHaveLength(2);
    expect(scene.issuer.to(TOKEN).length).toBeLessThanOrEqual(1 + 3);
  });

  it("asks the user once for scopes that a login does not bring", async () => {
    const scene = await loggedIn({ refresh_token: undefined, scope: "a" });
    const one = scene.agent();
    wantScope(scene, "everything");
    for (let nth = 0; nth < 10; nth++) {
      const outcome = await one.fetch(scene.mcp.url).catch((error: unknown) => error);
      if (nth > 0) {
        expect(outcome).toMatchObject({ code: "insufficient_scope", message: expect.stringContaining("still lacks") });
      }
      await scene.clock.sleep(1000, SIGNAL);
    }
    expect(scene.login.opened).toHaveLength(2);
  });

  it("asks the user three times a minute at most for scopes that it makes up", async () => {
    const scene = await loggedIn({ refresh_token: undefined, scope: "a" });
    const one = scene.agent();
    const answer = scene.mcp.routes["/mcp"];
    for (let nth = 0; nth < 10; nth++) {
      if (answer) scene.mcp.routes["/mcp"] = answer;
      wantScope(scene, `scope-${nth}`);
      await one.fetch(scene.mcp.url).catch(() => undefined);
      await scene.clock.sleep(1000, SIGNAL);
    }
    expect(scene.login.opened).toHaveLength(1 + 3);
  });
});

describe("a token that the server refuses", () => {
  it("is refreshed once, and the request sent once more", async () => {
    const { agent, mcp, issuer, login } = await loggedIn();
    mcp.accepts = (token) => token === "access-as-2";
    const response = await agent().fetch(mcp.url, { method: "POST", body: "hello" });
    expect(response.status).toBe(200);
    expect(mcp.tokens()).toEqual(["Bearer access-as-1", "Bearer access-as-2"]);
    expect(
      mcp
        .to("/mcp")
        .slice(-2)
        .map(({ body }) => body),
    ).toEqual(["hello", "hello"]);
    expect(issuer.form(TOKEN, 1).get("grant_type")).toBe("refresh_token");
    expect(login.opened).toHaveLength(1);
  });

  it("[38] leads to one refresh and one login at most; then the refusal is the answer (2025-11-25)", async () => {
    const { agent, mcp, issuer, login } = await loggedIn();
    mcp.accepts = () => false;
    expect((await agent().fetch(mcp.url)).status).toBe(401);
    expect(mcp.tokens()).toEqual(["Bearer access-as-1", "Bearer access-as-2", "Bearer access-as-3"]);
    expect(issuer.to(TOKEN)).toHaveLength(3);
    expect(login.opened).toHaveLength(2);
  });

  it("leads to a login at once without a refresh token, and to none where no user can log in", async () => {
    const { agent, mcp, login } = await loggedIn({ refresh_token: undefined });
    mcp.accepts = (token) => token === "access-as-2";
    expect((await agent({ login: undefined }).fetch(mcp.url)).status).toBe(401);
    expect((await agent().fetch(mcp.url)).status).toBe(200);
    expect(login.opened).toHaveLength(2);
  });

  it("is kept where the server answers 401 for a session that it does not know", async () => {
    const { agent, mcp, issuer, login } = await loggedIn();
    const text = "Unauthorized: Session not found";
    mcp.routes["/mcp"] = { status: 401, headers: { "content-length": String(text.length) }, text };
    const response = await agent().fetch(mcp.url, { headers: { "mcp-session-id": "s" } });
    expect([response.status, await response.text()]).toEqual([401, text]);
    expect(mcp.tokens()).toEqual(["Bearer access-as-1"]);
    expect([issuer.to(TOKEN).length, login.opened.length]).toEqual([1, 1]);
  });

  it.each<[string, Record<string, string>, string]>([
    ["a request without a session", {}, "Session not found"],
    ["an answer that says something else", { "mcp-session-id": "s" }, "no session"],
    ["an answer without its length", { "mcp-session-id": "s", "x-chunked": "1" }, "Session not found"],
    ["an answer that is long", { "mcp-session-id": "s" }, `${" ".repeat(200)}Session not found`],
    ["an answer with a challenge", { "mcp-session-id": "s", "x-challenge": "1" }, "Session not found"],
  ])("is refreshed after 401 for %s", async (_what, headers, text) => {
    const { agent, mcp } = await loggedIn();
    mcp.routes["/mcp"] = ({ headers: sent }) => ({
      status: 401,
      headers: {
        ...(sent["x-chunked"] === undefined && { "content-length": String(text.length) }),
        ...(sent["x-challenge"] !== undefined && { "www-authenticate": "Bearer" }),
      },
      text,
    });
    await agent({ login: undefined }).fetch(mcp.url, { headers });
    expect(mcp.tokens()).toEqual(["Bearer access-as-1", "Bearer access-as-2"]);
  });

  it("is not sent again where the issuer refuses to refresh it", async () => {
    const { agent, mcp, issuer, login } = await loggedIn();
    mcp.accepts = (token) => token === "access-as-3";
    issuer.routes[TOKEN] = (request, nth) =>
      request.body.includes("grant_type=refresh_token")
        ? { status: 400, json: { error: "invalid_grant" } }
        : { json: issuer.tokens(nth) };
    expect((await agent().fetch(mcp.url)).status).toBe(200);
    expect(mcp.tokens()).toEqual(["Bearer access-as-1", "Bearer access-as-3"]);
    expect(login.opened).toHaveLength(2);
  });

  it("leads to one login, not two, where the issuer refuses to refresh it and the server refuses the new one too", async () => {
    const { agent, mcp, issuer, login } = await loggedIn();
    mcp.accepts = () => false;
    issuer.routes[TOKEN] = (request, nth) =>
      request.body.includes("grant_type=refresh_token")
        ? { status: 400, json: { error: "invalid_grant" } }
        : { json: issuer.tokens(nth) };
    expect((await agent().fetch(mcp.url)).status).toBe(401);
    expect(login.opened).toHaveLength(2);
  });

  it("is an error where its issuer does not answer, and no login is required", async () => {
    const { agent, mcp, issuer, login } = await loggedIn();
    mcp.accepts = () => false;
    issuer.routes[TOKEN] = { status: 503, text: "" };
    expect(await pendingError(agent().fetch(mcp.url))).toMatchObject({ class: "unavailable" });
    expect(login.opened).toHaveLength(1);
  });

  it("is refreshed once for many requests", async () => {
    const { agent, mcp, issuer, login } = await loggedIn();
    mcp.accepts = (token) => token === "access-as-2";
    const one = agent();
    const responses = await Promise.all(Array.from({ length: 20 }, () => one.fetch(mcp.url)));
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
    expect(issuer.to(TOKEN)).toHaveLength(2);
    expect(login.opened).toHaveLength(1);
  });

  it("is replaced by one login for many requests, also for one whose refusal comes late", async () => {
    const scene = await loggedIn({ refresh_token: undefined });
    const { mcp, login } = scene;
    const agent = scene.agent();
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let first = true;
    mcp.accepts = (token) => token === "access-as-2";
    const answer = mcp.routes["/mcp"];
    mcp.routes["/mcp"] = async (request, nth) => {
      if (first && request.headers.authorization) {
        first = false;
        await held;
      }
      return typeof answer === "function" ? answer(request, nth) : {};
    };
    const late = agent.fetch(mcp.url);
    await until(() => !first);
    const others = await Promise.all(Array.from({ length: 5 }, () => agent.fetch(mcp.url)));
    release();
    expect([...others, await late].map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
    expect(login.opened).toHaveLength(2);
  });

  it("is not sent while the user logs in for another: the server receives nothing", async () => {
    const scene = await loggedIn({ refresh_token: undefined });
    const { mcp, login, log } = scene;
    const agent = scene.agent();
    mcp.accepts = (token) => token === "access-as-2";
    const later: Promise<Response>[] = [];
    let heard = 0;
    login.before = async () => {
      heard = log.filter((line) => line.startsWith("mcp")).length;
      for (let nth = 0; nth < 5; nth++) later.push(agent.fetch(mcp.url));
    };
    expect((await agent.fetch(mcp.url)).status).toBe(200);
    expect((await Promise.all(later)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(login.opened).toHaveLength(2);
    // One refused request and the metadata before the login: the refusal's own challenge was used.
    expect(heard).toBe(2);
    expect(mcp.tokens()).toEqual(["Bearer access-as-1", ...Array(6).fill("Bearer access-as-2")]);
  });
});

describe("scopes that are missing", () => {
  it("[36] are requested by a new login, and the request sent once more (2025-11-25)", async () => {
    const scene = await loggedIn();
    wantScope(scene, "write");
    const response = await scene.agent().fetch(scene.mcp.url, { method: "POST", body: "x" });
    expect(response.status).toBe(200);
    expect(scene.login.opened).toHaveLength(2);
    expect(scene.issuer.to(TOKEN).map(({ body }) => new URLSearchParams(body).get("grant_type"))).toEqual([
      "authorization_code",
      "authorization_code",
    ]);
  });

  it("[37] are requested together with all that were requested before (2026-07-28)", async () => {
    const scene = await startScene();
    scene.mcp.metadata["scopes_supported"] = ["read", "list"];
    scene.issuer.routes[TOKEN] = (_request, nth) => ({
      json: { ...scene.issuer.tokens(nth), ...(nth === 1 && { scope: "read" }) },
    });
    await scene.agent().login(scene.mcp.url);
    wantScope(scene, "write read");
    await scene.agent().fetch(scene.mcp.url);
    expect(scene.login.requested(1).get("scope")?.split(" ").sort()).toEqual(["list", "read", "write"]);
  });

  it("[38] are requested once a request, however often they are refused (2025-11-25)", async () => {
    const scene = await loggedIn({ scope: "read" });
    wantScope(scene, "write");
    expect((await scene.agent().fetch(scene.mcp.url)).status).toBe(403);
    expect(scene.login.opened).toHaveLength(2);
  });

  it("are requested once where many requests lack them", async () => {
    const scene = await loggedIn();
    wantScope(scene, "write");
    const agent = scene.agent();
    const responses = await Promise.all(Array.from({ length: 10 }, () => agent.fetch(scene.mcp.url)));
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
    expect(scene.login.opened).toHaveLength(2);
  });

  it("are an error with the command to run where no user can log in", async () => {
    const scene = await startScene();
    scene.mcp.metadata["scopes_supported"] = ["read"];
    await scene.agent({ profile: "work" }).login(scene.mcp.url);
    wantScope(scene, "files:write");
    expect(await pendingError(scene.agent({ login: undefined, profile: "work" }).fetch(scene.mcp.url))).toMatchObject({
      code: "insufficient_scope",
      class: "auth",
      status: 403,
      message: expect.stringContaining("files:write"),
      remedy: loginAt(scene.mcp.url, { profile: "work", scope: "read files:write" }),
    });
  });

  it.each(["", 'Bearer error="invalid_token"', 'Basic error="insufficient_scope"', 'Bearer scope="a"'])(
    "are not meant by a 403 with the challenge %j",
    async (challenge) => {
      const { agent, mcp, login } = await loggedIn();
      mcp.routes["/mcp"] = { status: 403, headers: challenge ? { "www-authenticate": challenge } : {}, text: "" };
      expect((await agent().fetch(mcp.url)).status).toBe(403);
      expect(login.opened).toHaveLength(1);
    },
  );
});

describe("a body that must be sent again", () => {
  const replayed = async (make: (url: string) => [string | Request, RequestInit?]) => {
    const { agent, mcp } = await loggedIn();
    mcp.accepts = (token) => token === "access-as-2";
    const response = await agent().fetch(...make(mcp.url));
    expect(response.status).toBe(200);
    const [first, second] = mcp.to("/mcp").slice(-2);
    return [first, second].map((request) => [request?.method, request?.body, request?.headers["content-type"]]);
  };

  it.each<[string, (url: string) => [string | Request, RequestInit?], string]>([
    ["a string", (url) => [url, { method: "POST", body: "some text" }], "some text"],
    ["bytes", (url) => [url, { method: "PUT", body: new TextEncoder().encode("some bytes") }], "some bytes"],
    ["a blob", (url) => [url, { method: "POST", body: new Blob(["some blob"]) }], "some blob"],
    ["a form", (url) => [url, { method: "POST", body: new URLSearchParams({ a: "b c" }) }], "a=b+c"],
    ["a Request", (url) => [new Request(url, { method: "POST", body: "in a request" })], "in a request"],
    [
      "a Request with a body in its place",
      (url) => [new Request(url, { method: "POST", body: "old" }), { body: "new" }],
      "new",
    ],
  ])("is, when it is %s", async (_what, make, body) => {
    const [first, second] = await replayed(make);
    expect(first?.[1]).toBe(body);
    expect(second).toEqual(first);
  });

  it("is, when it is a form with parts", async () => {
    const form = new FormData();
    form.set("file", new Blob(["the file"]), "a.txt");
    for (const sent of await replayed((url) => [url, { method: "POST", body: form }]))
      expect(sent?.[1]).toContain("the file");
  });

  it.each<[string, () => unknown]>([
    ["a stream", () => new Blob(["once"]).stream()],
    [
      "an iterator",
      async function* () {
        yield new TextEncoder().encode("once");
      },
    ],
  ])("is not, when it is %s: the error says why", async (_what, make) => {
    const { agent, mcp, issuer } = await loggedIn();
    mcp.accepts = () => false;
    const init = { method: "POST", body: make(), duplex: "half" } as RequestInit;
    expect(await rejection(agent().fetch(mcp.url, init))).toMatchObject({
      code: "body_not_replayable",
      class: "auth",
      message:
        "the server requires the request again, with another proof or token, but its body is a stream that can be sent only once",
      hint: "give the body as a string, bytes or a form",
    });
    expect(issuer.to(TOKEN)).toHaveLength(1);
  });

  it("may be a stream where the token is taken at once", async () => {
    const { agent, mcp } = await loggedIn();
    const init = { method: "POST", body: new Blob(["once"]).stream(), duplex: "half" } as RequestInit;
    expect((await agent().fetch(mcp.url, init)).status).toBe(200);
    expect(mcp.requests.at(-1)?.body).toBe("once");
  });
});

describe("a store that is shared", () => {
  it("is read again when the server refuses: a newer login there is used", async () => {
    const scene = await loggedIn();
    const { store, mcp, issuer } = scene;
    const stale = await store.read({ profile: "default", server: mcp.url });
    await scene.agent().login(mcp.url);
    let reads = 0;
    const behind: GrantStore = { ...store, read: async (key) => (reads++ === 0 ? stale : store.read(key)) };
    mcp.accepts = (token) => token === "access-as-2";
    expect((await scene.agent({ store: behind }).fetch(mcp.url)).status).toBe(200);
    expect(issuer.to(TOKEN)).toHaveLength(2);
  });
});
