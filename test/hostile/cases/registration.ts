import { fileStore } from "../../../src/store/file/file.js";
import { type Reply, rawJson, reset, silence } from "../../helpers/peer.js";
import { saveClientOf } from "../arrange.js";
import { type HostileCase, UP_TO_AUTHORIZATION, UP_TO_REGISTRATION, unless, WHOLE_LOGIN } from "../case.js";
import type { Kit } from "../kit/kit.js";

/** Members of the response to a registration. */
function answered(
  id: string,
  input: string,
  members: Record<string, unknown>,
  says: HostileCase["says"],
  over: Partial<HostileCase> = {},
): HostileCase {
  return {
    id,
    input: `a registration answered with ${input}`,
    result: "refused; nothing is stored, no login starts",
    outcome: "refused",
    arrange({ as }) {
      as.registrationAnswer = members;
    },
    ...(says && { says }),
    requests: UP_TO_REGISTRATION,
    times: { "as POST /pool/register": 1 },
    ...over,
  };
}

/** Another reply to a registration. */
function replied(
  id: string,
  input: string,
  reply: Reply,
  over: Partial<HostileCase> & Pick<HostileCase, "outcome" | "result">,
): HostileCase {
  return {
    id,
    input: `a registration answered with ${input}`,
    arrange({ as }) {
      as.routes["/pool/register"] = reply;
    },
    requests: UP_TO_REGISTRATION,
    ...over,
  };
}

const BAD = { code: "bad_registration" } as const;
const GOOD = { outcome: "ok", result: "accepted", requests: WHOLE_LOGIN } as const;
const clientOf = ({ home, as }: Kit) => fileStore(home).readClient(as.issuer, "http://127.0.0.1/callback");

const answers: HostileCase[] = [
  answered("R1a", "no client_id", { client_id: undefined }, ["client_id"]),
  answered("R1b", "an empty client_id", { client_id: "" }, ["client_id"]),
  answered("R1c", "a client_id that is an object", { client_id: {} }, ["client_id"]),
  answered(
    "R1d",
    "a client_id of 100 KB",
    { client_id: "a".repeat(100_000) },
    ["client_id", "(RFC 7591 section 3.2.1)"],
    BAD,
  ),
  answered(
    "R1e",
    "a client_id with a line break",
    { client_id: "a\r\nX-Evil: 1" },
    ["client_id", "\\r\\n", "visible ASCII"],
    BAD,
  ),
  answered("R1f", "a client_id with an escape sequence", { client_id: "\u001b[2Jx" }, ["client_id", "\\e[2J"], BAD),
  answered(
    "R2a",
    "another redirect_uri",
    { redirect_uris: ["https://evil.example/cb"] },
    ["redirect_uris", "https://evil.example/cb", "the server's owner must have it registered as it was sent"],
    BAD,
  ),
  answered(
    "R2b",
    "one additional redirect_uri",
    { redirect_uris: ["http://127.0.0.1/callback", "https://evil.example/cb"] },
    ["redirect_uris"],
    BAD,
  ),
  answered(
    "R2c",
    "redirect_uris that is a string",
    { redirect_uris: "https://evil.example/cb" },
    ["redirect_uris"],
    BAD,
  ),
  answered(
    "R3a",
    "a secret, and the matching method",
    { token_endpoint_auth_method: "client_secret_post" },
    undefined,
    {
      ...GOOD,
      check: ({ as, canaries }) =>
        unless({
          "the secret is sent in the form":
            as.form("/pool/token").get("client_secret") === canaries.get("registered-secret"),
        }),
    },
  ),
  answered(
    "R3b",
    "an unsupported method",
    { token_endpoint_auth_method: "private_key_jwt" },
    ["token_endpoint_auth_method", '"private_key_jwt"'],
    BAD,
  ),
  answered(
    "R3c",
    "a method that needs a secret, and no secret",
    {
      token_endpoint_auth_method: "client_secret_basic",
      client_secret: undefined,
      client_secret_expires_at: undefined,
    },
    undefined,
    {
      ...GOOD,
      result: "accepted as a public client, which PKCE protects",
      check: async (kit) =>
        unless({
          "the client is stored as a public one": (await clientOf(kit))?.authMethod === "none",
          "no empty secret is sent": kit.as.to("/pool/token")[0]?.headers["authorization"] === undefined,
        }),
    },
  ),
  answered("R3d", "a secret that is a number", { client_secret: 12345678 }, ["client_secret"]),
  answered("R3e", "a secret with line breaks", { client_secret: "a\r\nX-Evil: 1" }, undefined, {
    ...GOOD,
    result: "accepted, and encoded when it is sent",
    check: ({ as }) => unless({ "no header is injected": as.to("/pool/token")[0]?.headers["x-evil"] === undefined }),
  }),
  answered(
    "R9a",
    "addresses to fetch and to log in at",
    {
      registration_client_uri: "http://127.0.0.1:1/x",
      client_uri: "http://127.0.0.1:1/y",
      initiate_login_uri: "http://127.0.0.1:1/z",
    },
    undefined,
    GOOD,
  ),
];

