import type { Route } from "../../helpers/peer.js";
import {
  ALL_METADATA,
  type HostileCase,
  REFRESH,
  UP_TO_AUTHORIZATION,
  UP_TO_ISSUER,
  UP_TO_RESOURCE,
  unless,
  WHOLE_LOGIN,
} from "../case.js";
import type { Kit } from "../kit/kit.js";
import { type Change, metadataRows, set } from "../metadata-rows.js";

const OWN = "/pool/.well-known/oauth-authorization-server";
const ROOT = "/.well-known/oauth-authorization-server";
const ROOT_OPENID = "/.well-known/openid-configuration";
const INSERTED = "/.well-known/oauth-authorization-server/pool";
const OPENID = "/pool/.well-known/openid-configuration";

const { refused, accepted } = metadataRows("as", ALL_METADATA);
const bad = (id: string, input: string, name: string, value: unknown, ...says: string[]) =>
  refused(id, input, set(name, value), [name, OWN, ...says]);

/** Whether the login page got none of a value that the endpoint brought for a parameter of ours, and what is not ours. */
function notSent(as: Kit["as"], name: string, value: string): string[] {
  const [{ url = "" } = {}] = as.to("/pool/authorize");
  const sent = new URL(url, as.origin).searchParams;
  return unless({
    [`${name} is not theirs`]: !sent.getAll(name).includes(value),
    "what is not ours stays": sent.get("theirs") === "1",
  });
}

/** The requests of a login with the token endpoint of another server. */
const ELSEWHERE = [...WHOLE_LOGIN.filter((one) => one !== "as POST /pool/token"), "other POST /pool/token"];

/** Checks that the command shows which host issues the token, in a line that starts with `begin`. */
function showsTokenHost(begin: string): NonNullable<HostileCase["check"]> {
  return ({ as, other }, run) => {
    const [from, to] = [as, other].map(({ issuer }) => new URL(issuer).host);
    const line = `\n${begin}The login at ${from} is handed to ${to}, which issues the token.\n`;
    return run === undefined ? [] : unless({ "the user is warned": run.stderr.includes(line) });
  };
}

const ALLOWING_FLAG = "--allow-cross-origin-endpoints disables this check";

/** Makes the code go to another origin, without `iss` in the callback. */
function withoutIss({ as, other }: Kit): void {
  as.metadata["token_endpoint"] = `${other.issuer}/token`;
  delete as.metadata["authorization_response_iss_parameter_supported"];
}

/** A possible mix-up attack (RFC 9700 section 4.4), without a terminal to ask the user. */
function crossOriginCode(id: string, input: string, over: Partial<HostileCase> = {}): HostileCase {
  return {
    id,
    input,
    result: "refused before a registration, a browser or a code",
    outcome: "refused",
    code: "bad_server_metadata",
    arrange: withoutIss,
    says: ({ as, other }) => [
      `token_endpoint "${other.issuer}/token"`,
      `must be at ${as.origin}, the origin of its authorization_endpoint, unless`,
      "(RFC 9700 section 4.4)",
      ALLOWING_FLAG,
    ],
    store: "same",
    requests: UP_TO_ISSUER,
    ...over,
  };
}

/** Metadata with an issuer that differs from the requested one. */
function wrongIssuer(id: string, input: string, issuer: (own: string) => string, ...says: string[]): HostileCase {
  return refused(
    id,
    input,
    (metadata, { as }) => Object.assign(metadata, { issuer: issuer(as.issuer) }),
    ({ as }) => [
      `issuer "${issuer(as.issuer).replace("//a@", "//********@")}"`,
      `must be exactly "${as.issuer}"`,
      "RFC 8414 section 3.3",
      ...says,
    ],
    { code: "issuer_mismatch" },
  );
}

