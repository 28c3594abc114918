// Logs in, lists the tools and calls one with an MCP client library, or through a proxy for hosts that speak stdio:
// node library.mjs <set-up> <MCP server>. Prints one line of JSON: the tools, the result of the call, and the protocol
// revision where the library reports it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { modules } from "../install.mjs";

const CLIENT = { name: "agentauth-test-client", version: "1.0.0" };
const SDK = "@modelcontextprotocol/sdk/client";
const SET_UPS = {
  sdk: () => official(`${SDK}/index.js`, `${SDK}/streamableHttp.js`),
  client: () => official("@modelcontextprotocol/client"),
  "client-auto": () => official("@modelcontextprotocol/client", undefined, { versionNegotiation: { mode: "auto" } }),
  "ai-sdk": aiSdk,
  "mcp-remote": mcpRemote,
};

const [setUp, url] = process.argv.slice(2);
const callbacks = await listenForCallback();
const provider = createProvider(callbacks.redirectUri);
try {
  process.stdout.write(`${JSON.stringify(await SET_UPS[setUp]())}\n`);
} finally {
  callbacks.close();
}

/** The official SDK: the transport throws once it has sent the user to the issuer, and is replaced after the login. */
async function official(clientModule, transportModule = clientModule, options = {}) {
  const { Client } = await import(clientModule);
  const { StreamableHTTPClientTransport } = await import(transportModule);
  const createTransport = () => new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  const first = createTransport();
  try {
    await new Client(CLIENT, options).connect(first);
  } catch (error) {
    if (error.constructor.name !== "UnauthorizedError") throw error;
  }
  await first.finishAuth((await callbacks.next()).get("code"));
  return use(new Client(CLIENT, options), createTransport());
}

async function mcpRemote() {
  const { Client } = await import(`${SDK}/index.js`);
  const { StdioClientTransport } = await import(`${SDK}/stdio.js`);
  const args = [join(modules, "mcp-remote", "dist", "proxy.js"), url];
  return use(new Client(CLIENT), new StdioClientTransport({ command: process.execPath, args, env: process.env }));
}

async function use(client, transport) {
  await client.connect(transport);
  const { tools } = await client.listTools();
  const result = await client.callTool({ name: "whoami", arguments: {} });
  const revision = client.getNegotiatedProtocolVersion?.();
  await client.close();
  return { tools: tools.map(({ name }) => name), result, revision };
}

async function aiSdk() {
  const { auth, createMCPClient } = await import("@ai-sdk/mcp");
  if ((await auth(provider, { serverUrl: url })) !== "REDIRECT") throw new Error("it asked for no login");
  const answer = await callbacks.next();
  await auth(provider, {
    serverUrl: url,
    authorizationCode: answer.get("code"),
    callbackState: answer.get("state"),
  });
  const client = await createMCPClient({ transport: { type: "http", url, authProvider: provider } });
  const { tools } = await client.listTools();
  const { whoami } = await client.tools();
  const result = await whoami.execute({}, { messages: [], toolCallId: "1" });
  await client.close();
  return { tools: tools.map(({ name }) => name), result };
}

/** Credentials in memory; the names are those of both libraries. */
function createProvider(redirectUrl) {
  const stored = {};
  const state = crypto.randomUUID();
  return {
    redirectUrl,
    clientMetadata: {
      client_name: CLIENT.name,
      redirect_uris: [redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "client_secret_basic",
    },
    state: () => state,
    storedState: () => state,
    clientInformation: () => stored.client,
    saveClientInformation: (client) => {
      stored.client = client;
    },
    isClientInformationDynamicallyRegistered: () => stored.client !== undefined,
    authorizationServerInformation: () => stored.server,
    saveAuthorizationServerInformation: (server) => {
      stored.server = server;
    },
    discoveryState: () => stored.discovery,
    saveDiscoveryState: (discovery) => {
      stored.discovery = discovery;
    },
    tokens: () => stored.tokens,
    saveTokens: (tokens) => {
      stored.tokens = tokens;
    },
    codeVerifier: () => stored.verifier,
    saveCodeVerifier: (verifier) => {
      stored.verifier = verifier;
    },
    redirectToAuthorization: (address) =>
      void spawn(process.execPath, [join(import.meta.dirname, "browser.mjs"), address.href], { stdio: "inherit" }),
  };
}

/** Where the browser comes back to; `next` is the parameters that it brought. */
async function listenForCallback() {
  let arrive;
  const arrived = new Promise((resolve) => (arrive = resolve));
  const server = createServer((request, response) => {
    arrive(new URL(request.url, "http://127.0.0.1").searchParams);
    response.end("logged in");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const redirectUri = `http://127.0.0.1:${server.address().port}/callback`;
  const late = new Promise((_, reject) =>
    setTimeout(() => reject(new Error("the browser did not come back")), 20_000).unref(),
  );
  return { redirectUri, next: () => Promise.race([arrived, late]), close: () => server.close() };
}
