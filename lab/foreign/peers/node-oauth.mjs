// @node-oauth/oauth2-server behind express: no registration, so that the client is made by hand, with one redirect address.
import { randomUUID } from "node:crypto";
import { freePort, versionOf } from "../peer.mjs";
import { answerMcp, SAID, startHttp } from "../servers.mjs";

export const rows = [{ name: "node-oauth", title: "@node-oauth/oauth2-server", start }];

async function start() {
  const { default: express } = await import("express");
  const { default: OAuth2Server } = await import("@node-oauth/oauth2-server");
  const redirectPort = await freePort();
  const client = {
    id: "agent",
    grants: ["authorization_code", "refresh_token"],
    redirectUris: [`http://127.0.0.1:${redirectPort}/callback`],
  };
  const oauth = new OAuth2Server({
    model: memoryModel(client),
    requireClientAuthentication: {
      authorization_code: false,
      refresh_token: false,
    },
  });
  let issuer;
  const server = await startHttp((origin) => {
    issuer = origin;
    const app = express();
    app.use(express.urlencoded());
    app.get("/.well-known/oauth-protected-resource/mcp", (_, response) =>
      response.json({ resource: `${origin}/mcp`, authorization_servers: [origin] }),
    );
    app.get("/.well-known/oauth-authorization-server", (_, response) =>
      response.json({
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        response_types_supported: ["code"],
        code_challenge_methods_supported: ["S256"],
      }),
    );
    const by = (run) => async (request, response) => {
      const answer = new OAuth2Server.Response(response);
      await run(new OAuth2Server.Request(request), answer).catch(() => {});
      response.set(answer.headers).status(answer.status).json(answer.body);
    };
    const authenticateHandler = { handle: () => ({ id: "carol" }) };
    app.get(
      "/authorize",
      by((request, response) => oauth.authorize(request, response, { authenticateHandler })),
    );
    app.post(
      "/token",
      by((request, response) => oauth.token(request, response)),
    );
    app.all("/mcp", async (request, response) => {
      const answer = new OAuth2Server.Response(response);
      const token = await oauth.authenticate(new OAuth2Server.Request(request), answer).catch(() => undefined);
      if (token === undefined) return response.set(answer.headers).status(401).end();
      return answerMcp(request, response, () => token.user.id);
    });
    return app;
  });
  const setup = { client: { issuer, clientId: client.id }, redirectPort };
  return { ...SAID, url: `${issuer}/mcp`, version: versionOf("@node-oauth/oauth2-server"), setup, close: server.close };
}

function memoryModel(client) {
  const [codes, access, refresh] = [new Map(), new Map(), new Map()];
  return {
    getClient: async (id) => (id === client.id ? client : false),
    saveAuthorizationCode: async (code, { id }, user) => {
      const saved = { ...code, client: { id }, user };
      codes.set(code.authorizationCode, saved);
      return saved;
    },
    getAuthorizationCode: async (code) => codes.get(code),
    revokeAuthorizationCode: async ({ authorizationCode }) => codes.delete(authorizationCode),
    saveToken: async (token, { id }, user) => {
      const saved = { ...token, client: { id }, user };
      access.set(token.accessToken, saved);
      refresh.set(token.refreshToken, saved);
      return saved;
    },
    generateAccessToken: async () => randomUUID(),
    getAccessToken: async (token) => access.get(token),
    getRefreshToken: async (token) => refresh.get(token),
    revokeToken: async ({ refreshToken }) => refresh.delete(refreshToken),
  };
}
