// The client under test: @modelcontextprotocol/client 2.x, which gets its tokens from our provider.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { AgentClient } from "../../dist/index.js";
import { readPrivateKey } from "../../dist/node.js";
import { memoryStore } from "../../dist/store/index.js";

import { namesNoIssuer } from "./trusted.mjs";

const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
const version = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT || "{}");
const url = new URL(process.argv.at(-1) ?? "");

/** A user who logs in at once: the suite's authorization endpoint redirects without a page. */
const login = {
  open: async () => ({
    redirectUri: "http://127.0.0.1:49152/callback",
    async authorize({ url: address, signal }) {
      const { headers } = await fetch(address, { redirect: "manual", signal });
      return new URL(headers.get("location") ?? "").searchParams;
    },
    close: async () => {},
  }),
};

/** The options of the machine grants; the other scenarios log in. */
const machines = {
  "auth/client-credentials-basic": () => ({ grant: { type: "client_credentials" } }),
  "auth/client-credentials-jwt": async () => ({
    grant: { type: "client_credentials" },
    client: { clientId: context.client_id, privateKey: await readPrivateKey(context.private_key_pem) },
  }),
  "auth/enterprise-managed-authorization": () => ({
    grant: {
      type: "id_jag",
      idToken: () => context.idp_id_token,
      idp: { tokenEndpoint: context.idp_token_endpoint, clientId: context.idp_client_id },
    },
  }),
  "auth/wif-jwt-bearer": () => ({
    grant: { type: "jwt_bearer", assertion: () => context.valid_jwt, workload: "conformance" },
  }),
};

const isLegacy = scenario.startsWith("auth/2025-03-26");
const hasDocument = scenario === "auth/basic-cimd" || scenario === "auth/offline-access-scope";
const agent = new AgentClient({
  store: memoryStore(),
  ...(context.client_id && { client: { clientId: context.client_id, clientSecret: context.client_secret } }),
  ...((await machines[scenario]?.()) ?? { login }),
  ...(isLegacy && { policy: { legacyDiscovery: true, allowMissingPkceMetadata: true } }),
  ...(hasDocument && { clientMetadataUrl: "https://conformance-test.local/client-metadata.json" }),
  // These contexts name a client and no issuer to bind its credentials to.
  ...(namesNoIssuer(scenario) && { trustNamedIssuer: true }),
});

// A provider returns bearer tokens. Tokens that are bound to a key need the fetch that sends proofs of it.
const isBound = scenario === "auth/dpop" || scenario === "auth/dpop-nonce";
const options = isBound ? { fetch: agent.fetch } : { authProvider: agent.authProvider(url) };
const client = new Client(
  { name: "agentauth-conformance", version: "1.0.0" },
  version === "2026-07-28" ? { versionNegotiation: { mode: { pin: version } } } : {},
);
await client.connect(new StreamableHTTPClientTransport(url, options));
await client.listTools();
await client.callTool({ name: "test-tool", arguments: {} });
await client.close();
