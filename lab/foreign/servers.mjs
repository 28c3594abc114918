// What several peers are made of: an MCP server of the official SDK with one tool, the official SDK's authorization server,
// and oidc-provider for those that have none.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { listen, versionOf } from "./peer.mjs";

/** What a row says of the tool. */
export const SAID = { tool: "whoami", says: "subject carol" };

/** Gives an MCP server its tool, which names the subject of the token. */
export function addTool(server, readSubject) {
  server.registerTool("whoami", { description: "The user of the token" }, async (...words) => ({
    content: [{ type: "text", text: `subject ${readSubject(words.at(-1))}` }],
  }));
  return server;
}

/** An MCP server of the official SDK 1.x. */
export async function createMcpServer(readSubject) {
  const { McpServer } = await import("@modelcontextprotocol/sdk/server/mcp.js");
  return addTool(new McpServer({ name: "foreign", version: "1.0.0" }), readSubject);
}

/** Answers a request of Node's `http` with such a server; `body` is what was parsed of it. */
export async function answerMcp(request, response, readSubject = ({ authInfo }) => authInfo.extra.subject) {
  const { StreamableHTTPServerTransport } = await import("@modelcontextprotocol/sdk/server/streamableHttp.js");
  const server = await createMcpServer(readSubject);
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on("close", () => server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
}

/** Answers a fetch-style request with such a server. */
export async function answerMcpRequest(request, subject) {
  const { WebStandardStreamableHTTPServerTransport } = await import(
    "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js"
  );
  const server = await createMcpServer(() => subject);
  const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  await server.connect(transport);
  return transport.handleRequest(request);
}

/** A handler of Node's `http` that answers with a fetch-style one. */
export async function fromFetch(answer) {
  const { getRequestListener } = await import("@hono/node-server");
  return getRequestListener(answer);
}

/** Starts an HTTP server whose handler needs its address. @param tls key and certificate */
export async function startHttp(createHandler, tls) {
  let handle;
  const answer = (request, response) => handle(request, response);
  const server = tls === undefined ? createServer(answer) : createTlsServer(tls, answer);
  const origin = await listen(server);
  handle = await createHandler(origin);
  return { origin, close: () => server.closeAllConnections() ?? server.close() };
}

/**
 * The official SDK 1.x: an MCP server that is its own authorization server, in Express.
 *
 * @param publicOrigin where clients see it, from its own origin
 */
export async function startMcpSdk(publicOrigin = (origin) => origin, tls = undefined) {
  const { default: express } = await import("express");
  const { mcpAuthRouter } = await import("@modelcontextprotocol/sdk/server/auth/router.js");
  const { requireBearerAuth } = await import("@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js");
  const seen = {};
  const { close } = await startHttp((origin) => {
    const issuerUrl = new URL(publicOrigin(origin));
    const resourceServerUrl = new URL("/mcp", issuerUrl);
    const provider = memoryProvider();
    const app = express();
    app.set("trust proxy", "loopback");
    app.use(mcpAuthRouter({ provider, issuerUrl, resourceServerUrl, scopesSupported: ["mcp"] }));
    const resourceMetadataUrl = new URL("/.well-known/oauth-protected-resource/mcp", issuerUrl).href;
    const bearer = requireBearerAuth({ verifier: provider, resourceMetadataUrl });
    app.all("/mcp", bearer, (request, response) => answerMcp(request, response));
    Object.assign(seen, { url: resourceServerUrl.href, origin });
    return app;
  }, tls);
  return { ...SAID, ...seen, version: versionOf("@modelcontextprotocol/sdk"), revoked: true, close };
}

/** Everything in memory; the user consents at once. */
function memoryProvider() {
  const [clients, codes, access, refresh] = [new Map(), new Map(), new Map(), new Map()];
  const issue = (clientId, scopes) => {
    const tokens = { access_token: randomUUID(), refresh_token: randomUUID(), token_type: "Bearer", expires_in: 3600 };
    const expiresAt = Math.floor(Date.now() / 1000) + 3600;
    access.set(tokens.access_token, { clientId, scopes, expiresAt, extra: { subject: "carol" } });
    refresh.set(tokens.refresh_token, { clientId, scopes });
    return tokens;
  };
  return {
    clientsStore: {
      getClient: (id) => clients.get(id),
      registerClient: (client) => {
        clients.set(client.client_id, client);
        return client;
      },
    },
    async authorize(_client, { redirectUri, state, codeChallenge, scopes = [] }, response) {
      const code = randomUUID();
      codes.set(code, { codeChallenge, scopes });
      const query = new URLSearchParams({ code, ...(state && { state }) });
      response.redirect(`${redirectUri}?${query}`);
    },
    challengeForAuthorizationCode: async (_client, code) => codes.get(code).codeChallenge,
    async exchangeAuthorizationCode({ client_id: id }, code) {
      const { scopes } = codes.get(code);
      codes.delete(code);
      return issue(id, scopes);
    },
    async exchangeRefreshToken({ client_id: id }, token) {
      const { scopes } = refresh.get(token);
      refresh.delete(token);
      return issue(id, scopes);
    },
    async verifyAccessToken(token) {
      const { InvalidTokenError } = await import("@modelcontextprotocol/sdk/server/auth/errors.js");
      if (!access.has(token)) throw new InvalidTokenError("unknown token");
      return { token, ...access.get(token) };
    },
    async revokeToken(_client, { token }) {
      access.delete(token);
      refresh.delete(token);
    },
  };
}

/** oidc-provider: clients register themselves, tokens are JWTs for the resource, the user consents at once. */
export async function startOidcProvider(settings = {}, algorithm = "ES256") {
  const { default: Provider } = await import("oidc-provider");
  const { exportJWK, exportSPKI, generateKeyPair } = await import("jose");
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true });
  const key = { ...(await exportJWK(privateKey)), kid: "1", use: "sig" };
  let issuer;
  const { close } = await startHttp((origin) => {
    issuer = origin;
    const provider = new Provider(origin, {
      jwks: { keys: [key] },
      cookies: { keys: ["a cookie key"] },
      features: {
        devInteractions: { enabled: false },
        registration: { enabled: true },
        revocation: { enabled: true, allowedPolicy: () => true },
        introspection: { enabled: true, allowedPolicy: () => true },
        resourceIndicators: {
          enabled: true,
          useGrantedResource: () => true,
          getResourceServerInfo: (_, audience) => ({
            scope: "mcp",
            audience,
            accessTokenFormat: "jwt",
            jwt: { sign: { alg: algorithm } },
          }),
        },
      },
      scopes: ["openid", "offline_access", "mcp"],
      clientDefaults: { id_token_signed_response_alg: algorithm },
      issueRefreshToken: () => true,
      rotateRefreshToken: true,
      findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
      interactions: { url: (_, { uid }) => `/interaction/${uid}` },
      ...settings,
    });
    const consent = async (request, response) => {
      const { prompt, params, session } = await provider.interactionDetails(request, response);
      if (prompt.name === "login")
        return provider.interactionFinished(request, response, { login: { accountId: "carol" } });
      const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
      grant.addOIDCScope(params.scope ?? "openid offline_access");
      if (params.resource) grant.addResourceScope(params.resource, "mcp");
      return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
    };
    const answer = provider.callback();
    return (request, response) =>
      request.url.startsWith("/interaction/") ? consent(request, response) : answer(request, response);
  });
  return { issuer, version: versionOf("oidc-provider"), publicKey: await exportSPKI(publicKey), close };
}

