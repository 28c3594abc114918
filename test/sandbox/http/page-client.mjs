// A page that logs in at the MCP server which its query names, with the official SDK, and shows what whoami returns.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const query = new URLSearchParams(location.search);
const stored = JSON.parse(sessionStorage.getItem("login") ?? "{}");
const keep = (name) => (value) => {
  stored[name] = value;
  sessionStorage.setItem("login", JSON.stringify(stored));
};
if (query.has("server")) keep("server")(query.get("server"));

const redirectUrl = `${location.origin}/callback`;
const authProvider = {
  redirectUrl,
  clientMetadata: { client_name: "page", redirect_uris: [redirectUrl], token_endpoint_auth_method: "none" },
  clientInformation: () => stored.client,
  saveClientInformation: keep("client"),
  tokens: () => stored.tokens,
  saveTokens: keep("tokens"),
  codeVerifier: () => stored.verifier,
  saveCodeVerifier: keep("verifier"),
  discoveryState: () => stored.discovery,
  saveDiscoveryState: keep("discovery"),
  redirectToAuthorization: (url) => location.assign(url),
};

const show = (text) => {
  document.querySelector("output").textContent = text;
};
const createTransport = () => new StreamableHTTPClientTransport(new URL(stored.server), { authProvider });
try {
  if (query.has("code")) await createTransport().finishAuth(query.get("code"));
  const client = new Client({ name: "page", version: "1.0.0" });
  await client.connect(createTransport());
  const { structuredContent } = await client.callTool({ name: "whoami", arguments: {} });
  show(JSON.stringify(structuredContent));
  await client.close();
} catch (error) {
  // The browser is on its way to the issuer.
  if (error.constructor.name !== "UnauthorizedError") show(`error: ${error.message}`);
}
