import type { Grant } from "../../../src/oauth/model/grant.js";
import { Secret } from "../../../src/redact.js";
import { fileStore } from "../../../src/store/file/file.js";
import { endless, flood, type Reply, type Route, rawBytes, rawJson, reset, silence } from "../../helpers/peer.js";
import { type HostileCase, unless, WHOLE_LOGIN } from "../case.js";
import type { Kit } from "../kit/kit.js";

const TOKEN = "/pool/token";
const ONCE = { "as POST /pool/token": 1 } as const;

/** Members of the response to a code. */
function answered(
  id: string,
  input: string,
  members: Record<string, unknown>,
  says: HostileCase["says"],
  over: Partial<HostileCase> = {},
): HostileCase {
  return {
    id,
    input: `a token response with ${input}`,
    result: "refused; nothing is stored",
    outcome: "refused",
    arrange({ as }) {
      as.tokenAnswer = members;
    },
    ...(says && { says }),
    requests: WHOLE_LOGIN,
    times: ONCE,
    store: "logins",
    ...over,
  };
}

/** Another reply to a code, which is never sent twice. */
function replied(
  id: string,
  input: string,
  route: Route,
  over: Partial<HostileCase> & Pick<HostileCase, "outcome" | "result">,
): HostileCase {
  return {
    id,
    input: `a code answered with ${input}`,
    arrange({ as }) {
      as.routes[TOKEN] = route;
    },
    requests: WHOLE_LOGIN,
    times: ONCE,
    store: "logins",
    ...over,
  };
}

const accepted = (
  id: string,
  input: string,
  members: Record<string, unknown>,
  result: string,
  check: (kit: Kit) => Promise<Record<string, boolean>> = async () => ({}),
  over: Partial<HostileCase> = {},
) =>
  answered(id, input, members, undefined, {
    outcome: "ok",
    result,
    store: "any",
    check: async (kit) => unless(await check(kit)),
    ...over,
  });

function jwt(header: Record<string, unknown>, claims: Record<string, unknown>): string {
  return [header, claims, {}].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
}

/** A response whose id token is not stored, and is not the account of the login. */
const ignored = (id: string, input: string, idToken: (kit: Kit) => string, flags: readonly string[] = []) =>
  answered(id, input, {}, undefined, {
    outcome: "ok",
    result: "the login succeeds without it; --verbose reports that",
    store: "any",
    arrange: (kit) => {
      kit.as.tokenAnswer = { id_token: idToken(kit) };
    },
    flags: ["--verbose", ...flags],
    ...(flags.length === 0 && { options: {} }),
    check: async (kit, run) => {
      const grant = (await fileStore(kit.home).list())[0];
      return unless({
        "it is not stored": grant !== undefined && grant.tokens.idToken === undefined,
        "the login has no account": grant?.account === undefined,
        "the output reports it": run === undefined || run.stderr.includes("the id_token of the response is ignored"),
      });
    },
  });
const tokensOf = async ({ home }: Kit) => (await fileStore(home).list())[0]?.tokens;
const YEAR_MS = 366 * 24 * 3600 * 1000;