const issuers: HostileCase[] = [
  bad("M1", "issuer missing", "issuer", undefined, "is missing, and", "must be exactly"),
  wrongIssuer(
    "M2",
    "an issuer on another host",
    () => "https://as.example/pool",
    "add --issuer https://as.example/pool to expect",
  ),
  accepted(
    "M3e",
    "an issuer without a path that the server names with a slash appended",
    "accepted: the metadata have the same address; iss is compared with the metadata",
    (metadata, { as, mcp }) => {
      mcp.metadata["authorization_servers"] = [`${as.origin}/`];
      as.routes[ROOT] = { json: { ...metadata, issuer: as.origin } };
      as.callback["iss"] = as.origin;
    },
    {
      requests: [
        ...UP_TO_RESOURCE,
        `as GET ${ROOT}`,
        `as GET ${ROOT_OPENID}`,
        ...WHOLE_LOGIN.slice(UP_TO_ISSUER.length),
      ],
    },
  ),
  refused(
    "M3f",
    "the same, and an iss with the slash in the callback",
    (metadata, { as, mcp }) => {
      mcp.metadata["authorization_servers"] = [`${as.origin}/`];
      as.routes[ROOT] = { json: { ...metadata, issuer: as.origin } };
      as.callback["iss"] = `${as.origin}/`;
    },
    ({ as }) => [`iss "${as.origin}/"`, `must be exactly "${as.origin}"`],
    {
      code: "iss_mismatch",
      store: "logins",
      requests: [
        ...UP_TO_RESOURCE,
        `as GET ${ROOT}`,
        `as GET ${ROOT_OPENID}`,
        ...UP_TO_AUTHORIZATION.slice(UP_TO_ISSUER.length),
      ],
    },
  ),
  wrongIssuer("M3a", "an issuer with a slash appended", (own) => `${own}/`, "they differ by a slash at the end"),
  wrongIssuer(
    "M3b",
    "an issuer in upper case",
    (own) => own.replace("pool", "Pool"),
    "they differ in upper and lower case",
  ),
  wrongIssuer("M3c", "an issuer with an escaped letter", (own) => own.replace("pool", "%70ool")),
  wrongIssuer(
    "M3d",
    "an issuer with dots in its path",
    (own) => own.replace("pool", "x/../pool"),
    "they differ in how the same address is written",
  ),
  wrongIssuer("M4a", "an issuer with a query", (own) => `${own}?a=b`),
  wrongIssuer("M4b", "an issuer with a fragment", (own) => `${own}#a`),
  {
    ...wrongIssuer("M4c", "an issuer with a user name", (own) => own.replace("//", "//a@")),
    check: (_, run) => unless({ "no flag is offered": run?.stderr.includes("--issuer") !== true }),
  },
  bad(
    "M14",
    "an issuer that is a list with the right one in it",
    "issuer",
    ["http://127.0.0.1/pool"],
    "must be exactly",
  ),
];

const pkce: HostileCase[] = [
  refused(
    "M5a",
    "code_challenge_methods_supported missing in every document",
    (metadata) => delete metadata["code_challenge_methods_supported"],
    [
      "code_challenge_methods_supported (from",
      "is missing, and",
      'must include "S256"',
      "--allow-missing-pkce-metadata",
    ],
    { code: "pkce_unsupported" },
  ),
  accepted(
    "M5b",
    "code_challenge_methods_supported missing in the first document, present in the second",
    "the next one is used",
    (metadata, { as }) => {
      as.routes[OPENID] = { json: { ...metadata } };
      delete metadata["code_challenge_methods_supported"];
    },
    { requests: [...ALL_METADATA, ...WHOLE_LOGIN] },
  ),
  accepted(
    "M5c",
    "the same as M5a with --allow-missing-pkce-metadata",
    "S256 is used even so",
    (metadata) => delete metadata["code_challenge_methods_supported"],
    {
      flags: ["--allow-missing-pkce-metadata"],
      options: { policy: { allowMissingPkceMetadata: true } },
      check: ({ as }) =>
        unless({
          "S256 is used": as.to("/pool/authorize")[0]?.url.includes("code_challenge_method=S256") === true,
          "the verifier is sent": (as.form("/pool/token").get("code_verifier")?.length ?? 0) >= 43,
        }),
    },
  ),
  bad(
    "M6a",
    'code_challenge_methods_supported ["plain"]',
    "code_challenge_methods_supported",
    ["plain"],
    'must include "S256"',
  ),
  bad(
    "M6b",
    'code_challenge_methods_supported "S256", a string',
    "code_challenge_methods_supported",
    "S256",
    "must be a list of strings",
  ),
  bad(
    "M6c",
    'code_challenge_methods_supported ["s256"]',
    "code_challenge_methods_supported",
    ["s256"],
    'must include "S256"',
  ),
  bad(
    "M6d",
    "code_challenge_methods_supported empty, with --allow-missing-pkce-metadata",
    "code_challenge_methods_supported",
    [],
    'must include "S256"',
  ),
].map((one) =>
  one.id === "M6d"
    ? { ...one, flags: ["--allow-missing-pkce-metadata"], options: { policy: { allowMissingPkceMetadata: true } } }
    : one,
);

const ENDPOINTS = [
  "authorization_endpoint",
  "token_endpoint",
  "registration_endpoint",
  "introspection_endpoint",
  "revocation_endpoint",
  "end_session_endpoint",
  "device_authorization_endpoint",
  "jwks_uri",
] as const;