/** An MCP server in Express that introspects the tokens of an issuer that has it alone. */
export function startIntrospecting(issuer, endpoint, options) {
  const credentials = { clientId: "server", clientSecret: "a-secret-of-the-server" };
  const introspection = { ...credentials, endpoint, allowMissingAudience: true };
  return startGuarded(issuer, { introspection, readSubject: ({ username }) => username, ...options });
}

/** An MCP server in Express that verifies the tokens of an issuer by the helper of the package. */
export async function startGuarded(
  issuer,
  { introspection, host = "127.0.0.1", readSubject = ({ sub }) => sub, scopes = ["mcp"] },
) {
  const { default: express } = await import("express");
  const { createResourceServer } = await import("../../dist/resource-server/index.js");
  let url;
  const { close } = await startHttp((origin) => {
    url = `${origin.replace("127.0.0.1", host)}/mcp`;
    const guard = createResourceServer({
      resource: url,
      authorizationServers: [issuer],
      introspection,
      requiredScopes: scopes,
      log: (event) => console.error(event),
    });
    const app = express();
    app.use(guard.middleware());
    app.all("/mcp", (request, response) =>
      answerMcp(request, response, ({ authInfo }) => readSubject(authInfo.extra.claims)),
    );
    return app;
  });
  return { ...SAID, url, close };
}
