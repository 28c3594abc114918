import { describe, expect, it } from "vitest";
import { FLOW_PARAMETERS } from "../../../src/oauth/model/authorization-params.js";
import { captureTrace, pendingError } from "../../helpers/captured.js";
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
  it("asks both addresses of an issuer without a path at once, and waits for none that hangs", async () => {
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

  it.each([
    "/pool/.well-known/oauth-authorization-server",
    "/.well-known/oauth-authorization-server/pool",
    "/.well-known/openid-configuration/pool",
    "/pool/.well-known/openid-configuration",
  ])("[6] finds it for an issuer with a path at %s (2025-11-25)", async (path) => {
    const scene = await startScene();
    moveTo(scene.issuer, path);
    expect((await outcome(scene)).found?.url).toBe(scene.issuer.origin + path);
  });

  it.each(["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"])(
    "[6] finds it for an issuer without a path at %s (2025-11-25)",
    async (path) => {
      const scene = await startScene({ issuerPath: "" });
      moveTo(scene.issuer, path);
      expect((await outcome(scene)).found?.url).toBe(scene.issuer.origin + path);
    },
  );

  it("[7] prefers OAuth's document to OpenID's, and the inserted form of that to the appended (2025-11-25)", async () => {
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
    let asked = 0;
    let answer = (): void => {};
    const both = new Promise<void>((resolve) => {
      answer = resolve;
    });
    for (const place of places) {
      issuer.routes[place] = async () => {
        if (++asked === places.length) answer();
        await both;
        return { json: issuer.metadata };
      };
    }
    await agent().login(mcp.url);
    expect(asked).toBe(2);
  });

  it("asks OpenID's addresses only where OAuth's have nothing", async () => {
    const scene = await startScene();
    await outcome(scene);
    expect(scene.log.filter((line) => line.includes("openid"))).toEqual([]);
  });

  it("uses one document alone, and fills nothing in from another", async () => {
    const scene = await startScene();
    const { issuer } = scene;
    const { registration_endpoint: _, ...without } = issuer.metadata;
    issuer.routes["/pool/.well-known/openid-configuration"] = () => ({ json: issuer.metadata });
    issuer.routes["/pool/.well-known/oauth-authorization-server"] = { json: without };
    expect((await outcome(scene)).found?.registrationEndpoint).toBeUndefined();
  });

  it.each([400, 401, 403, 404])("takes HTTP %d for a miss", async (status) => {
    const scene = await startScene();
    moveTo(scene.issuer, "/pool/.well-known/openid-configuration");
    scene.issuer.routes["/pool/.well-known/oauth-authorization-server"] = { status, text: "no" };
    expect((await outcome(scene)).found).toBeDefined();
  });

  it.each([500, 503, 429])(
    "says after HTTP %d that the issuer does not answer, not that it has nothing",
    async (status) => {
      const scene = await startScene();
      scene.issuer.routes["/pool/.well-known/oauth-authorization-server"] = { status, text: "no" };
      expect(await outcome(scene)).toMatchObject({ class: "unavailable" });
    },
  );

  it("builds no endpoint where there is no metadata, whatever else the issuer answers", async () => {
    const scene = await startScene();
    delete scene.issuer.routes["/pool/.well-known/oauth-authorization-server"];
    expect(await pendingError(scene.agent().login(scene.mcp.url))).toMatchObject({ code: "no_server_metadata" });
    expect(scene.log.filter((line) => line.startsWith("as POST") || line.startsWith("person"))).toEqual([]);
    expect(scene.issuer.to("/pool/authorize")).toEqual([]);
  });
});

