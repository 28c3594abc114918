import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import {
  challengeOfRemedy,
  challengeOnlyMetadata,
  checkFirstNamed,
  wellKnownAddresses,
  withUnseen,
} from "../../../src/oauth/discovery/resource-metadata.js";
import type { BearerChallenge } from "../../../src/oauth/model/challenge.js";
import type { Remedy } from "../../../src/remedy.js";
import { captureTrace } from "../../helpers/captured.js";
import { type Scene, startScene } from "../../helpers/issuer.js";

/** What discovery came to: the chosen resource metadata, or the error. */
async function outcome({ agent, mcp }: Scene, options: Parameters<Scene["agent"]>[0] = {}) {
  const { found, error, trace } = await agent(options).discover(mcp.url);
  captureTrace(trace, error);
  return {
    resource: found?.resource,
    code: error?.code,
    class: error?.class,
    message: error?.message,
    hint: error?.hint,
    remedy: error?.remedy,
  };
}

const requested = ({ log }: Scene) => log.filter((line) => line.startsWith("mcp GET")).map((line) => line.slice(8));
const ROOT = "/.well-known/oauth-protected-resource";

describe("where the resource metadata is looked for", () => {
  it("[3] uses the header's address, else the form with the path, else the root's (2025-11-25)", async () => {
    const scene = await startScene();
    const { mcp } = scene;
    mcp.routes["/custom"] = () => ({ json: { ...mcp.metadata, scopes_supported: ["named"] } });
    mcp.routes[ROOT] = () => ({ json: { ...mcp.metadata, scopes_supported: ["root"] } });
    mcp.challenge = `Bearer resource_metadata="${mcp.origin}/custom"`;
    expect((await outcome(scene)).resource?.scopesSupported).toEqual(["named"]);
    mcp.challenge = "Bearer";
    expect((await outcome(scene)).resource?.scopesSupported).toBeUndefined();
    delete mcp.routes[mcp.wellKnown];
    expect((await outcome(scene)).resource?.scopesSupported).toEqual(["root"]);
    expect(requested(scene)).toEqual(["/custom", mcp.wellKnown, mcp.wellKnown, ROOT]);
  });

  it.each([401, 403, 404, 410])("[1] takes HTTP %d for a miss and continues (2025-06-18)", async (status) => {
    const scene = await startScene();
    const { mcp } = scene;
    mcp.challenge = undefined;
    mcp.routes[mcp.wellKnown] = { status, text: "no" };
    mcp.routes[ROOT] = () => ({ json: mcp.metadata });
    expect((await outcome(scene)).resource?.url).toBe(mcp.origin + ROOT);
  });

  it("is left at an address of the challenge that does not answer, and at no document that breaks a rule", async () => {
    const scene = await startScene();
    const { mcp } = scene;
    mcp.challenge = `Bearer resource_metadata="${mcp.origin}/first", Bearer resource_metadata="${mcp.origin}/last"`;
    mcp.routes["/first"] = { json: {} };
    mcp.routes["/last"] = () => ({ json: mcp.metadata });
    expect((await outcome(scene)).resource?.url).toBe(`${mcp.origin}/last`);
    mcp.routes["/first"] = { status: 503, text: "" };
    expect(await outcome(scene, { maxRetries: 0 })).toMatchObject({ code: "server_error", class: "unavailable" });
    expect(requested(scene)).toEqual(["/first", "/last", "/first"]);
  });

  it("skips a page where a document was expected, unless the challenge named it", async () => {
    const scene = await startScene();
    const { mcp } = scene;
    const page = { headers: { "content-type": "text/html" }, text: "<h1>welcome</h1>" };
    mcp.routes[mcp.wellKnown] = page;
    mcp.routes[ROOT] = () => ({ json: mcp.metadata });
    mcp.challenge = "Bearer";
    expect((await outcome(scene)).resource?.url).toBe(mcp.origin + ROOT);
    mcp.challenge = `Bearer resource_metadata="${mcp.origin}${mcp.wellKnown}"`;
    expect(await outcome(scene)).toMatchObject({ code: "bad_content_type", class: "refused" });
  });

  it("stops at a document of another type, and says what the owner must mend", async () => {
    const scene = await startScene();
    const { mcp } = scene;
    mcp.challenge = undefined;
    mcp.routes[mcp.wellKnown] = () => ({
      headers: { "content-type": "text/plain" },
      text: JSON.stringify(mcp.metadata),
    });
    mcp.routes[ROOT] = () => ({ json: mcp.metadata });
    expect(await outcome(scene)).toMatchObject({
      code: "bad_content_type",
      class: "refused",
      hint: "the server's owner must send it as application/json (RFC 8259 section 11)",
    });
  });

  it.each([500, 502, 503, 429])("stops after HTTP %d, which says nothing", async (status) => {
    const scene = await startScene();
    const { mcp } = scene;
    mcp.challenge = undefined;
    mcp.routes[mcp.wellKnown] = { status, text: "no" };
    mcp.routes[ROOT] = () => ({ json: mcp.metadata });
    expect(await outcome(scene)).toMatchObject({ resource: undefined, class: "unavailable" });
    expect(requested(scene)).toEqual([mcp.wellKnown, mcp.wellKnown, mcp.wellKnown]);
  });

  it("reports where the server's own document says that it is, in place of the option for another origin", async () => {
    const scene = await startScene();
    const { mcp } = scene;
    const own = "https://mcp.example/mcp";
    mcp.challenge = `Bearer resource_metadata="https://mcp.example${mcp.wellKnown}"`;
    mcp.routes[mcp.wellKnown] = { json: { ...mcp.metadata, resource: own } };
    expect(await outcome(scene)).toMatchObject({ code: "bad_address", remedy: { action: "login", server: own } });
    mcp.routes[mcp.wellKnown] = { json: { ...mcp.metadata, resource: `${own};$(x)` } };
    expect(await outcome(scene)).toMatchObject({ remedy: { action: "allow", option: "allowCrossOriginMetadata" } });
  });

  it("has two well-known addresses for a path, one for none", () => {
    expect(wellKnownAddresses("https://mcp.example/a/mcp?x=1")).toEqual([
      `https://mcp.example${ROOT}/a/mcp?x=1`,
      `https://mcp.example${ROOT}`,
    ]);
    expect(wellKnownAddresses("https://mcp.example/")).toEqual([`https://mcp.example${ROOT}`]);
  });
});

