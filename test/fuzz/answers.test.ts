import { describe, expect, it } from "vitest";
import { policyFor } from "../../src/http/address-class.js";
import { obtainClient } from "../../src/oauth/client/registration.js";
import { findResourceMetadata } from "../../src/oauth/discovery/resource-metadata.js";
import { checkServerMetadata, findMetadata } from "../../src/oauth/discovery/server-metadata.js";
import { OAuthHttp } from "../../src/oauth/http/http.js";
import { checkCallback, type PreparedLogin } from "../../src/oauth/login/authorization.js";
import { coversServer } from "../../src/oauth/model/resource.js";
import { introspect } from "../../src/oauth/token/introspection.js";
import { exchangeCode, refreshTokens } from "../../src/oauth/token/token.js";
import { Secret } from "../../src/redact.js";
import { memoryStore } from "../../src/store/memory.js";
import { madeClient, madeGrant } from "../helpers/grant.js";
import { serverMetadata } from "../helpers/issuer.js";
import { fc } from "../helpers/properties.js";
import { SampleService } from "../helpers/service.js";
import { CANARY, documentLike, SETTINGS, triedLater } from "./inputs.js";

const TYPES = fc.oneof(
  { weight: 5, arbitrary: fc.constant("application/json") },
  { weight: 1, arbitrary: fc.constantFrom("text/html", "application/x-www-form-urlencoded", "application/json;x", "") },
);
const STATUSES = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(200, 200, 201, 400) },
  { weight: 1, arbitrary: fc.integer({ min: 200, max: 599 }).filter((status) => ![204, 205, 304].includes(status)) },
);

/** An answer with a body made from a valid one. */
function answers(valid: Readonly<Record<string, unknown>>) {
  return fc.record({ text: documentLike(valid), type: TYPES, status: STATUSES });
}

type Answer = { text: string; type: string; status: number };

/** The requests of the flow, all answered the same. */
function answering({ text, type, status }: Answer): OAuthHttp {
  const headers: Record<string, string> = type === "" ? {} : { "content-type": type };
  const fetch = async () => new Response(text, { status, headers });
  return new OAuthHttp({ fetch, maxRetries: 0, timeoutMs: 60_000 });
}

const POLICY = {
  bounds: policyFor("public", new Set<string>()),
  crossOriginMetadata: false,
  strictResource: false,
  missingPkceMetadata: false,
  sameOriginEndpoints: false,
};
const details = { policy: POLICY, trace: () => undefined, signal: undefined };
const MCP = "https://mcp.example/mcp";
const ISSUER = "https://as.example/pool";

