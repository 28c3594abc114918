import { describe, expect, it } from "vitest";
import { OAuthHttp } from "../../../src/oauth/http/http.js";
import { revokeRemotely } from "../../../src/oauth/token/revocation.js";
import { Secret } from "../../../src/redact.js";
import { madeGrant } from "../../helpers/grant.js";
import { type Reply, reset, type Scene, silence, startScene } from "../../helpers/issuer.js";

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
    expect(await agent().logout(mcp.url)).toEqual({ removed: true, revoked: true });
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
    expect(await agent().logout(mcp.url)).toEqual({ removed: true, revoked: true });
    expect(issuer.to("/pool/revoke")).toHaveLength(2);
  });

  it("says so where the access token lives on", async () => {
    const { agent, mcp, issuer } = await loggedIn();
    issuer.routes["/pool/revoke"] = ({ body }) => ({ status: body.includes("token=refresh") ? 200 : 503, text: "" });
    expect(await agent().logout(mcp.url)).toMatchObject({ removed: true, revoked: false });
  });

  it("revokes the access token where there is no other", async () => {
    const scene = await startScene();
    scene.issuer.tokenAnswer = { refresh_token: undefined };
    await scene.agent().login(scene.mcp.url);
    await scene.agent().logout(scene.mcp.url);
    expect(scene.issuer.form("/pool/revoke").get("token")).toBe("access-as-1");
  });

  it("asks the end-session endpoint where nothing can be revoked, with the id token as its hint", async () => {
    const { issuer } = await startScene();
    const { endpoints, tokens } = madeGrant();
    const grant = madeGrant({
      issuer: issuer.issuer,
      endpoints: { ...endpoints, revocation: undefined, endSession: `${issuer.issuer}/end_session?a=b` },
      tokens: { ...tokens, idToken: new Secret("the-id-token") },
    });
    expect(await revokeRemotely(grant, new OAuthHttp({}), SIGNAL)).toEqual({ revoked: true });
    const request = new URL(issuer.to("/pool/end_session")[0]?.url ?? "", issuer.origin);
    expect(Object.fromEntries(request.searchParams)).toEqual({
      a: "b",
      id_token_hint: "the-id-token",
      client_id: "client-1",
    });
  });

  it("does not follow where the end-session endpoint leads", async () => {
    const { agent, mcp, issuer } = await loggedIn(["revocation_endpoint"]);
    issuer.routes["/pool/end_session"] = { status: 302, headers: { location: "/bye" }, text: "" };
    expect(await agent().logout(mcp.url)).toEqual({ removed: true, revoked: true });
    expect(issuer.to("/bye")).toEqual([]);
  });

  it("says that nothing was revoked where the issuer has no endpoint for it", async () => {
    const { agent, mcp } = await loggedIn(["revocation_endpoint", "end_session_endpoint"]);
    expect(await agent().logout(mcp.url)).toEqual({ removed: true, revoked: undefined });
  });

  it.each<[string, Reply]>([
    ["HTTP 503", { status: 503, text: "" }],
    ["HTTP 400", { status: 400, json: { error: "unsupported_token_type" } }],
    ["a connection that breaks", reset],
  ])("is done here whatever the issuer says: %s", async (_what, reply) => {
    for (const [path, without] of [
      ["/pool/revoke", []],
      ["/pool/end_session", ["revocation_endpoint"]],
    ] as const) {
      const { agent, mcp, issuer, store } = await loggedIn([...without]);
      issuer.routes[path] = reply;
      expect(await agent().logout(mcp.url)).toMatchObject({ removed: true, revoked: false });
      expect(await store.list()).toEqual([]);
    }
  });

  it("is done here before the request to the issuer", async () => {
    const { agent, mcp, issuer, store } = await loggedIn();
    let left: unknown;
    issuer.routes["/pool/revoke"] = async () => {
      left = await store.list();
      return { text: "" };
    };
    await agent().logout(mcp.url);
    expect(left).toEqual([]);
  });

  it("does not wait for an issuer when the caller leaves", async () => {
    const { agent, mcp, issuer, store } = await loggedIn();
    const controller = new AbortController();
    issuer.routes["/pool/revoke"] = () => {
      controller.abort();
      return silence;
    };
    expect(await agent().logout(mcp.url, { signal: controller.signal })).toMatchObject({
      removed: true,
      revoked: false,
    });
    expect(await store.list()).toEqual([]);
  });

  it("does nothing without a login", async () => {
    const { agent, mcp, issuer } = await startScene();
    expect(await agent().logout(mcp.url)).toEqual({ removed: false, revoked: undefined });
    expect(issuer.requests).toEqual([]);
  });
});