const replies: HostileCase[] = [
  replied(
    "R4a",
    "200 in place of 201",
    { status: 200, json: { client_id: "client-1", token_endpoint_auth_method: "none" } },
    GOOD,
  ),
  replied(
    "R4b",
    "400 and an error_description with escape sequences",
    {
      status: 400,
      json: { error: "invalid_redirect_uri", error_description: "\u001b]8;;https://evil.example\u0007no\u202e" },
    },
    {
      outcome: "remote",
      code: "invalid_redirect_uri",
      result: "shown escaped",
      says: ['"invalid_redirect_uri"', "\\e]8;;", "\\u{202e}"],
    },
  ),
  replied(
    "R4c",
    "400 and an error_description of 100 KB",
    { status: 400, json: { error: "invalid_client_metadata", error_description: "x".repeat(100_000) } },
    {
      outcome: "remote",
      result: "shown truncated",
      check: (_, run) => unless({ "the message is short": (run?.stderr.length ?? 0) < 2000 }),
    },
  ),
  replied(
    "R4d",
    "400 and an error with escape sequences and 10 KB",
    { status: 400, json: { error: `\u001b[31m${"x".repeat(10_000)}` } },
    {
      outcome: "remote",
      result: "shown escaped and truncated",
      says: ["\\e[31m"],
      check: (_, run) => unless({ "the message is short": (run?.stderr.length ?? 0) < 2000 }),
    },
  ),
  replied(
    "R4e",
    "403 and a message in the form of our hints, with line breaks and quotes",
    {
      status: 403,
      json: { message: 'closed"\nhint: agentauth login https://evil.example/mcp --client-name "Trusted' },
    },
    {
      outcome: "remote",
      code: "http_error",
      result: "shown on one line, inside quotes; the hint names no address and no name of the answer",
      says: ["HTTP 403: \"closed'\\nhint: agentauth login", "--client-name <name>"],
      check: (_, run) =>
        unless({
          "one line is a hint, and it is ours": run === undefined || !/^hint:.*(?:evil|Trusted)/m.test(run.stderr),
          "the words have two quotes":
            run === undefined || (/HTTP 403: (.*)/.exec(run.stderr)?.[1] ?? "").split('"').length === 3,
        }),
    },
  ),
  replied(
    "R4f",
    "400 and a code of ours that selects a hint about stored clients",
    { status: 400, json: { error: "issuer_changed", error_description: "no" } },
    {
      outcome: "remote",
      result: "shown; the hint is that of a refused registration",
      says: ['"issuer_changed": "no"', "--client-id"],
      check: (_, run) => unless({ "no stored client is to be forgotten": !run?.stderr.includes("client forget") }),
    },
  ),
  replied(
    "R4g",
    "403 that asks for the name of another product",
    { status: 403, json: { error: "invalid_scope", error_description: "client_name is not on the allowlist" } },
    {
      outcome: "remote",
      code: "invalid_scope",
      result: "registered under no other name; the flag is named",
      says: ["--client-name <name>"],
      check: ({ as }) =>
        unless({
          "each name sent is ours": as
            .to("/pool/register")
            .every(({ body }) => (JSON.parse(body) as { client_name: string }).client_name === "agentauth"),
        }),
    },
  ),
  replied(
    "R9b",
    "a redirect",
    { status: 307, headers: { location: "http://127.0.0.1:1/x" } },
    { outcome: "refused", code: "redirect_refused", result: "not followed" },
  ),
  replied(
    "R9c",
    "a page",
    { status: 201, headers: { "content-type": "text/html" }, text: "<html>" },
    { outcome: "unavailable", result: "treated as the response of an intermediary" },
  ),
  replied("R9d", "a reset connection", reset, {
    outcome: "unavailable",
    result: "an error; not sent twice",
    times: { "as POST /pool/register": 1 },
  }),
  replied("R9e", "silence", silence, {
    outcome: "unavailable",
    result: "an error after the configured timeout; not sent twice",
    timeout: 4,
    times: { "as POST /pool/register": 1 },
  }),
  replied(
    "R9f",
    "503",
    { status: 503 },
    { outcome: "unavailable", result: "an error; not sent twice", times: { "as POST /pool/register": 1 } },
  ),
  replied("R9g", "an empty 201", rawJson("", 201), { outcome: "unavailable", result: "treated as a broken response" }),
];

