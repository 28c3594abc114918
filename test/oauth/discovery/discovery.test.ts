import { describe, expect, it } from "vitest";
import { captureTrace, pendingError } from "../../helpers/captured.js";
import { type Reply, type Scene, startScene } from "../../helpers/issuer.js";
import { remedy } from "../../helpers/remedy.js";

async function outcome({ agent, mcp }: Scene, options: Parameters<Scene["agent"]>[0] = {}) {
  const { found, error, trace } = await agent(options).discover(mcp.url);
  captureTrace(trace, error);
  return { issuer: found?.issuer.issuer, found, code: error?.code, class: error?.class, trace };
}

describe("asking a server what is missing", () => {
  it("sends one request without a token and does not follow where it leads", async () => {
    const scene = await startScene();
    const { mcp, issuer } = scene;
    mcp.routes["/mcp"] = { status: 307, headers: { location: `${issuer.origin}/mcp` }, text: "" };
    expect((await outcome(scene)).issuer).toBe(issuer.issuer);
    const [request] = mcp.to("/mcp");
    expect(request?.headers.authorization).toBeUndefined();
    expect(JSON.parse(request?.body ?? "")).toMatchObject({ jsonrpc: "2.0", method: "tools/list" });
    expect(scene.log).not.toContain("as POST /mcp");
  });

  it.each([200, 400, 403, 404, 500])(
    "[2] goes to the well-known address where HTTP %d brings no challenge (2025-06-18)",
    async (status) => {
      const scene = await startScene();
      scene.mcp.routes["/mcp"] = { status, text: "" };
      expect((await outcome(scene)).issuer).toBe(scene.issuer.issuer);
    },
  );
});

describe("several authorization servers", () => {
  it("asks one that is named twice once, and gives the first refusal where all are refused", async () => {
    const scene = await startScene();
    const { mcp, issuer } = scene;
    const other = await scene.another("other");
    issuer.metadata["issuer"] = "https://elsewhere.example";
    delete other.routes["/pool/.well-known/oauth-authorization-server"];
    mcp.metadata["authorization_servers"] = [issuer.issuer, issuer.issuer, other.issuer];
    expect(await outcome(scene)).toMatchObject({ code: "issuer_mismatch" });
    expect(issuer.to("/pool/.well-known/oauth-authorization-server")).toHaveLength(1);
  });
});

describe("the request without a token", () => {
  const unsupported = (error: unknown): Reply => ({ status: 400, json: { jsonrpc: "2.0", id: 1, error } });
  const revisions = { supported: ["2026-07-28"], requested: "unknown" };

  it("is sent once more in the revision that the server wants, whose challenge counts", async () => {
    const scene = await startScene();
    const { mcp } = scene;
    mcp.challenge = `${mcp.challenge}, scope="read"`;
    mcp.routes["/mcp"] = ({ headers, body }) => {
      const { _meta: meta = {} } = JSON.parse(body).params;
      const isNamed = meta["io.modelcontextprotocol/protocolVersion"] === headers["mcp-protocol-version"];
      return headers["mcp-protocol-version"] === "2026-07-28" && isNamed && headers["mcp-method"] === "tools/list"
        ? mcp.refusal()
        : unsupported({ code: -32_022, message: "Unsupported protocol version", data: revisions });
    };
    const { found } = await outcome(scene);
    expect(found?.challenge?.scope).toBe("read");
    expect(mcp.to("/mcp")).toHaveLength(2);
  });

  it.each<[string, unknown]>([
    ["another error", { code: -32_020, data: revisions }],
    ["other revisions", { code: -32_022, data: { supported: ["2025-06-18"] } }],
    ["no list of revisions", { code: -32_022, data: { supported: "2026-07-28" } }],
    ["no data", { code: -32_022 }],
    ["no error", null],
  ])("is not repeated in another revision after %s", async (_what, error) => {
    const scene = await startScene();
    scene.mcp.routes["/mcp"] = unsupported(error);
    expect((await outcome(scene)).found?.issuer.issuer).toBe(scene.issuer.issuer);
    expect(scene.mcp.to("/mcp")).toHaveLength(1);
  });

  it("leads to no login of the revision 2025-03-26 where the server does not require a token", async () => {
    const scene = await startScene();
    delete scene.mcp.metadata["authorization_servers"];
    const error = async () => (await scene.agent().discover(scene.mcp.url)).error;
    expect(await error()).toMatchObject({
      code: "bad_resource_metadata",
      remedy: remedy({ action: "allow", option: "legacyDiscovery" }),
    });
    scene.mcp.routes["/mcp"] = { status: 405, text: "" };
    expect(await error()).toMatchObject({ code: "bad_resource_metadata" });
    expect((await error())?.remedy).toBeUndefined();
  });
});

