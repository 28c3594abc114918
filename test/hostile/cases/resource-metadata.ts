import { saveClientOf } from "../arrange.js";
import { ASKED, DESCRIBED, EXCHANGED, type HostileCase, KNOWN, unless } from "../case.js";
import type { Kit } from "../kit/kit.js";
import { silence } from "../kit/peer.js";

type Change = (metadata: Record<string, unknown>, kit: Kit) => void;

/** Resource metadata with something wrong in it, which ends the login there. */
function refused(
  id: string,
  came: string,
  change: Change,
  says: HostileCase["says"],
  over: Partial<HostileCase> = {},
): HostileCase {
  return {
    id,
    came,
    done: "refused, no further request",
    outcome: "refused",
    arrange: (kit) => change(kit.mcp.metadata, kit),
    ...(says && { says }),
    requests: DESCRIBED,
    ...over,
  };
}

/** The same with something in it that is no harm. */
function taken(id: string, came: string, done: string, change: Change, over: Partial<HostileCase> = {}): HostileCase {
  return {
    id,
    came,
    done,
    outcome: "ok",
    arrange: (kit) => change(kit.mcp.metadata, kit),
    requests: EXCHANGED,
    ...over,
  };
}

const set =
  (name: string, value: unknown): Change =>
  (metadata) => {
    metadata[name] = value;
  };
const bad = (id: string, came: string, name: string, value: unknown, ...says: string[]) =>
  refused(id, came, set(name, value), [name, "/.well-known/oauth-protected-resource/mcp", ...says]);

/** A server on a shared host, whose challenge names a document about more than itself. */
function neighbour(id: string, came: string, path: string, parent: string): HostileCase {
  return refused(
    id,
    came,
    (metadata, { mcp }) => {
      mcp.challenge = `Bearer resource_metadata="${mcp.origin}${path}"`;
      mcp.routes[path] = { json: { ...metadata, resource: `${mcp.origin}${parent}` } };
    },
    ({ mcp }) => [`(from "${mcp.origin}${path}") must be ${mcp.url} where`, "(RFC 9728 section 3.3)"],
    { code: "resource_mismatch", requests: [...ASKED, `mcp GET ${path}`] },
  );
}

const ROOT = "/.well-known/oauth-protected-resource";
const shared: HostileCase[] = [
  neighbour(
    "P12a",
    "a challenge with a document below the path of the server that describes the origin",
    "/mcp/prm",
    "",
  ),
  neighbour("P12b", "the same at a path that resembles a well-known one", `/mcp${ROOT}`, "/"),
  neighbour("P12c", "the same at the well-known address of another server", `${ROOT}/mcp2`, ""),
  taken(
    "P12d",
    "a challenge with the document of the origin, although the server has one",
    "the document of the server is used",
    (metadata, { mcp }) => {
      mcp.challenge = `Bearer resource_metadata="${mcp.origin}${ROOT}"`;
      mcp.routes[ROOT] = { json: { ...metadata, resource: mcp.origin } };
    },
    {
      requests: [...EXCHANGED, `mcp GET ${ROOT}`],
      check: ({ mcp, as }) =>
        unless({ "the token is asked for the server alone": as.form("/pool/token").get("resource") === mcp.url }),
    },
  ),
  taken(
    "P12e",
    "the same if the server has none",
    "accepted; --verbose logs it",
    (metadata, { mcp }) => {
      mcp.challenge = `Bearer resource_metadata="${mcp.origin}${ROOT}"`;
      mcp.routes[ROOT] = { json: { ...metadata, resource: mcp.origin } };
      delete mcp.routes[`${ROOT}/mcp`];
    },
    {
      flags: ["--verbose"],
      options: {},
      requests: [...EXCHANGED, `mcp GET ${ROOT}`],
      says: ({ mcp }) => [`it describes "${mcp.origin}", a parent of this server`],
    },
  ),
];

