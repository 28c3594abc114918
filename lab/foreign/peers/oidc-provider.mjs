// oidc-provider, and MCP servers of several frameworks that accept its tokens: they verify them with this package, where the
// framework has no way to do it.
import { versionOf } from "../peer.mjs";
import { addTool, answerMcp, createMcpServer, fromFetch, SAID, startHttp, startOidcProvider } from "../servers.mjs";

export const rows = [
  { name: "oidc-provider", title: "oidc-provider, server in Express", start: () => start("express", createExpress) },
  { name: "hono-mcp", title: "@hono/mcp, issuer oidc-provider", start: () => start("@hono/mcp", createHono) },
  {
    name: "mcp-handler",
    title: "Vercel mcp-handler, issuer oidc-provider",
    start: () => start("mcp-handler", createVercel),
  },
  {
    name: "mcp-sdk-2",
    title: "MCP SDK for TypeScript 2.x, issuer oidc-provider",
    start: () => start("@modelcontextprotocol/server", createSdk2),
  },
];

async function start(name, createApp) {
  const { createResourceServer } = await import("../../../dist/resource-server/index.js");
  const provider = await startOidcProvider();
  let url;
  const server = await startHttp((origin) => {
    url = `${origin}/mcp`;
    const options = { resource: url, authorizationServers: [provider.issuer], log: (event) => console.error(event) };
    return createApp(createResourceServer(options), url, provider.issuer);
  });
  const version = `${versionOf(name)}, oidc-provider ${provider.version}`;
  const close = () => Promise.all([server.close(), provider.close()]);
  return { ...SAID, url, version, revoked: true, close };
}

async function createExpress(guard) {
  const { default: express } = await import("express");
  const app = express();
  app.use(guard.middleware());
  app.all("/mcp", (request, response) => answerMcp(request, response));
  return app;
}

async function createHono(guard) {
  const { Hono } = await import("hono");
  const { StreamableHTTPTransport } = await import("@hono/mcp");
  const app = new Hono();
  app.use(guard.hono());
  app.all("/mcp", async (context) => {
    const server = await createMcpServer(({ authInfo }) => authInfo.extra.subject);
    const transport = new StreamableHTTPTransport();
    await server.connect(transport);
    return transport.handleRequest(context);
  });
  return fromFetch(app.fetch);
}

async function createVercel(guard, url, issuer) {
  const { createMcpHandler, protectedResourceHandler, withMcpAuth } = await import("mcp-handler");
  const handler = createMcpHandler((server) => addTool(server, ({ http }) => http.authInfo.extra.subject));
  const verify = async (_, token) => {
    if (token === undefined) return undefined;
    const { clientId, scopes, subject } = await guard.verify(token);
    return { token, clientId, scopes, extra: { subject } };
  };
  const path = guard.metadataPath;
  const protect = withMcpAuth(handler, verify, { required: true, resourceMetadataPath: path });
  const describe = protectedResourceHandler({ authServerUrls: [issuer], resourceUrl: url });
  return fromFetch((request) => (new URL(request.url).pathname === path ? describe(request) : protect(request)));
}

async function createSdk2(guard, url) {
  const { createMcpHandler, McpServer, requireBearerAuth } = await import("@modelcontextprotocol/server");
  const handler = createMcpHandler(() =>
    addTool(new McpServer({ name: "foreign", version: "2.0.0" }), ({ http }) => http.authInfo.extra.subject),
  );
  const verifier = {
    async verifyAccessToken(token) {
      const { clientId, scopes, subject, expiresAt } = await guard.verify(token);
      return { token, clientId, scopes, expiresAt: Math.floor(expiresAt / 1000), extra: { subject } };
    },
  };
  const bearer = requireBearerAuth({ verifier, resourceMetadataUrl: new URL(guard.metadataPath, url).href });
  return fromFetch(async (request) => {
    const described = guard.handleMetadata(request);
    if (described !== undefined) return described;
    const authInfo = await bearer(request);
    return authInfo instanceof Response ? authInfo : handler.fetch(request, { authInfo });
  });
}