describe("what the resource metadata may say", () => {
  /** Discovery with members of the document replaced. */
  async function withMembers(members: Record<string, unknown>, options: Parameters<Scene["agent"]>[0] = {}) {
    const scene = await startScene();
    scene.mcp.metadata = { ...scene.mcp.metadata, ...members };
    return outcome(scene, options);
  }

  describe("named by a challenge, on a host that the server shares", () => {
    /** Discovery at /a/mcp, whose challenge names a document at `path` about `resource`. */
    async function named(
      path: string,
      resource: (origin: string) => string,
      arrange: (scene: Scene) => void = () => {},
    ) {
      const scene = await startScene({ mcpPath: "/a/mcp" });
      const { mcp } = scene;
      delete mcp.routes[mcp.wellKnown];
      const document = { ...mcp.metadata, resource: resource(mcp.origin) };
      mcp.routes[path] = () => ({ json: document });
      mcp.challenge = `Bearer resource_metadata="${mcp.origin}${path}"`;
      arrange(scene);
      const { found, error, trace } = await scene.agent().discover(mcp.url);
      const steps = trace
        .filter(({ step }) => step === "resource metadata")
        .map(({ url, used, why }) => ({
          path: url.slice(mcp.origin.length),
          used,
          why,
        }));
      return { mcp, resource: found?.resource?.resource, error, steps, reached: scene.issuer.requests.length > 0 };
    }

    it.each(["/a/prm", "/a/.well-known/oauth-protected-resource", `${ROOT}/a`, `${ROOT}/a/mcp/`, `${ROOT}/b/mcp`])(
      "must be the very server where the document lies at %s",
      async (path) => {
        for (const parent of ["", "/", "/a", "/a/"]) {
          const { mcp, error, reached } = await named(path, (origin) => origin + parent);
          expect(error, parent).toMatchObject({ code: "resource_mismatch", class: "refused" });
          expect(error?.message).toMatch(
            `(from "${mcp.origin}${path}") must be ${mcp.url} where the document is not at`,
          );
          expect(reached).toBe(false);
        }
        expect((await named(path, (origin) => `${origin}/a/mcp`)).error).toBeUndefined();
      },
    );

    it.each([`${ROOT}/a/mcp`, ROOT])("may be a parent where it lies at %s, and the trace says so", async (path) => {
      const { mcp, resource, steps } = await named(path, (origin) => origin);
      expect(resource).toBe(mcp.origin);
      const why = `it describes "${mcp.origin}", a parent of this server: the token may be accepted everywhere below that`;
      expect(steps.filter(({ used }) => used)).toEqual([{ path, used: true, why }]);
    });

    it("is not the document of the origin where that has one for the server", async () => {
      const own =
        (answer: object) =>
        ({ mcp }: Scene) => {
          mcp.routes[mcp.wellKnown] = { json: { ...mcp.metadata, ...answer } };
        };
      const { mcp, resource, steps } = await named(ROOT, (origin) => origin, own({}));
      expect(resource).toBe(mcp.url);
      expect(steps).toEqual([
        { path: mcp.wellKnown, used: true, why: "it describes this server" },
        { path: ROOT, used: false, why: "the server has its own document" },
      ]);
      const other = await named(ROOT, (origin) => origin, own({ resource: `${mcp.origin}/b` }));
      expect(other.error).toMatchObject({ class: "refused" });
      expect(other.reached).toBe(false);
    });
  });

  it("takes a parent of the server at a segment boundary, and not where the very address is requested", async () => {
    const scene = await startScene({ mcpPath: "/team/mcp" });
    const { mcp } = scene;
    for (const resource of [mcp.origin, `${mcp.origin}/`, `${mcp.origin}/team`, `${mcp.origin}/team/`]) {
      mcp.metadata = { ...mcp.metadata, resource };
      expect((await outcome(scene)).resource?.resource).toBe(resource);
      expect(await outcome(scene, { policy: { strictResource: true } })).toMatchObject({ code: "resource_mismatch" });
    }
  });

  it("refuses more than 16 authorization servers", async () => {
    const servers = Array.from({ length: 17 }, (_, index) => `https://as${index}.example`);
    const result = await withMembers({ authorization_servers: servers });
    expect(result).toMatchObject({ class: "refused", message: expect.stringMatching(/^authorization_servers /) });
  });

  it.each<[unknown]>([[null], [""], [[]]])("takes members that are %j for those that are missing", async (nothing) => {
    const { resource } = await withMembers({ scopes_supported: nothing, resource_name: nothing });
    expect(resource).toMatchObject({ scopesSupported: undefined, dpopRequired: false });
    expect((await withMembers({ authorization_servers: nothing })).code).toBe("bad_resource_metadata");
  });

  it("continues where the header is one of several ways", async () => {
    expect((await withMembers({ bearer_methods_supported: ["query", "header"] })).resource).toBeDefined();
  });
});