const resource: HostileCase[] = [
  bad("P1a", "resource missing", "resource", undefined, "is missing and", "must be an absolute URL"),
  bad("P1b", "resource that is a number", "resource", 7, '"7"', "must be an absolute URL"),
  bad("P1c", "resource that is relative", "resource", "/mcp", '"/mcp"', "must be an absolute URL"),
  refused(
    "P1d",
    "resource with a fragment",
    (metadata, { mcp }) => Object.assign(metadata, { resource: `${mcp.url}#a` }),
    ["must not have a fragment"],
  ),
  bad("P1e", "resource with a user name", "resource", "https://a@mcp.example/mcp", "user name or password"),
  bad("P1f", "resource that is a list", "resource", ["https://mcp.example/mcp"], "must be an absolute URL"),
  bad(
    "P2",
    "resource on another origin",
    "resource",
    "https://mcp.example/mcp",
    '"https://mcp.example/mcp"',
    "(RFC 9728 section 3.3)",
  ),
  ...(["/other", "/mc", "/mcp2", "/mcp/deeper", "/MCP"] as const).map((path, nth) =>
    refused(
      `P3${"abcde"[nth]}`,
      `resource of the same origin with the path ${path}`,
      (metadata, { mcp }) => {
        metadata["resource"] = `${mcp.origin}${path}`;
      },
      ({ mcp }) => [`resource "${mcp.origin}${path}"`, `must be ${mcp.url} or a parent of it (RFC 9728 section 3.3)`],
      { code: "resource_mismatch" },
    ),
  ),
  taken(
    "P4a",
    "resource that is the origin",
    "accepted, and sent byte for byte",
    (metadata, { mcp }) => {
      metadata["resource"] = `${mcp.origin}/`;
    },
    {
      check: ({ mcp, as }) =>
        unless({ "resource is sent as it was given": as.form("/pool/token").get("resource") === `${mcp.origin}/` }),
    },
  ),
  refused(
    "P4b",
    "the same with --strict-resource",
    (metadata, { mcp }) => {
      metadata["resource"] = `${mcp.origin}/`;
    },
    ["RFC 9728 section 3.3"],
    { flags: ["--strict-resource"], options: { strictResource: true }, code: "resource_mismatch" },
  ),
  ...(["/", "?"] as const).map((more, nth) =>
    refused(
      `P4${"cd"[nth]}`,
      `resource that is the address with ${more} appended, with --strict-resource`,
      (metadata, { mcp }) => {
        metadata["resource"] = `${mcp.url}${more}`;
      },
      ["RFC 9728 section 3.3"],
      { flags: ["--strict-resource"], options: { strictResource: true }, code: "resource_mismatch" },
    ),
  ),
  ...shared,
  refused(
    "P10a",
    "resource with a right-to-left override in it",
    (metadata, { mcp }) => {
      metadata["resource"] = `${mcp.origin}/\u202epcm`;
    },
    ["\\u{202e}", "invisible characters"],
    { code: "bad_address" },
  ),
  refused(
    "P10b",
    "resource of 100 KB",
    (metadata, { mcp }) => {
      metadata["resource"] = `${mcp.origin}/${"a".repeat(100_000)}`;
    },
    ["…"],
    { check: (_, run) => unless({ "the message is short": (run?.stderr.length ?? 0) < 2000 }) },
  ),
];

const servers: HostileCase[] = [
  bad("P5a", "authorization_servers missing", "authorization_servers", undefined, "must name at least one"),
  bad("P5b", "authorization_servers empty", "authorization_servers", [], "must name at least one"),
  bad(
    "P5c",
    "500 authorization servers",
    "authorization_servers",
    Array(500).fill("https://as.example"),
    "must not name more than 16",
  ),
  bad(
    "P5d",
    "an authorization server that is not a URL",
    "authorization_servers",
    ["nonsense"],
    '"nonsense"',
    "must be an absolute URL",
  ),
  bad(
    "P5e",
    "an authorization server with a query",
    "authorization_servers",
    ["https://as.example/?a=b"],
    "must not have a query (RFC 8414 section 2)",
  ),
  bad(
    "P5f",
    "an authorization server with a fragment",
    "authorization_servers",
    ["https://as.example/#a"],
    "must not have a fragment",
  ),
  bad(
    "P5g",
    "an authorization server with a user name",
    "authorization_servers",
    ["https://as@as.example"],
    "user name or password",
  ),
  bad(
    "P5h",
    "authorization_servers that is a string",
    "authorization_servers",
    "https://as.example",
    "must name at least one",
  ),
  bad(
    "P5i",
    "an authorization server that is an object",
    "authorization_servers",
    [{ issuer: "https://as.example" }],
    "must be an absolute URL",
  ),
  bad(
    "P5j",
    "an authorization server with http: to another machine",
    "authorization_servers",
    ["http://as.example"],
    "OAuth 2.1 section 1.5",
  ),
  bad(
    "P5k",
    "an authorization server with javascript:",
    "authorization_servers",
    ["javascript:alert(1)"],
    "must be an https address",
  ),
  taken(
    "P5l",
    "the same authorization server three times",
    "requested once",
    (metadata, { as }) => {
      metadata["authorization_servers"] = [as.issuer, as.issuer, as.issuer];
    },
    { times: { [KNOWN[2] ?? ""]: 1 } },
  ),
  taken(
    "P5m",
    "a first authorization server with another issuer in its metadata, and a valid second one",
    "the second one is used",
    (metadata, { as, other }) => {
      other.metadata["issuer"] = "https://somebody.example";
      metadata["authorization_servers"] = [other.issuer, as.issuer];
    },
    {
      requests: [
        ...EXCHANGED,
        "other GET /pool/.well-known/oauth-authorization-server",
        "other GET /.well-known/oauth-authorization-server/pool",
        "other GET /.well-known/openid-configuration/pool",
        "other GET /pool/.well-known/openid-configuration",
      ],
    },
  ),
  refused(
    "P5n",
    "a first authorization server that does not answer, and a second one that does",
    (metadata, { as, other }) => {
      for (const path of Object.keys(other.routes)) other.routes[path] = silence;
      metadata["authorization_servers"] = [other.issuer, as.issuer];
    },
    ["no complete answer"],
    {
      done: "an error: the second one is not a fallback",
      outcome: "unavailable",
      code: "timeout",
      timeout: 8,
      retries: false,
      requests: [
        ...DESCRIBED,
        "other GET /pool/.well-known/oauth-authorization-server",
        "other GET /.well-known/oauth-authorization-server/pool",
        "other GET /.well-known/openid-configuration/pool",
        "other GET /pool/.well-known/openid-configuration",
      ],
    },
  ),
  {
    id: "P6",
    came: "an MCP server that names another authorization server than the one of the stored login",
    done: "logged; a new client is registered there; no client, secret or token of the first issuer is sent to it",
    says: ["names another authorization server than before"],
    outcome: "ok",
    async arrange(kit) {
      await kit.keep();
      await saveClientOf(kit);
      kit.mcp.metadata["authorization_servers"] = [kit.other.issuer];
    },
    requests: EXCHANGED.map((one) => one.replace(/^as /, "other ")),
    check: ({ log, canaries }) => {
      const sent = log
        .filter(({ peer }) => peer === "other")
        .map(({ url, body, headers }) => url + body + JSON.stringify(headers));
      return unless({
        "the first client's id stays where it is": !sent.some((text) => text.includes("first-client")),
        "no token of the first login is sent": !sent.some((text) => text.includes(canaries.get("refresh-token"))),
      });
    },
  },
];