const endpoints: HostileCase[] = [
  ...ENDPOINTS.map((name) =>
    bad(
      `M7-${name}`,
      `${name} with http: to another machine`,
      name,
      "http://as.example/x",
      '"http://as.example/x"',
      "OAuth 2.1 section 1.5",
    ),
  ),
  ...ENDPOINTS.map((name) =>
    bad(
      `D6-${name}`,
      `${name} at a cloud metadata address`,
      name,
      "https://169.254.169.254/latest/meta-data",
      "RFC 9728 section 7.7",
    ),
  ),
  accepted(
    "M8",
    "a token endpoint on another origin",
    "used, as RFC 8414 allows, after its host is shown to the user",
    (metadata, { other }) => {
      metadata["token_endpoint"] = `${other.issuer}/token`;
    },
    { requests: ELSEWHERE, check: showsTokenHost("") },
  ),
  crossOriginCode("M8b", "the same if the issuer does not announce iss"),
  crossOriginCode("M8c", "the same with token --login and a browser", {
    command: (kit) => ["token", kit.mcp.url, "--login", "--browser", "none"],
  }),
  crossOriginCode("M8d", "the same for an AI agent that names a browser", {
    environment: { AGENTAUTH_AGENT: "1" },
    flags: ["--json"],
    says: ["the origin of its authorization_endpoint, unless", ALLOWING_FLAG],
  }),
  crossOriginCode("M8e", "the same with --no-wait", { flags: ["--no-wait"] }),
  crossOriginCode("M8f", "the same with --flow paste", { flags: ["--flow", "paste"] }),
  crossOriginCode("M8g", "the same in mcp proxy with a browser", {
    drive: async (kit) => {
      // Closing stdin now would end the session before the response.
      const args = ["mcp", "proxy", kit.mcp.url, "--browser", "none", "--login"];
      const proxy = kit.start(args, { keepsStdinOpen: true });
      proxy.child.stdin?.write('{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}\n');
      await kit.untilPrinted(proxy, /RFC 9700/);
      proxy.child.stdin?.end();
      return proxy.ended;
    },
  }),
  crossOriginCode("M8h", "a device login whose code goes to another origin, with or without iss", {
    flags: ["--flow", "device"],
    options: { flow: "device" },
    arrange: ({ as, other }) => {
      as.metadata["token_endpoint"] = `${other.issuer}/token`;
    },
    says: ({ as }) => [
      `must be at ${as.origin}, the origin of its device_authorization_endpoint (RFC 9700`,
      ALLOWING_FLAG,
    ],
  }),
  crossOriginCode("M8i", "an issuer that names the authorization endpoint of another one, without iss", {
    arrange: ({ as, other }) => {
      as.metadata["authorization_endpoint"] = `${other.issuer}/authorize`;
      delete as.metadata["authorization_response_iss_parameter_supported"];
    },
    says: ({ as, other }) => [`token_endpoint "${as.issuer}/token"`, `must be at ${other.origin}`, ALLOWING_FLAG],
  }),
  accepted(
    "M8j",
    "a token endpoint on another origin without iss, with --allow-cross-origin-endpoints",
    "used, after a warning to the user",
    (_, kit) => withoutIss(kit),
    {
      flags: ["--allow-cross-origin-endpoints"],
      options: { policy: { allowCrossOriginEndpoints: true } },
      requests: ELSEWHERE,
      check: showsTokenHost("warning: "),
    },
  ),
  ...(["authorization", "token", "registration"] as const).map((name) =>
    refused(
      `M8-${name}_endpoint`,
      `${name}_endpoint on another origin, with --same-origin-endpoints`,
      (metadata, { other }) => {
        metadata[`${name}_endpoint`] = `${other.issuer}/${name}`;
      },
      ({ as, other }) => [`${name}_endpoint "${other.issuer}/${name}"`, `must be at ${as.origin}`],
      {
        flags: ["--same-origin-endpoints"],
        options: { policy: { sameOriginEndpoints: true } },
        code: "bad_server_metadata",
        requests: [...UP_TO_ISSUER, ...ALL_METADATA.slice(UP_TO_ISSUER.length).map((one) => `${one}?`)],
      },
    ),
  ),
  bad("M9a", "response_types_supported without code", "response_types_supported", ["token"], '"code"'),
  bad(
    "M9b",
    "grant_types_supported without authorization_code",
    "grant_types_supported",
    ["implicit"],
    "authorization_code",
  ),
  bad("M10a", "token_endpoint missing", "token_endpoint", undefined, "is required to get a token (RFC 8414 section 2)"),
  bad("M10b", "authorization_endpoint missing", "authorization_endpoint", undefined, "is required for a login"),
  bad("M15a", "token_endpoint with file:", "token_endpoint", "file:///etc/passwd", "must be an https address"),
  bad("M15b", "token_endpoint that is a list", "token_endpoint", ["https://as.example"], "must be an absolute URL"),
  bad(
    "M15c",
    "token_endpoint with a user name and password",
    "token_endpoint",
    "https://a:b@as.example/token",
    "user name or password",
  ),
  bad(
    "M15d",
    "token_endpoint with a fragment",
    "token_endpoint",
    "https://as.example/token#x",
    "must not have a fragment",
  ),
  bad(
    "M15e",
    "token_endpoint with a line break",
    "token_endpoint",
    "https://as.example/\r\ntoken",
    "invisible characters",
  ),
];