function checkFar(value: string | undefined): void {
  if (value === undefined) return;
  const { protocol, username, hash, hostname } = new URL(value);
  expect([protocol, username, hash]).toEqual(["https:", "", ""]);
  expect(hostname).not.toMatch(/^(?:127\.|10\.|169\.254\.|localhost|\[)/);
}

describe("a metadata document", () => {
  it("of a resource covers the server that was asked, and names only issuers that are far", async () => {
    const valid = {
      resource: MCP,
      authorization_servers: [ISSUER],
      scopes_supported: ["tools"],
      bearer_methods_supported: ["header"],
    };
    await fc.assert(
      fc.asyncProperty(answers(valid), async (answer) => {
        const http = answering(answer);
        const outcome = await triedLater(() => findResourceMetadata({ ...details, http, mcpUrl: MCP, named: [] }));
        const found = "value" in outcome ? outcome.value : undefined;
        if (found === undefined) return;
        expect(coversServer(new URL(found.resource), new URL(MCP), false)).toBe(true);
        for (const issuer of found.authorizationServers) checkFar(issuer);
      }),
      SETTINGS,
    );
  });

  it("of an issuer is its own, does PKCE, and has addresses that are far", async () => {
    const { authorizationEndpoint, tokenEndpoint } = serverMetadata();
    const valid = {
      issuer: ISSUER,
      authorization_endpoint: authorizationEndpoint,
      token_endpoint: tokenEndpoint,
      registration_endpoint: `${ISSUER}/register`,
      end_session_endpoint: `${ISSUER}/end`,
      code_challenge_methods_supported: ["S256"],
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code"],
      scopes_supported: ["tools"],
    };
    await fc.assert(
      fc.asyncProperty(answers(valid), async (answer) => {
        const http = answering(answer);
        const outcome = await triedLater(() => findMetadata({ ...details, http, issuer: ISSUER }, checkServerMetadata));
        if (!("value" in outcome)) return;
        const { value } = outcome;
        expect(value.issuer).toBe(ISSUER);
        for (const url of [value.authorizationEndpoint, value.tokenEndpoint, value.registrationEndpoint]) checkFar(url);
        for (const url of [value.endSessionEndpoint, value.introspectionEndpoint, value.jwksUri]) checkFar(url);
        expect(JSON.parse(answer.text)).toMatchObject({ code_challenge_methods_supported: expect.anything() });
      }),
      SETTINGS,
    );
  });
});

describe("a registration answer", () => {
  it("makes a client with a name that can be sent, for the address that was asked for", async () => {
    const redirectUri = "http://127.0.0.1:49152/callback";
    const valid = {
      client_id: "client-1",
      client_secret: CANARY,
      client_secret_expires_at: 0,
      redirect_uris: [redirectUri],
      token_endpoint_auth_method: "client_secret_basic",
    };
    await fc.assert(
      fc.asyncProperty(answers(valid), async (answer) => {
        const outcome = await triedLater(() =>
          obtainClient({
            http: answering(answer),
            server: serverMetadata(),
            store: memoryStore(),
            profile: "default",
            redirectUri,
            clientName: "test",
            preRegistered: undefined,
            clientMetadataUrl: undefined,
            scope: [],
            now: 1_700_000_000_000,
            trace: () => undefined,
            signal: undefined,
          }),
        );
        if (!("value" in outcome)) return;
        expect(outcome.value.clientId).toMatch(/^[\x20-\x7e]{1,2048}$/);
        expect([outcome.value.redirectUri, outcome.value.issuer]).toEqual([redirectUri, serverMetadata().issuer]);
      }),
      SETTINGS,
    );
  });
});

describe("an answer of the token endpoint", () => {
  const valid = {
    access_token: `${CANARY}-access`,
    refresh_token: `${CANARY}-refresh`,
    token_type: "Bearer",
    expires_in: 3600,
    scope: "tools",
  };
  const sent = new Secret(`${CANARY}-sent`);
  const client = madeClient({ clientSecret: sent });
  const tokens = { ...madeGrant().tokens, accessToken: sent, refreshToken: sent };
  const grant = madeGrant({ client, tokens });
  const call = (answer: Answer) => ({
    http: answering(answer),
    clock: { epoch: () => 1_700_000_000_000 },
    issuer: ISSUER,
    tokenEndpoint: `${ISSUER}/token`,
    client,
    signal: undefined,
  });
  const code = {
    parameters: checkCallback(
      { issuer: { issuer: ISSUER, promisesIss: false }, client, pending: { state: "s" } } as PreparedLogin,
      new URLSearchParams({ code: `${CANARY}-code`, state: "s" }),
    ),
    redirectUri: "http://127.0.0.1/callback",
    verifier: new Secret(`${CANARY}-verifier-that-is-at-least-43-characters-long`),
    resource: MCP,
  };

  it.each([
    ["refresh", async (answer: Answer) => (await refreshTokens(call(answer), grant)).response],
    ["code", (answer: Answer) => exchangeCode(call(answer), code)],
  ] as const)("to a %s is a token that a header can carry, or an error without any secret", async (_what, ask) => {
    await fc.assert(
      fc.asyncProperty(answers(valid), async (answer) => {
        const outcome = await triedLater(() => ask(answer));
        if (!("value" in outcome)) return;
        const { accessToken, refreshToken, expiresIn } = outcome.value;
        for (const token of [accessToken, refreshToken ?? "x"]) expect(token).toMatch(/^[\x21-\x7e]{1,65536}$/);
        expect(expiresIn === undefined || expiresIn >= 0).toBe(true);
      }),
      SETTINGS,
    );
  });

  it("to an introspection says yes or no", async () => {
    const known = { active: true, scope: "tools", sub: "s", exp: 1_800_000_000 };
    await fc.assert(
      fc.asyncProperty(answers(known), async (answer) => {
        const outcome = await triedLater(() => introspect(grant, answering(answer), undefined));
        if ("value" in outcome) expect(typeof outcome.value.active).toBe("boolean");
      }),
      SETTINGS,
    );
  });
});

describe("a page of a list", () => {
  it("is the whole list or an error, and never an endless one", async () => {
    const made = new SampleService(5, 5);
    const { items: summaries, pagination } = made.page(0, 5);
    const page = { status: "success", summaries, pagination, sorting: { field: "id", direction: "asc" } };
    const failure = { status: "error", code: "bad_request", message: "no" };
    await fc.assert(
      fc.asyncProperty(fc.oneof(answers(page), answers(failure)), async ({ text, type, status }) => {
        const headers: Record<string, string> = type === "" ? {} : { "content-type": type };
        const service = made.client({ token: CANARY, fetch: async () => new Response(text, { status, headers }) });
        const outcome = await triedLater(() => service.devices.list({ pool_id: "p" }, { maxPages: 20 }).toArray());
        if ("value" in outcome) expect(Array.isArray(outcome.value)).toBe(true);
      }),
      SETTINGS,
    );
  });
});