const rest: HostileCase[] = [
  bad(
    "P7a",
    "10,000 scopes",
    "scopes_supported",
    Array.from({ length: 10_000 }, (_, nth) => `s${nth}`),
    "must not have more than 64 scopes",
  ),
  bad(
    "P7b",
    "a scope with a line break",
    "scopes_supported",
    ["a\r\nb"],
    "must consist of scope tokens (RFC 6749 section 3.3)",
  ),
  bad(
    "P7c",
    "a scope with an escape sequence",
    "scopes_supported",
    ["\u001b]0;x\u0007"],
    "\\u001b]0;x\\u0007",
    "must consist of scope tokens",
  ),
  bad("P7d", "a scope of 10,000 characters", "scopes_supported", ["s".repeat(10_000)], "must consist of scope tokens"),
  bad("P7e", "scopes that are numbers", "scopes_supported", [1, 2], "must consist of scope tokens"),
  refused(
    "P7f",
    "1 MB of scopes",
    (metadata) => Object.assign(metadata, { scopes_supported: ["s".repeat(1_000_000)] }),
    ["larger than 262144 bytes"],
    { code: "body_too_large" },
  ),
  taken(
    "P7g",
    "offline_access listed by the resource alone",
    "not requested",
    set("scopes_supported", ["tools", "offline_access"]),
    {
      check: ({ as }) =>
        unless({ "one scope is asked for": as.to("/pool/authorize")[0]?.url.includes("scope=tools&") === true }),
    },
  ),
  bad(
    "P8a",
    "bearer_methods_supported with query alone",
    "bearer_methods_supported",
    ["query"],
    '["query"]',
    "RFC 6750 section 5.3",
  ),
  bad("P8b", "bearer_methods_supported with body alone", "bearer_methods_supported", ["body"], "RFC 6750 section 5.3"),
  taken("P9", "signed_metadata that names another authorization server", "ignored", (metadata, { elsewhere }) => {
    const claims = Buffer.from(JSON.stringify({ authorization_servers: [elsewhere.origin] })).toString("base64url");
    metadata["signed_metadata"] = `eyJhbGciOiJub25lIn0.${claims}.`;
  }),
  taken(
    "P11",
    "names, links and logos with escape sequences, and addresses to fetch",
    "ignored: neither requested nor shown",
    (metadata, { elsewhere }) => {
      Object.assign(metadata, {
        resource_name: "\u001b]8;;https://evil.example\u0007x",
        jwks_uri: `${elsewhere.origin}/jwks`,
        resource_documentation: `${elsewhere.origin}/doc`,
        logo_uri: `${elsewhere.origin}/logo`,
      });
    },
  ),
];

/** What a resource says of itself (RFC 9728). */
export const resourceMetadata: readonly HostileCase[] = [...resource, ...servers, ...rest];