/** Serves a second document with another token endpoint. */
const secondDocument =
  (path: string): Change =>
  (metadata, { as, elsewhere }) => {
    as.routes[path] = { json: { ...metadata, token_endpoint: `${elsewhere.origin}/token` } } as Route;
  };

const documents: HostileCase[] = [
  accepted(
    "M11a",
    "an OpenID document that disagrees with the OAuth document",
    "not requested",
    secondDocument(OPENID),
  ),
  accepted("M11b", "two OAuth documents that disagree", "only the first one is used", secondDocument(INSERTED)),
  accepted(
    "M11c",
    "a first document without token_endpoint, and a complete second one",
    "only the second one is used",
    (metadata, { as }) => {
      as.routes[INSERTED] = { json: { ...metadata, registration_endpoint: `${as.issuer}/register` } };
      delete metadata["token_endpoint"];
    },
  ),
  {
    id: "M12",
    input: "a token endpoint that changed in the metadata after the login",
    result: "the refresh goes to the stored address; the metadata is not requested",
    outcome: "ok",
    command: "token",
    prints: ["access-token"],
    async arrange(kit) {
      await kit.saveLogin({}, { expiresAt: Date.now() - 1000 });
      kit.as.metadata["token_endpoint"] = `${kit.elsewhere.origin}/token`;
    },
    requests: REFRESH,
  },
  ...(
    [
      ["M16a", "redirect_uri", "https://evil.example/"],
      ["M16b", "state", "theirs"],
      ["M16c", "request_uri", "https://evil.example/request"],
      ["M16d", "response_mode", "form_post"],
      ["M16e", "login_hint", "victim@corp.example"],
    ] as const
  ).map(([id, name, value]) =>
    accepted(
      id,
      `an authorization endpoint that contains a ${name}`,
      "ours takes its place; without one of ours it is not sent",
      (metadata, { as }) => {
        metadata["authorization_endpoint"] =
          `${as.issuer}/authorize?${new URLSearchParams({ [name]: value, theirs: "1" })}`;
      },
      { check: ({ as }) => notSent(as, name, value) },
    ),
  ),
  accepted(
    "M17a",
    'authorization_response_iss_parameter_supported "true", a string, and a callback with the right iss',
    "iss is compared even so",
    set("authorization_response_iss_parameter_supported", "true"),
  ),
  accepted(
    "M17b",
    'client_id_metadata_document_supported "true", a string',
    "ignored: a client is registered",
    set("client_id_metadata_document_supported", "true"),
    {
      flags: ["--client-metadata-url", "https://client.example/metadata.json"],
      options: { clientMetadataUrl: "https://client.example/metadata.json" },
    },
  ),
  {
    id: "M18",
    input: "a server without any metadata",
    result: "refused; no endpoint is guessed",
    outcome: "refused",
    code: "no_server_metadata",
    arrange: ({ as }) => void delete as.routes[OWN],
    says: ["publishes no metadata (RFC 8414)"],
    requests: ALL_METADATA,
  },
  {
    id: "M19",
    input: "server metadata that answers 503",
    result: "retried, then an error; no endpoint is guessed",
    outcome: "unavailable",
    code: "server_error",
    arrange({ as }) {
      as.routes[OWN] = { status: 503 };
    },
    requests: ALL_METADATA,
    times: { [UP_TO_ISSUER[2] ?? ""]: 3 },
    hurry: 1,
  },
  accepted(
    "M20",
    "100,000 characters of scopes in the server metadata",
    "not requested",
    set(
      "scopes_supported",
      Array.from({ length: 10_000 }, (_, nth) => `scope${nth}`),
    ),
  ),
];

/** Metadata of the authorization server (RFC 8414). */
export const serverMetadata: readonly HostileCase[] = [...issuers, ...pkce, ...endpoints, ...documents];
