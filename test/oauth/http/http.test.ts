import { brotliCompressSync, gzipSync } from "node:zlib";
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
    ["a page", () => text("<h1>sign in</h1>", { "content-type": "text/html" }), "bad_content_type"],
    ["JSON that says it is text", (document) => text(document, { "content-type": "text/plain" }), "bad_content_type"],
    ["JSON that does not say what it is", (document) => text(document, {}), "bad_content_type"],
    [
      "a JSON type that is a part of another",
      (document) => text(document, { "content-type": "application/jsonp" }),
      "bad_content_type",
    ],
    [
      "a name that comes twice",
      (document) => text(document.replace("{", '{"token_endpoint":"https://evil.example/",')),
      "bad_json",
    ],
    ["a name twice, deep inside", (document) => text(document.replace("{", '{"x":[{"a":1,"a":2}],')), "bad_json"],
    [
      "nesting to 33 levels",
      (document) => text(document.replace("{", `{"x":${"[".repeat(33)}${"]".repeat(33)},`)),
      "bad_json",
    ],
    ["a number that no double holds", (document) => text(document.replace("{", '{"x":1e400,')), "bad_json"],
    ["cut JSON", (document) => text(document.slice(0, -1)), "bad_json"],
    ["an empty body", () => text(""), "bad_json"],
    ["null", () => text("null"), "bad_envelope"],
    ["a list", (document) => text(`[${document}]`), "bad_envelope"],
    ["a string", () => text('"x"'), "bad_envelope"],
  ])("refuses %s", async (_what, make, code) => {
    const scene = await startScene();
    expect(await discoverWith(scene, make(JSON.stringify(scene.issuer.metadata)))).toMatchObject({
      code,
      class: "refused",
    });
  });

  it("says that a page may come from a proxy or gateway in between", async () => {
    const scene = await startScene();
    const { hint } = await discoverWith(scene, text("<h1>sign in</h1>", { "content-type": "text/html" }));
    expect(hint).toContain("a proxy or a login page");
  });

  it("refuses bytes that are no UTF-8, and UTF-16", async () => {
    const scene = await startScene();
    const raw = (bytes: Buffer): Reply => ({ raw: (response) => response.writeHead(200, JSON_TYPE).end(bytes) });
    const document = JSON.stringify(scene.issuer.metadata);
    for (const bytes of [
      Buffer.from(document, "utf16le"),
      Buffer.concat([Buffer.from(document), Buffer.from([0xff])]),
    ]) {
      expect(await discoverWith(scene, raw(bytes))).toMatchObject({ code: "bad_json", class: "refused" });
    }
  });

  it("reads members by their exact names, and none from a prototype", async () => {
    const scene = await startScene();
    const { token_endpoint: endpoint, ...rest } = scene.issuer.metadata;
    const body = (name: string) => text(JSON.stringify({ ...rest, [name]: endpoint }));
    for (const name of ["Token_Endpoint", "token_endpoint\u0000", "tokén_endpoint"]) {
      expect(await discoverWith(scene, body(name))).toMatchObject({ code: "bad_server_metadata" });
    }
    const polluting = JSON.stringify(rest).replace("{", `{"__proto__":{"token_endpoint":${JSON.stringify(endpoint)}},`);
    expect(await discoverWith(scene, text(polluting))).toMatchObject({ code: "bad_server_metadata" });
    expect("token_endpoint" in {}).toBe(false);
  });

  it("stops reading at 256 KB, whatever length was declared", async () => {
    const scene = await startScene();
    const padded = JSON.stringify({ ...scene.issuer.metadata, x: "x".repeat(262_144) });
    expect(await discoverWith(scene, text(padded))).toMatchObject({ code: "body_too_large", class: "refused" });
    const endless: Reply = {
      raw: (response) => {
        response.writeHead(200, JSON_TYPE);
        const more = (): void => {
          while (response.write("x".repeat(65_536)));
          response.once("drain", more);
        };
        more();
      },
    };
    expect(await discoverWith(scene, endless)).toMatchObject({ code: "body_too_large" });
  });

  it("refuses compressed answers, of any kind", async () => {
    const scene = await startScene();
    const body = Buffer.from(JSON.stringify(scene.issuer.metadata));
    const codings: [string, Buffer][] = [
      ["gzip", gzipSync(body)],
      ["br", brotliCompressSync(body)],
      ["gzip, gzip", gzipSync(gzipSync(body))],
    ];
    for (const [coding, bytes] of codings) {
      const raw: Reply = {
        raw: (response) => response.writeHead(200, { ...JSON_TYPE, "content-encoding": coding }).end(bytes),
      };
      expect(await discoverWith(scene, raw), coding).toMatchObject({ code: "bad_content_type", class: "refused" });
    }
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

  it.each([301, 302, 303, 307, 308])("[40] does not follow HTTP %d off the origin (2026-07-28)", async (status) => {
    const scene = await startScene();
    const other = await scene.another("other");
    const { code, message } = await discoverWith(scene, {
      status,
      headers: { location: `${other.origin}/x` },
      text: "",
    });
    expect(code).toBe("redirect_refused");
    expect(message).toContain(scene.issuer.origin);
    expect(message).toContain(other.origin);
    expect(other.requests).toEqual([]);
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

  it("never repeats a request", async () => {
    const { issuer, agent, mcp } = await startScene();
    issuer.routes["/pool/register"] = { status: 503, text: "" };
    expect(await pendingError(agent().login(mcp.url))).toMatchObject({ class: "unavailable" });
    expect(issuer.to("/pool/register")).toHaveLength(1);
  });

  it("stops reading at 1 MB", async () => {
    const { issuer, agent, mcp } = await startScene();
    issuer.routes["/pool/token"] = { json: { access_token: "x".repeat(1_100_000), token_type: "Bearer" } };
    expect(await pendingError(agent().login(mcp.url))).toMatchObject({ code: "body_too_large", class: "refused" });
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
