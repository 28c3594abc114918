import { describe, expect, it } from "vitest";
import { FLOW_PARAMETERS } from "../../../src/oauth/model/authorization-params.js";
import { captureTrace } from "../../helpers/captured.js";
import { type Reply, type Scene, startScene, type TestIssuer } from "../../helpers/issuer.js";
import { until } from "../../helpers/server.js";

type AgentOptions = Parameters<Scene["agent"]>[0];

async function outcome({ agent, mcp }: Scene, options: AgentOptions = {}) {
  const { found, error, trace } = await agent(options).discover(mcp.url);
  captureTrace(trace, error);
  return {
    found: found?.issuer,
    code: error?.code,
    class: error?.class,
    message: error?.message,
    hint: error?.hint,
    remedy: error?.remedy,
    trace,
  };
}

/** Discovery with members of the metadata replaced; undefined takes one out. */
async function withMembers(members: Record<string, unknown>, options: AgentOptions = {}) {
  const scene = await startScene();
  scene.issuer.metadata = { ...scene.issuer.metadata, ...members };
  return outcome(scene, options);
}

/** Moves the one document of an issuer. */
function moveTo(issuer: TestIssuer, path: string): void {
  delete issuer.routes[`${issuer.path}/.well-known/oauth-authorization-server`];
  issuer.routes[path] = () => ({ json: issuer.metadata });
}

it.each(["", null])("takes an optional endpoint that is %j for none", async (value) => {
  const names = ["registration", "introspection", "revocation", "end_session", "device_authorization"];
  const members = Object.fromEntries(names.map((name) => [`${name}_endpoint`, value]));
  const { found } = await withMembers({ ...members, jwks_uri: value });
  expect(found).toMatchObject({ registrationEndpoint: undefined, revocationEndpoint: undefined, jwksUri: undefined });
  const code = value === null ? "bad_server_metadata" : "bad_address";
  expect((await withMembers({ token_endpoint: value })).code).toBe(code);
});

it.each([null, "", []])(
  "takes lists that are %j for those that are missing, as many programs write them",
  async (nothing) => {
    const names = ["scopes", "grant_types", "response_types", "token_endpoint_auth_methods", "dpop_signing_alg_values"];
    const lists = Object.fromEntries(names.map((name) => [`${name}_supported`, nothing]));
    const { found } = await withMembers(lists);
    expect(found).toMatchObject({ scopesSupported: undefined, grantTypesSupported: undefined });
  },
);

describe("where an issuer's metadata is looked for", () => {
  it("[6] finds both addresses of an issuer without a path at once, and waits for none that hangs (2025-11-25)", async () => {
    const scene = await startScene({ issuerPath: "" });
    const [oauth, openid] = ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];
    moveTo(scene.issuer, openid);
    scene.issuer.routes[oauth] = async () => {
      await until(() => scene.issuer.to(openid).length > 0);
      return { status: 404, text: "" };
    };
    expect((await outcome(scene)).found?.url).toBe(scene.issuer.origin + openid);
    moveTo(scene.issuer, oauth);
    scene.issuer.routes[openid] = () => new Promise(() => undefined);
    expect((await outcome(scene)).found?.url).toBe(scene.issuer.origin + oauth);
  });

  it("[6, 7] finds each address of an issuer with a path, and prefers OAuth's document to OpenID's, and the inserted form of that to the appended (2025-11-25)", async () => {
    const scene = await startScene();
    const { issuer } = scene;
    const paths = [
      "/pool/.well-known/oauth-authorization-server",
      "/.well-known/oauth-authorization-server/pool",
      "/.well-known/openid-configuration/pool",
      "/pool/.well-known/openid-configuration",
    ];
    for (const path of paths) issuer.routes[path] = () => ({ json: issuer.metadata });
    for (const path of paths) {
      expect((await outcome(scene)).found?.url).toBe(issuer.origin + path);
      delete issuer.routes[path];
    }
    expect(await outcome(scene)).toMatchObject({ code: "no_server_metadata", class: "refused" });
  });

  it("asks both of OAuth's addresses at once: neither waits for the answer of the other", async () => {
    const { agent, mcp, issuer } = await startScene();
    const { path } = issuer;
    const places = [`${path}/.well-known/oauth-authorization-server`, `/.well-known/oauth-authorization-server${path}`];
    let requests = 0;
    let answer = (): void => {};
    const both = new Promise<void>((resolve) => {
      answer = resolve;
    });
    for (const place of places) {
      issuer.routes[place] = async () => {
        if (++requests === places.length) answer();
        await both;
        return { json: issuer.metadata };
      };
    }
    await agent().login(mcp.url);
    expect(requests).toBe(2);
  });

  it.each([400, 401, 403, 404])("takes HTTP %d for a miss", async (status) => {
    const scene = await startScene();
    moveTo(scene.issuer, "/pool/.well-known/openid-configuration");
    scene.issuer.routes["/pool/.well-known/oauth-authorization-server"] = { status, text: "no" };
    expect((await outcome(scene)).found).toBeDefined();
  });
});

