import { describe, expect, it } from "vitest";
import { OAuthHttp } from "../../../src/oauth/http/http.js";
import { revokeRemotely } from "../../../src/oauth/token/revocation.js";
import { Secret } from "../../../src/redact.js";
import { createEvents } from "../../../src/telemetry/emit.js";
import { madeGrant } from "../../helpers/grant.js";
import { type Handler, type Reply, reset, type Scene, silence, startScene } from "../../helpers/issuer.js";

const SIGNAL = new AbortController().signal;

async function loggedIn(without: string[] = []): Promise<Scene> {
  const scene = await startScene();
  for (const field of without) delete scene.issuer.metadata[field];
  await scene.agent().login(scene.mcp.url);
  return scene;
}

describe("signing out", () => {
  it("revokes the refresh token, then the access token, as the client that got them", async () => {
    const { agent, mcp, issuer, store } = await loggedIn();
    expect(await agent().disconnect(mcp.url)).toEqual({ removed: true, revoked: true, sessionEnded: null });
    const requests = issuer.to("/pool/revoke");
    expect(requests.map(({ body }) => new URLSearchParams(body).get("token"))).toEqual(["refresh-as-1", "access-as-1"]);
    for (const { headers } of requests) expect(headers.authorization).toMatch(/^Basic /);
    expect(issuer.to("/pool/end_session")).toEqual([]);
    expect(await store.list()).toEqual([]);
  });

  it("is content with an issuer that revokes refresh tokens alone", async () => {
    const { agent, mcp, issuer } = await loggedIn();
    issuer.routes["/pool/revoke"] = ({ body }) =>
      body.includes("token=refresh")
        ? { status: 200, text: "" }
        : { status: 400, json: { error: "unsupported_token_type" } };
    expect(await agent().disconnect(mcp.url)).toEqual({ removed: true, revoked: true, sessionEnded: null });
    expect(issuer.to("/pool/revoke")).toHaveLength(2);
  });

  it("says so where the access token lives on", async () => {
    const { agent, mcp, issuer } = await loggedIn();
    issuer.routes["/pool/revoke"] = ({ body }) => ({ status: body.includes("token=refresh") ? 200 : 503, text: "" });
    const { revoked, notRevoked, expiresAt } = await agent().disconnect(mcp.url);
    expect([revoked, notRevoked, expiresAt]).toEqual([false, ["access_token"], expect.any(Date)]);
  });

  it("revokes the access token all the same where the refresh token is not, and tries both again", async () => {
    const { agent, mcp, issuer } = await loggedIn();
    issuer.routes["/pool/revoke"] = ({ body }) => ({ status: body.includes("token=refresh") ? 503 : 200, text: "" });
    const outcome = await agent().disconnect(mcp.url);
    expect(outcome).toMatchObject({ revoked: false, notRevoked: ["refresh_token"], error: { code: "server_error" } });
    expect(outcome).not.toHaveProperty("expiresAt");
    issuer.routes["/pool/revoke"] = { status: 200, text: "" };
    expect(await agent().retryRevocations()).toEqual({ revoked: 1, pending: 0 });
  });

  it("names an empty secret where an endpoint wants one of a client that has none", async () => {
    const { agent, mcp, issuer } = await startScene();
    const of = { client: { issuer: issuer.issuer, clientId: "public" } };
    await agent(of).login(mcp.url);
    issuer.routes["/pool/revoke"] = ({ body }) =>
      new URLSearchParams(body).get("client_secret") === ""
        ? { status: 200, text: "" }
        : { status: 400, json: { error: "invalid_request", error_description: "client_secret: Field required" } };
    expect(await agent(of).disconnect(mcp.url)).toMatchObject({ revoked: true });
    expect(issuer.to("/pool/revoke")).toHaveLength(4);
  });

  it("revokes the access token where there is no other", async () => {
    const scene = await startScene();
    scene.issuer.tokenAnswer = { refresh_token: undefined };
    await scene.agent().login(scene.mcp.url);
    await scene.agent().disconnect(scene.mcp.url);
    expect(scene.issuer.form("/pool/revoke").get("token")).toBe("access-as-1");
  });

  describe("where the issuer revokes no tokens", () => {
    /** A login with an ID token, which the end-session endpoint of its issuer gets. */
    async function withIdToken(reply: Reply | Handler = { status: 200, text: "" }) {
      const { issuer } = await startScene();
      issuer.routes["/pool/end_session"] = reply;
      const { endpoints, tokens } = madeGrant();
      const grant = madeGrant({
        issuer: issuer.issuer,
        endpoints: { ...endpoints, revocation: undefined, endSession: `${issuer.issuer}/end_session?a=b` },
        tokens: { ...tokens, idToken: new Secret("the-id-token") },
      });
      const requests = () => issuer.to("/pool/end_session").map(({ url }) => new URL(url, issuer.origin).searchParams);
      return {
        issuer,
        requests,
        logout: (signal = SIGNAL) => revokeRemotely(grant, { http: new OAuthHttp({}), events: createEvents(), signal }),
        tokens,
      };
    }

    it("says so, and until when the token is valid, without a request", async () => {
      const { agent, mcp, issuer } = await loggedIn(["revocation_endpoint"]);
      const { expiresAt } = await agent().token(mcp.url);
      expect(expiresAt).toBeInstanceOf(Date);
      // Without an ID token, nothing says whose session it is.
      expect(await agent().disconnect(mcp.url)).toEqual({
        removed: true,
        revoked: null,
        sessionEnded: null,
        expiresAt,
      });
      expect(issuer.to("/pool/end_session")).toEqual([]);
    });

    it("says nothing about a time that the issuer did not say", async () => {
      const scene = await startScene();
      scene.issuer.tokenAnswer = { expires_in: undefined };
      delete scene.issuer.metadata["revocation_endpoint"];
      await scene.agent().login(scene.mcp.url);
      expect((await scene.agent().disconnect(scene.mcp.url)).expiresAt).toBeUndefined();
    });

    it("asks to end the session with the ID token as its hint, which revokes nothing", async () => {
      const { logout, requests, tokens } = await withIdToken();
      const expiresAt = new Date(tokens.expiresAt ?? Number.NaN);
      expect(await logout()).toEqual({ revoked: null, sessionEnded: true, expiresAt });
      const expected = { a: "b", id_token_hint: "the-id-token", client_id: "client-1" };
      expect(requests().map((query) => Object.fromEntries(query))).toEqual([expected]);
    });

    it("does not follow where the end-session endpoint leads", async () => {
      const { logout, issuer } = await withIdToken({ status: 302, headers: { location: "/bye" }, text: "" });
      expect(await logout()).toMatchObject({ revoked: null, sessionEnded: true });
      expect(issuer.to("/bye")).toEqual([]);
    });

    it.each<[string, Reply, boolean | null]>([
      ["a page, which may ask the user", { headers: { "content-type": "text/html" }, text: "<form>" }, null],
      ["HTTP 400 with a page", { status: 400, headers: { "content-type": "text/html" }, text: "<p>" }, false],
      ["HTTP 503", { status: 503, text: "" }, false],
      ["a connection that breaks", reset, false],
    ])("does not take %s for a session that ended", async (_what, reply, sessionEnded) => {
      const { logout } = await withIdToken(reply);
      expect(await logout()).toMatchObject({ revoked: null, sessionEnded });
    });

    it("does not wait for a session to end when the caller leaves", async () => {
      const controller = new AbortController();
      const { logout } = await withIdToken(() => {
        controller.abort();
        return silence;
      });
      expect(await logout(controller.signal)).toMatchObject({ revoked: null, sessionEnded: false });
    });
  });

  it("does not wait for an issuer when the caller leaves", async () => {
    const { agent, mcp, issuer, store } = await loggedIn();
    const controller = new AbortController();
    issuer.routes["/pool/revoke"] = () => {
      controller.abort();
      return silence;
    };
    expect(await agent().disconnect(mcp.url, { signal: controller.signal })).toMatchObject({
      removed: true,
      revoked: false,
    });
    expect(await store.list()).toEqual([]);
  });

  it("does nothing without a login", async () => {
    const { agent, mcp, issuer } = await startScene();
    expect(await agent().disconnect(mcp.url)).toEqual({ removed: false, revoked: null, sessionEnded: null });
    expect(issuer.requests).toEqual([]);
  });
});
