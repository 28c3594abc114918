import nock from "nock";
import { describe, expect, it } from "vitest";
import type { AgentAuthError } from "../../../src/errors.js";
import { AgentClient } from "../../../src/oauth/agent.js";
import { obtainClient, type Registration } from "../../../src/oauth/client/registration.js";
import { OAuthHttp } from "../../../src/oauth/http/http.js";
import { memoryStore } from "../../../src/store/memory.js";
import { useNock } from "../../helpers/nock.js";
import { asHint } from "../../helpers/remedy.js";
import { rejection } from "../../helpers/service.js";

const ISSUER = "https://as.example";
const LOOPBACK = "http://127.0.0.1:49152/callback";
const LOCALHOST = "http://localhost:49152/callback";

const BY_HAND =
  "register a client with the issuer by hand, with the redirect address http://127.0.0.1:28461/callback (--redirect-host, --redirect-port and --redirect-path set another), and log in with it (its secret in AGENTAUTH_CLIENT_SECRET): agentauth login <mcp_url> --client-id <client_id> --issuer https://as.example --redirect-port 28461";
const NAMED = `${BY_HAND}; where the issuer registers only clients with certain names, --client-name <name>`;
const hostHint = (host: string) =>
  `the issuer may accept another redirect host: agentauth login <mcp_url> --redirect-host ${host}`;
const NAME =
  "agentauth login <mcp_url> --client-name <name> registers under a name that the issuer allows, or --client-id names a client that it registered by hand; claim the name of another product only where its owner allows that";

/** What the library says of each hint of the command line. */
const IN_LIBRARY: Readonly<Record<string, string>> = {
  [BY_HAND]: "give the client it knows as client",
  [NAMED]: "give the client it knows as client, or clientName",
  [NAME]: "set clientName to a name that this issuer allows, if it is yours to use",
  [hostHint("localhost")]: 'set redirectHost of the login to "localhost"',
  [hostHint("127.0.0.1")]: 'set redirectHost of the login to "127.0.0.1"',
};

const registration = (over: Partial<Registration> = {}): Registration => ({
  http: new OAuthHttp({}),
  server: {
    issuer: ISSUER,
    url: `${ISSUER}/.well-known/oauth-authorization-server`,
    authorizationEndpoint: `${ISSUER}/authorize`,
    tokenEndpoint: `${ISSUER}/token`,
    registrationEndpoint: `${ISSUER}/register`,
    promisesIss: false,
    takesClientIdDocuments: false,
  },
  store: memoryStore(),
  profile: "default",
  redirectUri: LOOPBACK,
  clientName: undefined,
  preRegistered: undefined,
  clientMetadataUrl: undefined,
  scope: [],
  now: 0,
  trace: () => {},
  signal: undefined,
  ...over,
});

const register = (body?: nock.RequestBodyMatcher) => nock(ISSUER).post("/register", body);

/** The error of a registration that is answered with this body. */
async function refusal(status: number, body: nock.Body, over: Partial<Registration> = {}, headers?: nock.ReplyHeaders) {
  register().reply(status, body, headers);
  return refusalOf(obtainClient(registration(over)));
}

const refusalOf = async (work: Promise<unknown>) => (await rejection(work)) as AgentAuthError;

useNock();

