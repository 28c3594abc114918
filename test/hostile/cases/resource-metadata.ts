import { silence } from "../../helpers/peer.js";
import { saveClientOf } from "../arrange.js";
import {
  type HostileCase,
  ORIGIN_METADATA,
  UP_TO_CHALLENGE,
  UP_TO_ISSUER,
  UP_TO_RESOURCE,
  unless,
  WHOLE_LOGIN,
} from "../case.js";
import type { Kit } from "../kit/kit.js";
import { metadataRows, set } from "../metadata-rows.js";

const { refused, accepted } = metadataRows("mcp", UP_TO_RESOURCE);
const bad = (id: string, input: string, name: string, value: unknown, ...says: string[]) =>
  refused(id, input, set(name, value), [name, "/.well-known/oauth-protected-resource/mcp", ...says]);

/** A server on a shared host, whose challenge names a document about a parent. */
function foreignMetadata(id: string, input: string, path: string, parent: string): HostileCase {
  return refused(
    id,
    input,
    (metadata, { mcp }) => {
      mcp.challenge = `Bearer resource_metadata="${mcp.origin}${path}"`;
      mcp.routes[path] = { json: { ...metadata, resource: `${mcp.origin}${parent}` } };
    },
    ({ mcp }) => [`(from "${mcp.origin}${path}") must be ${mcp.url} where`, "(RFC 9728 section 3.3)"],
    { code: "resource_mismatch", requests: [...UP_TO_CHALLENGE, `mcp GET ${path}`] },
  );
}

/** The same with the flag for a resource, which is not the one that is named. */
function notAccepted(id: string, input: string, parent: string, flag: (kit: Kit) => string): HostileCase {
  return {
    ...foreignMetadata(id, input, "/mcp/prm", parent),
    command: (kit) => ["login", kit.mcp.url, "--browser", "none", "--resource", flag(kit)],
  };
}

const ROOT = "/.well-known/oauth-protected-resource";
const shared: HostileCase[] = [
  foreignMetadata(
    "P12a",
    "a challenge with a document below the path of the server that describes the origin",
    "/mcp/prm",
    "",
  ),
  foreignMetadata("P12b", "the same at a path that resembles a well-known one", `/mcp${ROOT}`, "/"),
  foreignMetadata("P12c", "the same at the well-known address of another server", `${ROOT}/mcp2`, ""),
  notAccepted("P12f", "the same, with --resource none", "", () => "none"),
  notAccepted("P12g", "the same, with --resource of the origin and a slash", "", ({ mcp }) => `${mcp.origin}/`),
  notAccepted(
    "P12h",
    "a challenge with a document that describes a sibling of the server, with --resource of that sibling",
    "/mc",
    ({ mcp }) => `${mcp.origin}/mc`,
  ),
  {
    ...foreignMetadata("P12i", "the same as P12a; the suggested command", "/mcp/prm", ""),
    result: "refused; the hint names --resource with exactly that resource, and what it means",
    says: ({ mcp }) => [
      `the token may be valid for every server below "${mcp.origin}": if you trust all of them, --resource ${mcp.origin} accepts`,
    ],
  },
  accepted(
    "P12j",
    "the same as P12a, with --resource of the origin",
    "accepted, for exactly that resource",
    (metadata, { mcp }) => {
      mcp.challenge = `Bearer resource_metadata="${mcp.origin}/mcp/prm"`;
      mcp.routes["/mcp/prm"] = { json: { ...metadata, resource: mcp.origin } };
      delete mcp.routes[`${ROOT}/mcp`];
    },
    {
      command: ({ mcp }) => ["login", mcp.url, "--browser", "none", "--resource", mcp.origin],
      requests: [...WHOLE_LOGIN, "mcp GET /mcp/prm"],
      check: ({ mcp, as }) =>
        unless({ "exactly that resource is requested": as.form("/pool/token").get("resource") === mcp.origin }),
    },
  ),
  {
    ...foreignMetadata("P12k", "the same in a later login without the flag, with an issuer of its own", "/mcp/prm", ""),
    result: "refused: the exception is for the issuer of the login",
    code: "bad_address",
    async arrange(kit) {
      const { mcp, other } = kit;
      await kit.saveLogin({ resource: mcp.origin, overrides: ["resource"] });
      mcp.challenge = `Bearer resource_metadata="${mcp.origin}/mcp/prm"`;
      mcp.routes["/mcp/prm"] = { json: { resource: mcp.origin, authorization_servers: [other.issuer] } };
      delete mcp.routes[`${ROOT}/mcp`];
    },
    says: ["the issuer for which an earlier login accepted the resource"],
    requests: [...UP_TO_RESOURCE, "mcp GET /mcp/prm"],
  },
  accepted(
    "P12d",
    "a challenge with the document of the origin, although the server has one",
    "the document of the server is used",
    (metadata, { mcp }) => {
      mcp.challenge = `Bearer resource_metadata="${mcp.origin}${ROOT}"`;
      mcp.routes[ROOT] = { json: { ...metadata, resource: mcp.origin } };
    },
    {
      requests: [...WHOLE_LOGIN, `mcp GET ${ROOT}`],
      check: ({ mcp, as }) =>
        unless({ "the token is requested for the server only": as.form("/pool/token").get("resource") === mcp.url }),
    },
  ),
  accepted(
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
      requests: [...WHOLE_LOGIN, `mcp GET ${ROOT}`],
      says: ({ mcp }) => [`it describes "${mcp.origin}", a parent of this server`],
    },
  ),
];