const answers: HostileCase[] = [
  answered("T1a", "no access_token", { access_token: undefined }, ["access_token"]),
  answered("T1b", "an empty access_token", { access_token: "" }, ["access_token"]),
  answered("T1c", "an access_token that is a number", { access_token: 12345678 }, ["access_token"]),
  answered(
    "T1d",
    "an access_token of 200 KB",
    { access_token: "a".repeat(200_000) },
    ["access_token", "at most 65536", "RFC 6749 appendix A"],
    { code: "bad_token_answer" },
  ),
  answered(
    "T1e",
    "an access_token with a line break",
    { access_token: "canary\r\nX-Evil: 1" },
    ["access_token", "(not shown)"],
    { code: "bad_token_answer" },
  ),
  answered("T1f", "an access_token beyond ASCII", { access_token: "tok\u00e9n-\ud83d\ude00" }, ["access_token"], {
    code: "bad_token_answer",
  }),
  answered("T1g", "an access_token with a space", { access_token: "two words" }, ["access_token"], {
    code: "bad_token_answer",
  }),
  answered("T2a", "no token_type", { token_type: undefined }, ["token_type"]),
  answered("T2b", 'token_type "mac"', { token_type: "mac" }, ["token_type", "--accept-token-type mac"]),
  answered("T2c", 'token_type "DPoP", which was not requested', { token_type: "DPoP" }, ["token_type"]),
  ...["$(touch pwned)", "\u001b[2Juser", "user --scope admin", "x".repeat(5000)].map((type, nth) =>
    answered(
      `T2${"efgh"[nth]}`,
      `token_type ${nth < 3 ? JSON.stringify(type) : "of 5,000 characters"}, with --accept-token-type user`,
      { token_type: type },
      ["token_type"],
      {
        flags: ["--accept-token-type", "user"],
        options: { policy: { acceptTokenType: "user" } },
        check: (_, run) => unless({ "no command is suggested": !run?.stderr.includes("hint:") }),
      },
    ),
  ),
  answered(
    "T2i",
    'token_type "DPoP", which was not requested, with --accept-token-type user',
    { token_type: "DPoP" },
    ["token_type"],
    {
      flags: ["--accept-token-type", "user"],
      options: { policy: { acceptTokenType: "user" } },
    },
  ),
  answered("T2j", 'token_type "user"', { token_type: "user" }, ["token_type", "--accept-token-type user"]),
  accepted(
    "T2k",
    'token_type "user", with --accept-token-type user',
    { token_type: "user" },
    "used as a bearer token, and stored as an exception of this login",
    async ({ home }) => ({ "it is stored": (await fileStore(home).list())[0]?.acceptedTokenType === "user" }),
    { flags: ["--accept-token-type", "user"], options: { policy: { acceptTokenType: "user" } } },
  ),
  accepted("T2d", 'token_type "bEaReR"', { token_type: "bEaReR" }, "accepted: it is case-insensitive"),
  accepted("T3a", 'expires_in "3600", a string', { expires_in: "3600" }, "accepted as a number", async (kit) => ({
    "the expiry is stored": (await tokensOf(kit))?.expiresAt !== undefined,
  })),
  ...[-5, true, "NaN", "\u001b[5m1"].map((life, nth) =>
    accepted(
      `T3${"bdef"[nth]}`,
      `expires_in ${JSON.stringify(life)}`,
      { expires_in: life },
      "accepted as an unknown life",
      async (kit) => ({ "no expiry is stored": (await tokensOf(kit))?.expiresAt === undefined }),
    ),
  ),
  accepted("T3c", "expires_in 0", { expires_in: 0 }, "stored as expired, for one use", async (kit) => ({
    "it has expired": ((await tokensOf(kit))?.expiresAt ?? Number.NaN) <= Date.now(),
  })),
  accepted("T3g", "expires_in 1e300", { expires_in: 1e300 }, "limited to a year", async (kit) => ({
    "it expires within a year": ((await tokensOf(kit))?.expiresAt ?? Number.NaN) < Date.now() + YEAR_MS,
  })),
  accepted("T4", "no expires_in", { expires_in: undefined }, "used until the server rejects it", async (kit) => ({
    "no expiry is stored": (await tokensOf(kit))?.expiresAt === undefined,
  })),
  accepted(
    "T5a",
    "more scopes than requested",
    { scope: "tools admin" },
    "stored as the granted scope",
    async (kit) => ({
      "the scope is the granted one": (await tokensOf(kit))?.scope === "tools admin",
    }),
  ),
  accepted(
    "T5b",
    "a scope of 100 KB with escape sequences in it",
    { scope: `\u001b[2J${"s ".repeat(50_000)}` },
    "stored, and shown escaped only",
  ),
  accepted("T5c", "a scope that is a list of lists", { scope: [["tools"]] }, "accepted as none", async (kit) => ({
    "no scope is stored": (await tokensOf(kit))?.scope === undefined,
  })),
  ...[{}, "canary\nx"].map((token, nth) =>
    accepted(
      `T14${"ab"[nth]}`,
      `the refresh_token ${JSON.stringify(token)}`,
      { refresh_token: token },
      "accepted as none",
      async (kit) => ({ "none is stored": (await tokensOf(kit))?.refreshToken === undefined }),
    ),
  ),
  accepted("T14c", "an empty refresh_token", { refresh_token: "" }, "accepted as none", async (kit) => ({
    "none is stored": (await tokensOf(kit))?.refreshToken === undefined,
  })),
  ignored("T14d", "an id_token that is not a JWT", () => "not-a-jwt"),
  ignored("T14e", "an id_token without a signature, of another issuer", () =>
    jwt({ alg: "none" }, { iss: "https://evil.example", aud: "client-1" }),
  ),
  ignored("T14f", "an id_token of another issuer", () =>
    jwt({ alg: "RS256" }, { iss: "https://evil.example", aud: "client-1", sub: "admin", email: "admin@evil.example" }),
  ),
  ignored("T14g", "an id_token for another client", ({ as }) =>
    jwt({ alg: "RS256" }, { iss: as.issuer, aud: "another" }),
  ),
  ignored(
    "T14h",
    "an id_token with another nonce than the request's",
    ({ as }) => jwt({ alg: "RS256" }, { iss: as.issuer, aud: "client-1", nonce: "of another login" }),
    ["--scope", "openid"],
  ),
];