describe("the first address of a challenge", () => {
  const MCP = "https://mcp.example/mcp";
  it.each([[], ["https://mcp.example/metadata"], ["https://mcp.example/a", "https://other.example/"], ["/metadata"]])(
    "may be one on the origin of the server: %j",
    (...resourceMetadata) => {
      expect(checkFirstNamed({ resourceMetadata } as never, MCP)).toBeUndefined();
    },
  );

  it.each(["https://other.example/metadata", "http://mcp.example/metadata", "no address", "metadata", ""])(
    "is refused on another one, as discovery refuses it: %j",
    (address) => {
      expect(() => checkFirstNamed({ resourceMetadata: [address] } as never, MCP)).toThrow(
        `resource_metadata "${address}" (from "the WWW-Authenticate of ${MCP}") must be on the MCP server's origin (RFC 9728 section 7.3)`,
      );
    },
  );
});

const SERVER = "https://mcp.example/mcp";

const OTHER = "https://mcp.example/metadata";

const challengeOf = (resourceMetadata: string[], scope?: string): BearerChallenge => ({
  resourceMetadata,
  scope,
  error: "invalid_token",
  schemes: ["bearer"],
});

describe("what a login cannot find out by itself", () => {
  it.each<[string, BearerChallenge | undefined, object]>([
    ["no challenge", undefined, {}],
    ["a challenge without an address", challengeOf([], "a"), {}],
    ["the address at the path", challengeOf(["https://mcp.example/.well-known/oauth-protected-resource/mcp"], "a"), {}],
    ["the address at the root", challengeOf(["https://mcp.example/.well-known/oauth-protected-resource"], "a"), {}],
    ["another address", challengeOf([OTHER, "https://mcp.example/more"], "a"), { resourceMetadata: OTHER, scope: "a" }],
    ["another address without scopes", challengeOf([OTHER]), { resourceMetadata: OTHER, scope: undefined }],
  ])("is in %s", (_what, given, expected) => {
    expect(challengeOnlyMetadata(given, SERVER)).toEqual(expected);
  });

  const error = (remedy: Remedy | undefined) =>
    new AgentAuthError("bad_address", "no", { class: "refused", hint: "a hint", ...(remedy && { remedy }) });
  const allow: Remedy = { action: "allow", option: "allowCrossOriginMetadata" };
  const configure: Remedy = { action: "configure", option: "issuer", value: "https://as.example" };

  it.each<[Remedy, string | undefined]>([
    [allow, "a"],
    [allow, undefined],
    [configure, "a"],
  ])("is added to the remedy %j, with the scope %j", (remedy, scope) => {
    expect(withUnseen(error(remedy), challengeOf([OTHER], scope), SERVER)).toMatchObject({
      code: "bad_address",
      hint: "a hint",
      remedy: { ...remedy, login: { resourceMetadata: OTHER, ...(scope !== undefined && { scope }) } },
    });
  });

  it.each<[unknown, BearerChallenge | undefined]>([
    [error(allow), undefined],
    [error(allow), challengeOf([])],
    [error(undefined), challengeOf([OTHER])],
    [error({ action: "login", server: SERVER }), challengeOf([OTHER])],
    [new RangeError("oops"), challengeOf([OTHER])],
  ])("is not added otherwise: %#", (given, details) => {
    expect(withUnseen(given, details, SERVER)).toBe(given);
  });

  it("is the challenge of the next login", () => {
    const login = { action: "login", server: SERVER } as const;
    expect(challengeOfRemedy({ ...login, scope: "a" })).toBeUndefined();
    expect(challengeOfRemedy({ ...login, resourceMetadata: OTHER, scope: "a" })).toEqual({
      ...challengeOf([OTHER], "a"),
      error: undefined,
      schemes: [],
    });
  });
});