describe("a server of the revision 2025-03-26", () => {
  it("[10] is its own issuer, with fixed paths where it publishes nothing, only when that was allowed (2025-03-26)", async () => {
    const scene = await startScene();
    const { mcp } = scene;
    mcp.challenge = undefined;
    delete mcp.routes[mcp.wellKnown];
    expect(await outcome(scene)).toMatchObject({ code: "no_resource_metadata" });
    const { found } = await outcome(scene, { policy: { legacyDiscovery: true } });
    expect(found?.issuer).toMatchObject({
      issuer: mcp.origin,
      authorizationEndpoint: `${mcp.origin}/authorize`,
      tokenEndpoint: `${mcp.origin}/token`,
      registrationEndpoint: `${mcp.origin}/register`,
    });
    expect(found?.issuer.introspectionEndpoint).toBeUndefined();
  });

  it("[10] is believed in what it publishes (2025-03-26)", async () => {
    const scene = await startScene();
    const { mcp, issuer } = scene;
    mcp.challenge = undefined;
    delete mcp.routes[mcp.wellKnown];
    const metadata = { ...issuer.metadata, issuer: mcp.origin };
    mcp.routes["/.well-known/oauth-authorization-server"] = { json: metadata };
    const { found } = await outcome(scene, { policy: { legacyDiscovery: true } });
    expect(found?.issuer.tokenEndpoint).toBe(`${issuer.issuer}/token`);
    mcp.routes["/.well-known/oauth-authorization-server"] = { json: { ...metadata, issuer: `${mcp.origin}/other` } };
    expect(await outcome(scene, { policy: { legacyDiscovery: true } })).toMatchObject({ code: "issuer_mismatch" });
  });

  it("[10] is not guessed at where it has resource metadata (2025-03-26)", async () => {
    const scene = await startScene();
    delete scene.issuer.routes["/pool/.well-known/oauth-authorization-server"];
    expect(await outcome(scene, { policy: { legacyDiscovery: true } })).toMatchObject({ code: "no_server_metadata" });
  });
});

describe("metadata on another origin that the user has allowed", () => {
  /** A server that names a document of another server, where the user has logged in with the flag. */
  async function startAllowed() {
    const scene = await startScene();
    const { mcp, issuer } = scene;
    const host = await scene.another("docs");
    const document = { resource: mcp.url, authorization_servers: [issuer.issuer] };
    host.routes["/prm"] = () => ({ json: document });
    mcp.challenge = `Bearer resource_metadata="${host.origin}/prm"`;
    await scene.agent({ policy: { allowCrossOriginMetadata: true } }).login(mcp.url);
    return { scene, host, document };
  }

  it("are followed from then on without being allowed again, and stay so with each new login", async () => {
    const { scene, host } = await startAllowed();
    for (let time = 0; time < 2; time++) {
      await scene.agent().login(scene.mcp.url);
      expect(await outcome(scene)).toMatchObject({ issuer: scene.issuer.issuer, code: undefined });
      expect((await scene.store.list()).map(({ overrides }) => overrides)).toEqual([["allowCrossOriginMetadata"]]);
    }
    expect(host.to("/prm").length).toBeGreaterThan(1);
  });

  it("are followed in a step-up", async () => {
    const { scene } = await startAllowed();
    const { mcp } = scene;
    const { challenge = "" } = mcp;
    mcp.routes["/mcp"] = ({ headers }) => {
      if (headers.authorization === undefined) return mcp.refusal();
      if (headers.authorization === "Bearer access-as-2") return { json: { ok: true } };
      const more = `${challenge}, error="insufficient_scope", scope="more"`;
      return { status: 403, headers: { "www-authenticate": more }, text: "" };
    };
    expect((await scene.agent().fetch(mcp.url)).status).toBe(200);
  });

  it("are refused where they lead to another issuer, which gets no request", async () => {
    const { scene, document } = await startAllowed();
    const thief = await scene.another("thief");
    document.authorization_servers = [thief.issuer];
    const { error } = await scene.agent().discover(scene.mcp.url);
    expect(error).toMatchObject({ code: "bad_address", class: "refused" });
    expect(error?.message).toContain(`must name "${scene.issuer.issuer}"`);
    expect(error?.remedy).toEqual({ action: "allow", option: "allowCrossOriginMetadata" });
    expect(await pendingError(scene.agent().login(scene.mcp.url))).toMatchObject({ class: "refused" });
    expect(thief.requests).toEqual([]);
    const allowed = await outcome(scene, { policy: { allowCrossOriginMetadata: true } });
    expect(allowed.issuer).toBe(thief.issuer);
  });

  it("are read for the known issuer alone where they name others before it", async () => {
    const { scene, document } = await startAllowed();
    const thief = await scene.another("thief");
    document.authorization_servers = [thief.issuer, scene.issuer.issuer];
    expect((await outcome(scene)).issuer).toBe(scene.issuer.issuer);
    expect(thief.requests).toEqual([]);
  });

  it("are refused after a login that allowed something else", async () => {
    const { scene } = await startAllowed();
    const [grant] = await scene.store.list();
    if (!grant) throw new Error("not logged in");
    await scene.store.save(
      { ...grant, overrides: ["allowPrivateNetwork"], generation: grant.generation + 1 },
      grant.generation,
    );
    expect(await outcome(scene)).toMatchObject({ code: "bad_address", class: "refused" });
  });
});
