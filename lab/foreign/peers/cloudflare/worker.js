// A remote MCP server as Cloudflare's guides build it: the provider in front of an MCP server of the official SDK.
import { OAuthProvider } from "@cloudflare/workers-oauth-provider";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";

const apiHandler = {
  async fetch(request, _env, context) {
    const server = new McpServer({ name: "cloudflare", version: "1.0.0" });
    server.registerTool("whoami", { description: "The user of the token" }, async () => ({
      content: [{ type: "text", text: `subject ${context.props.subject}` }],
    }));
    const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    await server.connect(transport);
    return transport.handleRequest(request);
  },
};

/** The user consents at once. */
const defaultHandler = {
  async fetch(request, { OAUTH_PROVIDER: provider }) {
    if (new URL(request.url).pathname !== "/authorize") return new Response("not found", { status: 404 });
    const asked = await provider.parseAuthRequest(request);
    const { redirectTo } = await provider.completeAuthorization({
      request: asked,
      userId: "carol",
      metadata: {},
      scope: asked.scope,
      props: { subject: "carol" },
    });
    return Response.redirect(redirectTo, 302);
  },
};

export default {
  fetch(request, env, context) {
    const { origin } = new URL(request.url);
    const provider = new OAuthProvider({
      apiRoute: "/mcp",
      apiHandler,
      defaultHandler,
      authorizeEndpoint: "/authorize",
      tokenEndpoint: "/token",
      clientRegistrationEndpoint: "/register",
      resourceMetadata: { resource: `${origin}/mcp` },
      ...env.SETTINGS,
    });
    return provider.fetch(request, env, context);
  },
};