/** Repeats the whole request in an error. */
const echo: Route = ({ body, headers }) => ({
  status: 400,
  json: { error: "invalid_request", error_description: `you sent ${body} with ${String(headers.authorization)}` },
});

const page: Reply = { headers: { "content-type": "text/html" }, text: "<html>\u001b[31m" };
const EXPIRED = {
  outcome: "auth",
  result: "an error that asks for a new login; the code is not sent twice",
  says: ["the login cannot be continued"],
} as const;

const replies: HostileCase[] = [
  replied(
    "T7a",
    "an error in a 200",
    { json: { error: "invalid_grant" } },
    { outcome: "auth", code: "invalid_grant", result: "treated as an error" },
  ),
  replied("T7b", "a page in a 200", page, {
    outcome: "unavailable",
    result: "treated as the response of an intermediary",
  }),
  replied(
    "T7c",
    "a 500 with JSON",
    { status: 500, json: { error: "server_error" } },
    { outcome: "unavailable", result: "an error" },
  ),
  replied("T7d", "an empty 200", rawJson(""), { outcome: "unavailable", result: "treated as a broken response" }),
  replied("T7e", "truncated JSON", rawJson('{"access_token":"canary-cut'), {
    outcome: "unavailable",
    result: "treated as a broken response; the code is not sent twice",
    check: (_, run) => unless({ "the content is not shown": !run?.stderr.includes("canary-cut") }),
  }),
  replied(
    "T7f",
    "a connection reset in the middle of the body",
    rawBytes(
      'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{"access_token":"canary-cut',
    ),
    { ...EXPIRED },
  ),
  replied("T7g", "a connection reset before the response", reset, { ...EXPIRED, code: "connection_reset" }),
  replied(
    "T8",
    "invalid_grant and a description with escape sequences",
    { status: 400, json: { error: "invalid_grant", error_description: "\u001b]0;owned\u0007\u202e" } },
    {
      outcome: "auth",
      code: "invalid_grant",
      result: "an error that shows it escaped",
      says: ["\\e]0;owned\\u{7}\\u{202e}"],
    },
  ),
  replied("T9", "silence", silence, { ...EXPIRED, code: "timeout", timeout: 4 }),
  replied(
    "T10a",
    "a redirect to another origin",
    ({ headers }) => ({ status: 307, headers: { location: `http://${headers.host}/elsewhere` } }),
    { outcome: "refused", code: "redirect_refused", result: "not followed: the code is sent once, to one address" },
  ),
  replied(
    "T10b",
    "401 and a challenge with a resource_metadata",
    { status: 401, headers: { "www-authenticate": 'Bearer resource_metadata="https://evil.example/x"' }, text: "" },
    { outcome: "auth", result: "an error; the challenge is not followed" },
  ),
  replied("T10c", "a body of 600 MB", flood("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n", 600e6), {
    outcome: "refused",
    code: "body_too_large",
    result: "read up to 1 MB, then refused",
  }),
  replied(
    "T10d",
    "a body of 4 bytes a second",
    endless("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n{", "    ", 1000),
    { ...EXPIRED, timeout: 8, hurry: 3 },
  ),
  replied(
    "T10e",
    "429 and Retry-After: 86400",
    { status: 429, headers: { "retry-after": "86400" } },
    { outcome: "unavailable", result: "an error at once" },
  ),
  replied(
    "T11a",
    "Set-Cookie, and tokens",
    () => ({
      headers: { "set-cookie": "session=canary-cookie; Domain=127.0.0.1" },
      json: { access_token: "plain-access-token", token_type: "Bearer" },
    }),
    { outcome: "ok", result: "the cookie is not stored", store: "any" },
  ),
  replied("T15a", "an error that repeats the code, the verifier and the client's secret", echo, {
    outcome: "remote",
    result: "shown with all three masked, after a try of the other client authentication method",
    code: "invalid_request",
    times: { "as POST /pool/token": 2 },
    says: ["********"],
  }),
  replied(
    "T15b",
    "an error whose name is the code that was sent",
    ({ body }) => ({ status: 400, json: { error: new URLSearchParams(body).get("code") } }),
    { outcome: "remote", result: "shown masked", says: ["********"] },
  ),
];