describe("which metadata is accepted", () => {
  it("[8] refuses metadata of another issuer and names both (2026-07-28)", async () => {
    const { code, class: kind, message } = await withMembers({ issuer: "https://other.example/pool" });
    expect([code, kind]).toEqual(["issuer_mismatch", "refused"]);
    expect(message).toContain('"https://other.example/pool"');
    expect(message).toMatch(/must be exactly "http:\/\/127\.0\.0\.1:\d+\/pool"/);
  });

  it.each<[string, (issuer: string) => string, string]>([
    ["a slash at the end", (issuer) => `${issuer}/`, "they differ by a slash at the end"],
    ["upper case", (issuer) => issuer.replace("pool", "POOL"), "they differ in upper and lower case"],
    ["a dot segment", (issuer) => issuer.replace("/pool", "/./pool"), "they differ in how the same address is written"],
  ])("[8] refuses an issuer that differs by %s, and says so (2026-07-28)", async (_what, change, why) => {
    const scene = await startScene();
    scene.issuer.metadata["issuer"] = change(scene.issuer.issuer);
    const { code, message } = await outcome(scene);
    expect(code).toBe("issuer_mismatch");
    expect(message).toContain(why);
  });

  it.each<[string, unknown]>([
    ["missing", undefined],
    ["null", null],
    ["a list", ["https://as.example"]],
  ])("refuses an issuer that is %s", async (_what, issuer) => {
    expect(await withMembers({ issuer })).toMatchObject({ code: "issuer_mismatch", class: "refused" });
  });

  it.each([undefined, null])(
    "[22] refuses an issuer that says %j of PKCE, unless that is allowed for it (2025-11-25)",
    async (methods) => {
      const members = { code_challenge_methods_supported: methods };
      const { code, class: kind, remedy } = await withMembers(members);
      expect([code, kind]).toEqual(["pkce_unsupported", "refused"]);
      expect(remedy).toEqual({ action: "allow", option: "allowMissingPkceMetadata" });
      expect((await withMembers(members, { policy: { allowMissingPkceMetadata: true } })).found).toBeDefined();
    },
  );

  it.each<[unknown]>([[["plain"]], [["s256"]], [[]], ["S256"], [{ 0: "S256" }]])(
    "[22] refuses %j as the PKCE methods, also where missing ones are allowed (2025-11-25)",
    async (methods) => {
      const {
        class: kind,
        message,
        hint,
        remedy,
      } = await withMembers(
        { code_challenge_methods_supported: methods },
        { policy: { allowMissingPkceMetadata: true } },
      );
      expect(kind).toBe("refused");
      expect(message).toContain("code_challenge_methods_supported");
      expect([hint, remedy]).toEqual([undefined, undefined]);
    },
  );

  it("[22] looks for PKCE in the next document where the first does not speak of it (2025-11-25)", async () => {
    const scene = await startScene();
    const { issuer } = scene;
    const { code_challenge_methods_supported: _, ...silent } = issuer.metadata;
    issuer.routes["/pool/.well-known/oauth-authorization-server"] = { json: silent };
    issuer.routes["/pool/.well-known/openid-configuration"] = () => ({ json: issuer.metadata });
    const { found } = await outcome(scene);
    expect(found?.url).toBe(`${issuer.issuer}/.well-known/openid-configuration`);
  });

  it.each([
    "authorization_endpoint",
    "token_endpoint",
    "registration_endpoint",
    "introspection_endpoint",
    "revocation_endpoint",
    "end_session_endpoint",
    "device_authorization_endpoint",
    "jwks_uri",
  ])("[31] refuses a %s in the clear when it is read, not when it is used (2025-06-18)", async (field) => {
    const { code, message } = await withMembers({ [field]: "http://as.example/x" });
    expect(code).toBe("bad_address");
    expect(message).toMatch(new RegExp(`^${field} "http://as.example/x"`));
  });

  it.each([
    "javascript:alert(1)",
    "file:///etc/passwd",
    "https://as.example/`id`\n",
    "--help",
    "https://a@as.example/",
  ])("[42] refuses %j as an address to open (2026-07-28)", async (address) => {
    expect(await withMembers({ authorization_endpoint: address })).toMatchObject({
      code: "bad_address",
      class: "refused",
    });
  });

  it.each(["authorization_endpoint", "token_endpoint"])("refuses metadata without %s", async (field) => {
    const { code, message } = await withMembers({ [field]: undefined });
    expect(code).toBe("bad_server_metadata");
    expect(message).toContain(field);
  });

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

  it.each<[string, unknown]>([
    ["response_types_supported", ["token"]],
    ["response_types_supported", "code"],
    ["grant_types_supported", ["implicit"]],
    ["grant_types_supported", [7]],
    ["token_endpoint_auth_methods_supported", "none"],
    ["scopes_supported", "a b"],
  ])("refuses %s %j", async (field, value) => {
    expect(await withMembers({ [field]: value })).toMatchObject({ code: "bad_server_metadata", class: "refused" });
  });

  it("takes metadata of a server that supports only machine grants, and long lists of scopes", async () => {
    const many = Array.from({ length: 1000 }, (_, index) => `scope-${index}`);
    const { found } = await withMembers({
      grant_types_supported: ["client_credentials"],
      scopes_supported: [...many, "offline_access"],
    });
    expect(found?.scopesSupported).toEqual(["offline_access"]);
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