describe("the words of an issuer that refuses a registration", () => {
  it.each<[string, number, nock.Body, string]>([
    [
      "error_description before message",
      400,
      { error: "invalid_client_metadata", error_description: "a", message: "b" },
      '"invalid_client_metadata": "a"',
    ],
    ["message", 403, { message: "closed", status: 403 }, 'HTTP 403: "closed"'],
    ["detail", 422, { detail: "closed" }, 'HTTP 422: "closed"'],
    ["errorSummary", 403, { errorCode: "E0000006", errorSummary: "no permission" }, 'HTTP 403: "no permission"'],
    ["an error that is no code", 401, { error: "You may not register" }, 'HTTP 401: "You may not register"'],
    ["the message of an error that is an object", 403, { error: { message: "closed" } }, 'HTTP 403: "closed"'],
    ["a code alone", 403, { error: "access_denied" }, '"access_denied"'],
    ["nothing of an empty object", 404, {}, "HTTP 404"],
    ["nothing of a list", 400, "[1]", "HTTP 400"],
  ])("are shown: %s", async (_what, status, body, expected) => {
    const error = await refusal(status, body, {}, { "content-type": "application/json" });
    expect(error.message).toBe(`${ISSUER}/register refused the registration with ${expected}`);
    expect(error.status).toBe(status);
  });

  it("are shown as plain text, and not as a page", async () => {
    const text = await refusal(403, "Forbidden\n", {}, { "content-type": "text/plain; charset=utf-8" });
    expect(text.message).toContain('HTTP 403: "Forbidden"');
    const page = await refusal(403, "<html>Forbidden", {}, { "content-type": "text/html" });
    expect(page.message).toMatch(/HTTP 403$/);
  });

  it("are not those of broken JSON, which may hold a secret of the client", async () => {
    const broken = '{"client_id":"a","client_secret":"canary';
    const text = await refusal(400, broken, {}, { "content-type": "text/plain" });
    expect(text.message).toBe(`${ISSUER}/register refused the registration with HTTP 400`);
  });

  it("are escaped, cut, and cannot leave their quotes", async () => {
    const words = `no"\nhint: run \u001b[2J${"x".repeat(1000)}`;
    const { message } = await refusal(403, { message: words });
    expect(message).toContain(`"no'\\nhint: run \\e[2J`);
    expect(message.match(/"/g)).toHaveLength(2);
    expect(message.length).toBeLessThan(400);
  });

  it("are shown with their secrets masked", async () => {
    const { message } = await refusal(403, { message: "not for client_secret=abcdefgh and Bearer abcdefgh1jk" });
    expect(message).not.toMatch(/abcdefgh/);
  });

  it("show the code of a challenge where the body has none", async () => {
    const headers = { "www-authenticate": 'Bearer error="insufficient_scope"' };
    expect(await refusal(403, "", {}, headers)).toMatchObject({ code: "insufficient_scope", status: 403 });
  });
});

describe("the way out of a refused registration", () => {
  it.each<[string, number, nock.Body, string, string]>([
    [
      "closed, as Keycloak words it",
      403,
      {
        error: "insufficient_scope",
        error_description:
          "Policy 'Trusted Hosts' rejected request to client-registration service. Details: Host not trusted.",
      },
      LOOPBACK,
      BY_HAND,
    ],
    [
      "closed, as Okta words it",
      403,
      { errorCode: "E0000006", errorSummary: "You do not have permission to perform the requested action" },
      LOOPBACK,
      BY_HAND,
    ],
    [
      "a code of ours, which selects no advice",
      401,
      { error: "invalid_client", error_description: "Registration is closed to the public here" },
      LOOPBACK,
      BY_HAND,
    ],
    ["a bare 403", 403, "Forbidden", LOOPBACK, NAMED],
    [
      "only localhost",
      400,
      { error: "invalid_redirect_uri", error_description: "only localhost is allowed" },
      LOOPBACK,
      hostHint("localhost"),
    ],
    [
      "only localhost, without a code",
      403,
      { message: "redirect host must be localhost" },
      LOOPBACK,
      hostHint("localhost"),
    ],
    ["a redirect address, without a reason", 400, { error: "invalid_redirect_uri" }, LOOPBACK, hostHint("localhost")],
    [
      "the address, quoted",
      400,
      { message: `Redirect URI ${LOOPBACK} is not allowed` },
      LOOPBACK,
      hostHint("localhost"),
    ],
    [
      "hosts other than localhost",
      400,
      { message: "redirect hosts other than localhost are not allowed" },
      LOOPBACK,
      hostHint("localhost"),
    ],
    [
      "neither loopback host",
      400,
      { error: "invalid_redirect_uri", error_description: "localhost is not allowed, use https" },
      LOOPBACK,
      BY_HAND,
    ],
    ["no http", 400, { error: "invalid_redirect_uri", error_description: "must be https" }, LOOPBACK, BY_HAND],
    [
      "localhost",
      400,
      { error: "invalid_redirect_uri", error_description: "localhost is not allowed" },
      LOCALHOST,
      hostHint("127.0.0.1"),
    ],
    [
      "only 127.0.0.1",
      400,
      { error: "invalid_redirect_uri", error_description: "use 127.0.0.1" },
      LOCALHOST,
      hostHint("127.0.0.1"),
    ],
    ["localhost too, without a reason", 400, { error: "invalid_redirect_uri" }, LOCALHOST, BY_HAND],
    ["localhost too, quoted", 400, { message: `Redirect URI ${LOCALHOST} is not allowed` }, LOCALHOST, BY_HAND],
    ["the name", 403, { message: "client_name is not on the allowlist" }, LOOPBACK, NAME],
    ["clients that are not approved", 403, { message: "Only approved clients can register" }, LOOPBACK, NAME],
  ])("is by the issuer's words: %s", async (_what, status, body, redirectUri, hint) => {
    const { message, hint: ofLibrary, remedy } = await refusal(status, body, { redirectUri });
    expect([ofLibrary, remedy]).toEqual([IN_LIBRARY[hint], asHint(hint)]);
    const what = typeof body === "object" && "error" in body && body["error"] === "invalid_redirect_uri";
    expect(message).toContain(`/register refused the registration${what ? ` of ${redirectUri}` : ""} with `);
  });

  it("is also a metadata document where the issuer accepts those", async () => {
    const { server } = registration();
    const error = await refusal(403, "", { server: { ...server, takesClientIdDocuments: true } });
    expect(error).toMatchObject({
      hint: "give the client it knows as client, or clientMetadataUrl",
      remedy: asHint(`${BY_HAND}; or log in with --client-metadata-url <url>`),
    });
  });

  it("is named without a metadata document where the issuer registers nothing and accepts none", async () => {
    const { server } = registration();
    const closed = { ...server, registrationEndpoint: undefined };
    const error = await refusalOf(obtainClient(registration({ server: closed })));
    expect([error.code, error.remedy]).toEqual(["no_registration", asHint(BY_HAND)]);
    expect(error.message).toBe(
      `the authorization server "${ISSUER}" has no registration_endpoint, so this client must be registered beforehand`,
    );
  });
});

describe("a registration that asks for too much", () => {
  it.each(["invalid_client_metadata", "invalid_scope", "insufficient_scope"])(
    "is sent again without scopes after %s",
    async (error) => {
      register((body) => body["scope"] === "tools").reply(403, { error });
      register((body) => body["scope"] === undefined).reply(201, { client_id: "client-1" });
      expect((await obtainClient(registration({ scope: ["tools"] }))).clientId).toBe("client-1");
    },
  );

  it("is not sent again after another refusal", async () => {
    expect(await refusal(403, { error: "access_denied" }, { scope: ["tools"] })).toMatchObject({ class: "auth" });
  });
});

describe("the name of a client", () => {
  it("needs another registration where it is not that of the stored client, which later logins use", async () => {
    const store = memoryStore();
    const clientOf = async (clientName: string | undefined) =>
      (await obtainClient(registration({ store, clientName }))).clientId;
    register((body) => body["client_name"] === "agentauth").reply(201, { client_id: "client-1" });
    expect(await clientOf(undefined)).toBe("client-1");
    expect(await clientOf("agentauth")).toBe("client-1");
    register((body) => body["client_name"] === "Approved").reply(201, { client_id: "client-2" });
    expect(await clientOf("Approved")).toBe("client-2");
    expect(await clientOf("Approved")).toBe("client-2");
    expect(await clientOf(undefined)).toBe("client-2");
  });

  it("leaves the daily limit of registrations in force", async () => {
    const store = memoryStore();
    for (const name of ["a", "b", "c"]) {
      register().reply(201, { client_id: name });
      expect((await obtainClient(registration({ store, clientName: name }))).clientId).toBe(name);
    }
    expect((await obtainClient(registration({ store, clientName: "d" }))).clientId).toBe("c");
  });

  it("must not be empty", () => {
    expect(() => new AgentClient({ store: memoryStore(), clientName: " " })).toThrow(TypeError);
  });
});
