import { describe, expect, it } from "vitest";
import { OAuthHttp } from "../../../src/oauth/http/http.js";
import { captureError, pendingError } from "../../helpers/captured.js";
import { type Reply, reset, type Scene, silence, startScene } from "../../helpers/issuer.js";

const JSON_TYPE = { "content-type": "application/json" };

/** A document whose text is given. */
const text = (body: string, headers: Record<string, string> = JSON_TYPE): Reply => ({ text: body, headers });

async function discoverWith(scene: Scene, reply: Reply, options: Parameters<Scene["agent"]>[0] = {}) {
  scene.issuer.routes["/pool/.well-known/oauth-authorization-server"] = reply;
  const { found, error } = await scene.agent(options).discover(scene.mcp.url);
  // How far a request came in the time of a case is left to chance.
  if (error?.code !== "timeout") captureError(error);
  return { found: found?.issuer, code: error?.code, class: error?.class, message: error?.message, hint: error?.hint };
}

describe("reading a metadata document", () => {
  it("accepts every JSON media type and asks for no compression", async () => {
    const scene = await startScene();
    for (const type of ["application/json", "APPLICATION/JSON; charset=utf-8", "application/oauth+json"]) {
      const reply = text(JSON.stringify(scene.issuer.metadata), { "content-type": type });
      expect((await discoverWith(scene, reply)).found, type).toBeDefined();
    }
    for (const { headers } of scene.issuer.requests) expect(headers["accept-encoding"]).toBe("identity");
  });

  it.each<[string, (document: string) => Reply, string]>([
    [
      "a JSON type that is a part of another",
      (document) => text(document, { "content-type": "application/jsonp" }),
      "bad_content_type",
    ],
    ["a name twice, deep inside", (document) => text(document.replace("{", '{"x":[{"a":1,"a":2}],')), "bad_json"],
    [
      "nesting to 33 levels",
      (document) => text(document.replace("{", `{"x":${"[".repeat(33)}${"]".repeat(33)},`)),
      "bad_json",
    ],
    ["a string", () => text('"x"'), "bad_envelope"],
  ])("refuses %s", async (_what, make, code) => {
    const scene = await startScene();
    expect(await discoverWith(scene, make(JSON.stringify(scene.issuer.metadata)))).toMatchObject({
      code,
      class: "refused",
    });
  });

  it("accepts the content coding identity", async () => {
    const scene = await startScene();
    const body = Buffer.from(JSON.stringify(scene.issuer.metadata));
    const plain: Reply = {
      raw: (response) => response.writeHead(200, { ...JSON_TYPE, "content-encoding": "identity" }).end(body),
    };
    expect((await discoverWith(scene, plain)).found).toBeDefined();
  });

  it("follows redirects inside the origin, three at most", async () => {
    const scene = await startScene();
    const { issuer } = scene;
    const hop = (to: string): Reply => ({ status: 302, headers: { location: to }, text: "" });
    issuer.routes["/1"] = hop("/2");
    issuer.routes["/2"] = hop("/3");
    issuer.routes["/3"] = () => ({ json: issuer.metadata });
    expect((await discoverWith(scene, hop("/1"))).found).toBeDefined();
    issuer.routes["/3"] = hop("/4");
    expect(await discoverWith(scene, hop("/1"))).toMatchObject({ code: "redirect_refused", class: "refused" });
  });

  it("tries again what may pass, and then says what it was", async () => {
    const scene = await startScene();
    let left = 2;
    scene.issuer.routes["/pool/.well-known/oauth-authorization-server"] = () =>
      left-- > 0 ? { status: 503, text: "" } : { json: scene.issuer.metadata };
    expect((await scene.agent().discover(scene.mcp.url)).error).toBeUndefined();
    expect(await discoverWith(scene, reset)).toMatchObject({ code: "connection_reset", class: "unavailable" });
    expect(await discoverWith(scene, silence, { timeoutMs: 30, maxRetries: 0 })).toMatchObject({ code: "timeout" });
  });
});

describe("posting to an endpoint", () => {
  it.each([302, 307, 308])("does not follow HTTP %d with a secret, not even inside the origin", async (status) => {
    const scene = await startScene();
    const { issuer, agent, mcp } = scene;
    issuer.routes["/pool/token"] = { status, headers: { location: "/elsewhere" }, text: "" };
    expect(await pendingError(agent().login(mcp.url))).toMatchObject({ code: "redirect_refused" });
    expect(issuer.to("/elsewhere")).toEqual([]);
  });
});

describe("what a trace hears", () => {
  it("reports addresses without their queries, which carry state and id tokens", async () => {
    const { issuer } = await startScene();
    const events: unknown[] = [];
    const http = new OAuthHttp({ onEvent: (event) => events.push(event) });
    await http.probe(`${issuer.issuer}/end_session?id_token_hint=canary-id-token`, undefined);
    expect(events).toHaveLength(2);
    expect(JSON.stringify(events)).not.toContain("canary");
  });
});
