// FastMCP for TypeScript, whose OAuth proxy registers clients, and logs them in at an issuer that has one client: oidc-provider.
import { freePort, versionOf } from "../peer.mjs";
import { SAID, startOidcProvider } from "../servers.mjs";

export const rows = [{ name: "fastmcp", title: "FastMCP (TypeScript) with its OAuth proxy", start }];

async function start() {
  const { FastMCP, OAuthProvider, requireAuth } = await import("fastmcp");
  const port = await freePort();
  const baseUrl = `http://127.0.0.1:${port}`;
  const client = {
    client_id: "fastmcp",
    client_secret: "a client secret",
    redirect_uris: [`${baseUrl}/oauth/callback`],
    grant_types: ["authorization_code", "refresh_token"],
  };
  const provider = await startOidcProvider({ clients: [client] });
  const auth = new OAuthProvider({
    baseUrl,
    clientId: client.client_id,
    clientSecret: client.client_secret,
    authorizationEndpoint: `${provider.issuer}/auth`,
    tokenEndpoint: `${provider.issuer}/token`,
    scopes: ["openid", "offline_access"],
    consentRequired: false,
  });
  const server = new FastMCP({ name: "foreign", version: "1.0.0", auth });
  const execute = async (_, { session }) => (session.accessToken ? SAID.says : "nobody");
  server.addTool({ name: "whoami", description: "The user of the token", canAccess: requireAuth, execute });
  await server.start({ transportType: "httpStream", httpStream: { port, host: "127.0.0.1" } });
  const version = `${versionOf("fastmcp")}, oidc-provider ${provider.version}`;
  return { ...SAID, url: `${baseUrl}/mcp`, version, close: () => Promise.all([server.stop(), provider.close()]) };
}