const resource: HostileCase[] = [
  bad("P1a", "resource missing", "resource", undefined, "is missing, and", "must be an absolute URL"),
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
  accepted(
    "P4a",
    "resource that is the origin",
    "accepted, and sent byte for byte",
    (metadata, { mcp }) => {
      metadata["resource"] = `${mcp.origin}/`;
    },
    {
      check: ({ mcp, as }) =>
        unless({ "resource is sent unchanged": as.form("/pool/token").get("resource") === `${mcp.origin}/` }),
    },
  ),
  refused(
    "P4b",
    "the same with --strict-resource",
    (metadata, { mcp }) => {
      metadata["resource"] = `${mcp.origin}/`;
    },
    ["RFC 9728 section 3.3"],
    { flags: ["--strict-resource"], options: { policy: { strictResource: true } }, code: "resource_mismatch" },
  ),
  ...(["/", "?"] as const).map((more, nth) =>
    refused(
      `P4${"cd"[nth]}`,
      `resource that is the address with ${more} appended, with --strict-resource`,
      (metadata, { mcp }) => {
        metadata["resource"] = `${mcp.url}${more}`;
      },
      ["RFC 9728 section 3.3"],
      { flags: ["--strict-resource"], options: { policy: { strictResource: true } }, code: "resource_mismatch" },
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

/** Metadata of the origin are read only to name every flag. */
function withoutIssuer(id: string, input: string, value: unknown): HostileCase {
  const row = bad(id, input, "authorization_servers", value, "must name at least one");
  return {
    ...row,
    result: "refused; the error names --legacy-discovery, and no issuer is guessed",
    says: ["must name at least one", "--legacy-discovery"],
    requests: [...UP_TO_RESOURCE, ...ORIGIN_METADATA],
  };
}

const servers: HostileCase[] = [
  withoutIssuer("P5a", "authorization_servers missing", undefined),
  withoutIssuer("P5b", "authorization_servers empty", []),
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
  accepted(
    "P5l",
    "the same authorization server three times",
    "requested once",
    (metadata, { as }) => {
      metadata["authorization_servers"] = [as.issuer, as.issuer, as.issuer];
    },
    { times: { [UP_TO_ISSUER[2] ?? ""]: 1 } },
  ),
  accepted(
    "P5m",
    "a first authorization server with another issuer in its metadata, and a valid second one",
    "the second one is used",
    (metadata, { as, other }) => {
      other.metadata["issuer"] = "https://wrong.example";
      metadata["authorization_servers"] = [other.issuer, as.issuer];
    },
    {
      requests: [
        ...WHOLE_LOGIN,
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
    ["no complete response"],
    {
      result: "an error: the second one is not a fallback",
      outcome: "unavailable",
      code: "timeout",
      timeout: 8,
      retries: false,
      requests: [
        ...UP_TO_RESOURCE,
        "other GET /pool/.well-known/oauth-authorization-server",
        "other GET /.well-known/oauth-authorization-server/pool",
        "other GET /.well-known/openid-configuration/pool",
        "other GET /pool/.well-known/openid-configuration",
      ],
    },
  ),
  {
    id: "P6",
    input: "an MCP server that names another authorization server than the one of the stored login",
    result: "logged; a new client is registered there; no client, secret or token of the first issuer is sent to it",
    says: ["names another authorization server than before"],
    outcome: "ok",
    async arrange(kit) {
      await kit.saveLogin();
      await saveClientOf(kit);
      kit.mcp.metadata["authorization_servers"] = [kit.other.issuer];
    },
    requests: WHOLE_LOGIN.map((one) => one.replace(/^as /, "other ")),
    check: ({ log, canaries }) => {
      const sent = log
        .filter(({ peer }) => peer === "other")
        .map(({ url, body, headers }) => url + body + JSON.stringify(headers));
      return unless({
        "the first client's ID is not sent": !sent.some((text) => text.includes("first-client")),
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
    "must not have more than 256 scopes",
  ),
  bad(
    "P7h",
    "256 scopes of 9 KB",
    "scopes_supported",
    Array.from({ length: 256 }, (_, nth) => `s${nth}`.padEnd(36, "x")),
    "must not have more than 8192 bytes, and has 9471",
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
  accepted(
    "P7g",
    "offline_access listed by the resource alone",
    "not requested",
    set("scopes_supported", ["tools", "offline_access"]),
    {
      check: ({ as }) =>
        unless({ "one scope is requested": as.to("/pool/authorize")[0]?.url.includes("scope=tools&") === true }),
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
  accepted("P9", "signed_metadata that names another authorization server", "ignored", (metadata, { elsewhere }) => {
    const claims = Buffer.from(JSON.stringify({ authorization_servers: [elsewhere.origin] })).toString("base64url");
    metadata["signed_metadata"] = `eyJhbGciOiJub25lIn0.${claims}.`;
  }),
  accepted(
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

/** Metadata of the resource (RFC 9728). */
export const resourceMetadata: readonly HostileCase[] = [...resource, ...servers, ...rest];
