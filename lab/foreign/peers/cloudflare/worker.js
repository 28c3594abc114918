// A remote MCP server as Cloudflare's guides build it: the provider in front of a handler.
import { OAuthProvider } from "@cloudflare/workers-oauth-provider";

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

/** A worker that answers requests with a valid token by this handler. */
export const createWorker = (apiHandler) => ({
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
});