/** A logout at a hostile issuer. */
function loggedOut(id: string, input: string, arrange: (kit: Kit) => unknown, over: Partial<HostileCase>): HostileCase {
  return {
    id,
    input,
    result: "the login is deleted first, then revoked if the issuer answers",
    outcome: "ok",
    async arrange(kit) {
      await kit.saveLogin();
      await arrange(kit);
    },
    command: ({ mcp }) => ["logout", mcp.url],
    check: async ({ home }) => unless({ "no login is stored": (await fileStore(home).list()).length === 0 }),
    ...over,
  };
}

/** A logout at an issuer that cannot revoke a token. */
function loggedOutUnrevoked(
  id: string,
  input: string,
  tokens: Partial<Grant["tokens"]>,
  over: Partial<HostileCase> & { says?: string[] },
): HostileCase {
  return {
    ...loggedOut(id, input, () => undefined, over),
    result: "the login is deleted; nothing is said to be revoked, and the end of the token is named",
    async arrange(kit) {
      const { issuer } = kit.as;
      const token = `${issuer}/token`;
      const endSession = `${issuer}/end_session`;
      const endpoints = { token, introspection: undefined, revocation: undefined, endSession, jwks: undefined };
      await kit.saveLogin({ endpoints }, tokens);
      kit.as.routes["/pool/end_session"] = { status: 500, headers: { "content-type": "text/html" }, text: "<html>" };
    },
    command: ({ mcp }) => ["logout", mcp.url, "--json"],
    says: [...(over.says ?? []), /no revocation endpoint: the access token stays valid until \d{4}-/],
    check: async ({ home, runs }) =>
      unless({
        "no login is stored": (await fileStore(home).list()).length === 0,
        "nothing is said to be revoked": JSON.parse(runs.at(-1)?.stdout ?? "[]")[0]?.revoked === null,
      }),
  };
}

const ends: HostileCase[] = [
  loggedOut(
    "T13a",
    "a revocation endpoint that answers 503",
    ({ as }) => {
      as.routes["/pool/revoke"] = { status: 503 };
    },
    { outcome: "ok", requests: ["as POST /pool/revoke"] },
  ),
  loggedOut(
    "T13b",
    "a revocation endpoint that never answers",
    ({ as }) => {
      as.routes["/pool/revoke"] = silence;
    },
    { outcome: "ok", requests: ["as POST /pool/revoke"], says: ["5 s"], hurry: 3 },
  ),
  loggedOut(
    "T13c",
    "a revocation endpoint that repeats the token",
    ({ as }) => {
      as.routes["/pool/revoke"] = echo;
    },
    { outcome: "ok", requests: ["as POST /pool/revoke"] },
  ),
  loggedOut(
    "T13d",
    "a revocation endpoint that redirects to another origin",
    ({ as, elsewhere }) => {
      as.routes["/pool/revoke"] = { status: 307, headers: { location: `${elsewhere.origin}/x` } };
    },
    { outcome: "ok", requests: ["as POST /pool/revoke"] },
  ),
  loggedOutUnrevoked(
    "T13e",
    "an issuer with an end_session endpoint alone, which answers 500 with a page",
    {},
    { requests: ["as GET /pool/end_session"], says: ["warning: ", "its session was not ended"] },
  ),
  loggedOutUnrevoked(
    "Y7",
    "an issuer with an end_session endpoint alone, and a login without an ID token",
    { idToken: undefined },
    { requests: [] },
  ),
  {
    id: "T16",
    input: "an introspection response with escape sequences and the API token in it",
    result: "printed escaped, with the token masked",
    outcome: "ok",
    arrange: async (kit) => {
      await kit.saveLogin({}, { accessToken: new Secret(kit.canaries.get("access-token")) });
      kit.as.routes["/pool/introspect"] = {
        json: { active: true, username: "\u001b[2J\u202e", scope: "\u0007", token: kit.canaries.get("access-token") },
      };
    },
    command: ({ mcp }) => ["introspect", mcp.url, "-o", "table"],
    requests: ["as POST /pool/introspect"],
  },
];

/** Responses of the token endpoint to a code, and of the endpoints of a logout (RFC 6749, RFC 7009). */
export const token: readonly HostileCase[] = [...answers, ...replies, ...ends];
