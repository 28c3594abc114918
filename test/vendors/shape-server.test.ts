import { describe, expect, it } from "vitest";
import type { ServerShape } from "./shape.js";
import { startLike } from "./shape-server.js";

const SMALL = { accounts: 1, domains: 1, pools: 1, devices: 0 };

const OWN: ServerShape = {
  id: "own",
  title: "Own",
  about: "A shape that is not in the catalogue.",
  source: undefined,
  date: undefined,
  byDefault: true,
  options: {},
  server: "https://mcp.example/mcp",
  documents: {
    "https://mcp.example/.well-known/oauth-protected-resource/mcp": {
      resource: "https://mcp.example/mcp",
      authorization_servers: ["https://auth.example"],
      scopes_supported: ["https://auth.example/read"],
    },
    "https://auth.example/.well-known/oauth-authorization-server": {
      issuer: "https://auth.example",
      authorization_endpoint: "https://auth.example/authorize",
      token_endpoint: "https://auth.example/token",
      registration_endpoint: "https://auth.example/register",
    },
  },
};

const json = async <T = Record<string, string>>(url: string, init?: RequestInit) =>
  (await (await fetch(url, init)).json()) as T;
const METADATA = "/.well-known/oauth-authorization-server";

describe("a sandbox of a shape", () => {
  it("has an origin for each that is recorded, and only the documents of the shape", async () => {
    await using sandbox = await startLike(OWN, SMALL);
    expect(sandbox.mcpUrl).toBe(`${sandbox.origin}/mcp`);
    const challenge = (await fetch(sandbox.mcpUrl, { method: "POST" })).headers.get("www-authenticate");
    const document = `${sandbox.origin}/.well-known/oauth-protected-resource/mcp`;
    expect(challenge).toBe(`Bearer resource_metadata="${document}"`);
    const resource = await json<{ authorization_servers: string[] }>(document);
    const [issuer = ""] = resource.authorization_servers;
    expect(new URL(issuer).port).not.toBe(new URL(sandbox.origin).port);
    expect(resource).toEqual({
      resource: sandbox.mcpUrl,
      authorization_servers: [issuer],
      scopes_supported: [`${issuer}/read`],
    });
    expect(await json(`${issuer}${METADATA}`)).toMatchObject({ issuer, token_endpoint: `${issuer}/token` });
    expect((await fetch(`${sandbox.origin}${METADATA}`)).status).toBe(404);
    expect((await fetch(`${sandbox.mcpUrl}/pool`)).status).toBe(404);
    expect((await fetch(`${issuer}/token`)).status).toBe(405);
    const authorization = `Basic ${btoa("%zz:secret")}`;
    expect((await fetch(`${issuer}/token`, { method: "POST", headers: { authorization } })).status).toBe(401);
  });

  it("closes all of its origins, and refuses requests for other hosts at each", async () => {
    const sandbox = await startLike(OWN, SMALL);
    const documents = Object.keys(sandbox.like.documents);
    for (const url of documents) {
      expect((await fetch(url)).status).toBe(200);
      expect((await fetch(url, { headers: { origin: "https://evil.example" } })).status).toBe(403);
    }
    await sandbox.close();
    for (const url of documents) await expect(fetch(url)).rejects.toThrow();
  });

  it("has faults and a request log", async () => {
    await using sandbox = await startLike(OWN, SMALL);
    sandbox.faults.add({ kind: "status", status: 503, path: "metadata" });
    const [, metadata = ""] = Object.keys(sandbox.like.documents);
    expect((await fetch(metadata)).status).toBe(503);
    expect((await fetch(metadata)).status).toBe(200);
    expect(sandbox.requests.map(({ path, fault }) => [path, fault])).toEqual([
      [METADATA, "status"],
      [METADATA, undefined],
    ]);
  });

  it("needs no token where the shape is open, and takes only its protocol versions", async () => {
    await using sandbox = await startLike({ ...OWN, open: true, protocols: ["2025-06-18"] }, SMALL);
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const post = (protocolVersion: string, more = {}) => {
      const params = { protocolVersion, capabilities: {}, clientInfo: { name: "test", version: "1" } };
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
      return fetch(sandbox.mcpUrl, { method: "POST", headers: { ...headers, ...more }, body });
    };
    expect((await post("2025-06-18")).status).toBe(200);
    expect((await post("2025-06-18", { "mcp-protocol-version": "2025-11-25" })).status).toBe(400);
    const refused = await post("2025-11-25");
    expect([refused.status, await refused.text()]).toEqual([
      400,
      "Bad Request: Unsupported protocol version (supported versions: 2025-06-18)",
    ]);
  });
});

