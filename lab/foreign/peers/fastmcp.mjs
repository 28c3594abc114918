// FastMCP for TypeScript and for Python, whose OAuth proxies register clients, and log them in at an issuer that has one client:
// oidc-provider.
import { join } from "node:path";
import { folder, freePort, startPrinting, versionOf } from "../peer.mjs";
import { pythonWith } from "../python.mjs";
import { SAID, startOidcProvider } from "../servers.mjs";

export const rows = [
  { name: "fastmcp", title: "FastMCP (TypeScript) with its OAuth proxy", start },
  { name: "python-fastmcp", title: "FastMCP (Python) with its OAuth proxy", start: startPython, browse },
];

const createClient = (redirectUri) => ({
  client_id: "fastmcp",
  client_secret: "a client secret",
  redirect_uris: [redirectUri],
  grant_types: ["authorization_code", "refresh_token"],
});

async function start() {
  const { FastMCP, OAuthProvider, requireAuth } = await import("fastmcp");
  const port = await freePort();
  const baseUrl = `http://127.0.0.1:${port}`;
  const client = createClient(`${baseUrl}/oauth/callback`);
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

async function startPython() {
  const { command, env } = pythonWith("fastmcp==4.0.10", ["python3-fastmcp"]);
  const port = await freePort();
  const client = createClient(`http://127.0.0.1:${port}/auth/callback`);
  const provider = await startOidcProvider({ clients: [client] });
  const words = [join(folder, "peers", "fastmcp", "server.py"), String(port), provider.issuer, client.client_id];
  const { close, ...server } = await startPrinting([...command, ...words], {
    ...env,
    PEER_CLIENT_SECRET: client.client_secret,
  });
  const version = `${server.version}, oidc-provider ${provider.version}`;
  return { ...SAID, ...server, version, revoked: true, close: () => Promise.all([close(), provider.close()]) };
}

/** Consents, as the button of its page does. */
async function browse(browser, address) {
  const { url, text } = await browser.open(address);
  const fields = [...text.matchAll(/name="(txn_id|csrf_token)" value="([^"]*)"/g)].map(([, name, value]) => [
    name,
    value,
  ]);
  await browser.open(url, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded", origin: url.origin },
    body: new URLSearchParams([...fields, ["action", "approve"]]).toString(),
  });
}
