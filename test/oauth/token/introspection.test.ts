import { describe, expect, it } from "vitest";
import { pendingError } from "../../helpers/captured.js";
import { type Reply, type Scene, startScene } from "../../helpers/issuer.js";

async function loggedIn(): Promise<Scene> {
  const scene = await startScene();
  await scene.agent().login(scene.mcp.url);
  return scene;
}

describe("introspection", () => {
  it("asks the issuer about the access token, as its client, and gives what it says", async () => {
    const { agent, mcp, issuer } = await loggedIn();
    issuer.routes["/pool/introspect"] = { json: { active: true, scope: "a", sub: "me" } };
    expect(await agent().introspect(mcp.url)).toEqual({ active: true, scope: "a", sub: "me" });
    expect(issuer.form("/pool/introspect").get("token")).toBe("access-as-1");
    expect(issuer.to("/pool/introspect")[0]?.headers.authorization).toMatch(/^Basic /);
    expect(mcp.tokens()).toEqual([]);
  });

  it("gives an inactive token for what it is", async () => {
    const { agent, mcp, issuer } = await loggedIn();
    issuer.routes["/pool/introspect"] = { json: { active: false } };
    expect(await agent().introspect(mcp.url)).toEqual({ active: false });
  });

  it.each<[string, Reply]>([
    ["no word on active", { json: { scope: "a" } }],
    ["active as a string", { json: { active: "true" } }],
    ["active as a number", { json: { active: 1 } }],
    ["a list", { json: [true] }],
    ["active twice", { headers: { "content-type": "application/json" }, text: '{"active":false,"active":true}' }],
  ])("refuses an answer with %s", async (_what, reply) => {
    const { agent, mcp, issuer } = await loggedIn();
    issuer.routes["/pool/introspect"] = reply;
    expect(await pendingError(agent().introspect(mcp.url))).toMatchObject({ class: "refused" });
  });

  it.each<[string, Reply]>([
    ["a page", { headers: { "content-type": "text/html" }, text: "<h1>hello</h1>" }],
    ["nothing", { headers: { "content-type": "application/json" }, text: "" }],
    ["HTTP 503", { status: 503, text: "" }],
  ])("takes %s for no answer", async (_what, reply) => {
    const { agent, mcp, issuer } = await loggedIn();
    issuer.routes["/pool/introspect"] = reply;
    expect(await pendingError(agent().introspect(mcp.url))).toMatchObject({ class: "unavailable" });
  });

  it("says so without a login, or where the issuer has no endpoint for it", async () => {
    const scene = await startScene();
    expect(await pendingError(scene.agent().introspect(scene.mcp.url))).toMatchObject({ code: "login_required" });
    delete scene.issuer.metadata["introspection_endpoint"];
    await scene.agent().login(scene.mcp.url);
    expect(await pendingError(scene.agent().introspect(scene.mcp.url))).toMatchObject({
      code: "no_introspection",
      class: "remote",
    });
  });
});