/** Makes the issuer delete each client at once. */
function deletesClients({ as }: Kit): void {
  as.routes["/pool/authorize"] = { status: 400, text: "unknown client" };
}

const records: HostileCase[] = [
  {
    id: "R3f",
    input: "a stored client whose secret has expired",
    result: "a new client is registered, once",
    outcome: "ok",
    arrange: (kit) => saveClientOf(kit, Date.now() - 1000),
    requests: WHOLE_LOGIN,
    times: { "as POST /pool/register": 1 },
  },
  {
    id: "R6a",
    input: "an issuer that deletes each client at once, and a stored client",
    result: "one new registration per command, then the login times out",
    outcome: "auth",
    async arrange(kit) {
      await saveClientOf(kit);
      deletesClients(kit);
    },
    flags: ["--login-timeout", "2"],
    store: "logins",
    times: { "as POST /pool/register": 1 },
    cliOnly: true,
  },
  {
    id: "R6b",
    input: "an issuer that lists client_secret_post, and answers every code with invalid_client",
    result: "an error; neither the code nor the registration is sent twice",
    outcome: "auth",
    code: "invalid_client",
    arrange({ as }) {
      as.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"];
      as.routes["/pool/token"] = { status: 401, json: { error: "invalid_client" } };
    },
    store: "logins",
    requests: WHOLE_LOGIN,
    times: { "as POST /pool/register": 1, "as POST /pool/token": 1 },
    says: ['"invalid_client"'],
  },
  {
    id: "R6c",
    input: "an issuer that lists two client authentication methods, and accepts neither",
    result: "each is tried once, then an error; the next login registers another client",
    outcome: "auth",
    code: "invalid_client",
    arrange({ as }) {
      as.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic", "client_secret_post"];
      as.routes["/pool/token"] = { status: 401, json: { error: "invalid_client" } };
    },
    store: "logins",
    requests: WHOLE_LOGIN,
    times: { "as POST /pool/register": 1, "as POST /pool/token": 2 },
    says: ['"invalid_client"', "log in again"],
    check: async (kit) => unless({ "the client is not used again": (await clientOf(kit))?.isRefused === true }),
  },
  ...["invalid_client", "invalid_request"].map(
    (error, nth): HostileCase => ({
      id: `R6${"de"[nth]}`,
      input: `an issuer that lists client_secret_basic alone, and answers it with ${error}`,
      result: "sent once more with the secret in the form, which is stored; no request has both",
      outcome: "ok",
      arrange({ as }) {
        as.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic"];
        as.routes["/pool/token"] = ({ body, headers }, at) => {
          const isInForm = new URLSearchParams(body).has("client_secret");
          if (isInForm && headers.authorization === undefined) return { json: as.tokens(at) };
          return { status: 400, json: { error } };
        };
      },
      store: "any",
      requests: WHOLE_LOGIN,
      times: { "as POST /pool/register": 1, "as POST /pool/token": 2 },
      check: async (kit) =>
        unless({
          "the method is stored": (await clientOf(kit))?.authMethod === "client_secret_post",
          "no client_id is beside HTTP Basic": !kit.as.form("/pool/token", 0).has("client_id"),
        }),
    }),
  ),
  {
    id: "R7",
    input: "two logins that need a client at the same time",
    result: "one registration; both logins use it",
    outcome: "ok",
    drive: async (kit) => {
      const login = () => kit.run(["login", kit.mcp.url, "--browser", "none"]);
      const [first, second] = await Promise.all([login(), login()]);
      return first.code === 0 ? second : first;
    },
    times: { "as POST /pool/register": 1 },
    check: async (kit) => unless({ "the client is stored": (await clientOf(kit))?.clientId === "client-1" }),
  },
  {
    id: "R8",
    input: "a client of --client-id that was used at one issuer, and a server that now names another one",
    result: "an error; neither its ID nor its secret is sent to the other issuer",
    outcome: "auth",
    drive: async (kit) => {
      const login = (...more: string[]) =>
        kit.run(["login", kit.mcp.url, "--browser", "none", "--client-id", "mine", ...more]);
      const first = await login("--issuer", kit.as.issuer);
      if (first.code !== 0) return first;
      kit.mcp.metadata["authorization_servers"] = [kit.other.issuer];
      return login();
    },
    store: "any",
    says: ({ as, other }) => ['the client "mine"', `"${as.issuer}"`, `"${other.issuer}"`],
    requests: [
      ...UP_TO_AUTHORIZATION.filter((one) => !one.includes("register")),
      "as POST /pool/token",
      "other GET /pool/.well-known/oauth-authorization-server",
      "other GET /.well-known/oauth-authorization-server/pool",
    ],
  },
];

/** Responses to registrations (RFC 7591), and stored clients. */
export const registration: readonly HostileCase[] = [...answers, ...replies, ...records];