/** A registered client, and what its login needs. */
async function start() {
  const sandbox = await startLike(OWN, SMALL);
  const documents = Object.values(sandbox.like.documents) as Record<string, string>[];
  const metadata = documents.find((one) => "token_endpoint" in one) ?? {};
  const redirect_uri = "http://127.0.0.1:1/callback";
  const registration = { redirect_uris: [redirect_uri], token_endpoint_auth_method: "client_secret_post" };
  const { client_id = "", client_secret = "" } = await json(metadata["registration_endpoint"] ?? "", {
    method: "POST",
    body: JSON.stringify(registration),
  });
  const code_challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
  const code_verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
  return {
    sandbox,
    authorize: async (more: Record<string, string> = {}) => {
      const query = {
        response_type: "code",
        client_id,
        redirect_uri,
        code_challenge,
        code_challenge_method: "S256",
        state: "s",
      };
      const url = `${metadata["authorization_endpoint"]}?${new URLSearchParams({ ...query, ...more })}`;
      const response = await fetch(url, { redirect: "manual" });
      return new URL(response.headers.get("location") ?? "http://none").searchParams;
    },
    token: async (more: Record<string, string>) => {
      const form = { grant_type: "authorization_code", client_id, client_secret, redirect_uri, code_verifier, ...more };
      return json(metadata["token_endpoint"] ?? "", { method: "POST", body: new URLSearchParams(form) });
    },
  };
}

describe("the authorization server of a shape", () => {
  it("issues tokens for a code once, and rotates refresh tokens", async () => {
    const { sandbox, authorize, token } = await start();
    const answer = await authorize();
    expect(answer.get("state")).toBe("s");
    const code = answer.get("code") ?? "";
    const first = await token({ code });
    expect(first).toMatchObject({ token_type: "Bearer", expires_in: 3600, scope: "mcp" });
    expect(await token({ code })).toEqual({ error: "invalid_grant" });
    const refresh = { grant_type: "refresh_token", refresh_token: first["refresh_token"] ?? "" };
    expect(await token(refresh)).toMatchObject({ refresh_token: expect.not.stringMatching(refresh.refresh_token) });
    expect(await token(refresh)).toEqual({ error: "invalid_grant" });
    await sandbox.close();
  });

  it.each([
    ["another verifier", { code_verifier: "x".repeat(43) }, "invalid_grant"],
    ["another redirect address", { redirect_uri: "http://127.0.0.1:2/callback" }, "invalid_grant"],
    ["another secret", { client_secret: "wrong" }, "invalid_client"],
    ["no known client", { client_id: "wrong" }, "invalid_client"],
    ["another grant", { grant_type: "password" }, "unsupported_grant_type"],
  ])("refuses %s", async (_what, more, error) => {
    const { sandbox, authorize, token } = await start();
    const code = (await authorize()).get("code") ?? "";
    expect(await token({ code, ...more })).toEqual({ error });
    await sandbox.close();
  });

  it("refuses a login without PKCE, and a redirect address that is not registered", async () => {
    const { sandbox, authorize } = await start();
    expect((await authorize({ code_challenge_method: "plain" })).get("error")).toBe("invalid_request");
    expect([...(await authorize({ redirect_uri: "http://127.0.0.1:1/other" }))]).toEqual([]);
    await sandbox.close();
  });

  it("refuses a code after a minute", async () => {
    const { sandbox, authorize, token } = await start();
    const code = (await authorize()).get("code") ?? "";
    sandbox.clock.advance(60_000);
    expect(await token({ code })).toEqual({ error: "invalid_grant" });
    await sandbox.close();
  });
});