describe("which metadata is accepted", () => {
  it("replaces what an authorization endpoint brings of ours, and keeps the rest", async () => {
    const scene = await startScene();
    const { issuer } = scene.issuer;
    const names = [...FLOW_PARAMETERS];
    const theirs = names.map((name) => `${name}=evil`).join("&");
    scene.issuer.metadata["authorization_endpoint"] = `${issuer}/authorize?tenant=a&${theirs}&resource=evil2`;
    await scene.agent().login(scene.mcp.url);
    const requested = scene.login.requested();
    expect(requested.get("tenant")).toBe("a");
    expect(requested.getAll("resource")).toEqual([scene.mcp.url]);
    expect([...requested.values()].filter((value) => value.startsWith("evil"))).toEqual([]);
  });

  it("reports every address that was requested and why it was used or not", async () => {
    const scene = await startScene();
    const { trace } = await outcome(scene);
    const { mcp, issuer } = scene;
    expect(trace.map(({ step, url, status, used }) => [step, url, status, used])).toEqual([
      ["challenge", mcp.url, 401, true],
      ["resource metadata", mcp.origin + mcp.wellKnown, 200, true],
      ["server metadata", `${issuer.origin}/.well-known/oauth-authorization-server/pool`, 404, false],
      ["server metadata", `${issuer.issuer}/.well-known/oauth-authorization-server`, 200, true],
    ]);
    for (const { why } of trace) expect(why).not.toBe("");
  });
});

describe("of several failures", () => {
  const PAGE: Reply = { headers: { "content-type": "text/html" }, text: "<h1>welcome</h1>" };
  const WRONG: Reply = { json: { issuer: "https://elsewhere.example" } };
  const BUSY: Reply = { status: 503, text: "" };
  const NONE: Reply = { status: 404, text: "" };

  it.each<[string, Reply, Reply, string]>([
    ["a broken rule comes before a page", PAGE, WRONG, "issuer_mismatch"],
    ["a broken rule comes before a page that comes later", WRONG, PAGE, "issuer_mismatch"],
    ["a page comes before nothing", PAGE, NONE, "bad_content_type"],
    ["no response comes before a broken rule", WRONG, BUSY, "server_error"],
    ["no response comes before a page", PAGE, BUSY, "server_error"],
    ["nothing is that there are no metadata", NONE, NONE, "no_server_metadata"],
  ])("%s", async (_what, first, last, code) => {
    const scene = await startScene();
    scene.issuer.routes["/.well-known/oauth-authorization-server/pool"] = first;
    scene.issuer.routes["/pool/.well-known/oauth-authorization-server"] = last;
    expect(await outcome(scene, { maxRetries: 0 })).toMatchObject({ code });
  });
});
