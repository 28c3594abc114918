import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  DemoInMemoryAuthProvider,
  DemoInMemoryClientsStore,
} from "@modelcontextprotocol/sdk/examples/server/demoInMemoryOAuthProvider.js";
import { InvalidGrantError, InvalidTokenError } from "@modelcontextprotocol/sdk/server/auth/errors.js";
import { requireBearerAuth } from "@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js";
import {
  createOAuthMetadata,
  getOAuthProtectedResourceMetadataUrl,
  mcpAuthMetadataRouter,
  mcpAuthRouter,
} from "@modelcontextprotocol/sdk/server/auth/router.js";
import { createMcpExpressApp } from "@modelcontextprotocol/sdk/server/express.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type {
  OAuthClientInformationFull,
  OAuthTokenRevocationRequest,
  OAuthTokens,
} from "@modelcontextprotocol/sdk/shared/auth.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";

/** The scope that the demo's MCP server wants. */
export const DEMO_SCOPE = "mcp:tools";

type AuthInfo = Awaited<ReturnType<DemoInMemoryAuthProvider["verifyAccessToken"]>>;

/** A refresh token of the demo, and the access token that came with it. */
interface Session {
  clientId: string;
  scopes: string[];
  resource: URL | undefined;
  accessToken: string;
}

/** The SDK's clients, which can be forgotten. */
class DemoClients extends DemoInMemoryClientsStore {
  readonly #forgotten = new Set<string>();

  forget(clientId: string): void {
    this.#forgotten.add(clientId);
  }

  override async getClient(clientId: string) {
    return this.#forgotten.has(clientId) ? undefined : super.getClient(clientId);
  }
}

/** The SDK's demo with what it leaves out: refresh tokens, each good for one use, and revocation. */
class DemoProvider extends DemoInMemoryAuthProvider {
  override clientsStore = new DemoClients();
  readonly #sessions = new Map<string, Session>();
  readonly #renewed = new Map<string, AuthInfo>();
  readonly #revoked = new Set<string>();

  override async exchangeAuthorizationCode(client: OAuthClientInformationFull, code: string): Promise<OAuthTokens> {
    const tokens = await super.exchangeAuthorizationCode(client, code);
    const { scopes, resource } = await super.verifyAccessToken(tokens.access_token);
    const session = { clientId: client.client_id, scopes, resource, accessToken: tokens.access_token };
    return { ...tokens, refresh_token: this.#keep(session) };
  }

  override async exchangeRefreshToken(client: OAuthClientInformationFull, refreshToken: string): Promise<OAuthTokens> {
    const session = this.#sessions.get(refreshToken);
    if (session?.clientId !== client.client_id) throw new InvalidGrantError("the refresh token is not known");
    this.#sessions.delete(refreshToken);
    const token = randomUUID();
    const { clientId, scopes, resource } = session;
    const expiresAt = Math.floor(Date.now() / 1000) + 3600;
    this.#renewed.set(token, { token, clientId, scopes, expiresAt, ...(resource && { resource }) });
    const refresh_token = this.#keep({ ...session, accessToken: token });
    return { access_token: token, token_type: "bearer", expires_in: 3600, refresh_token };
  }

  override async verifyAccessToken(token: string): Promise<AuthInfo> {
    if (this.#revoked.has(token)) throw new InvalidTokenError("the token was revoked");
    const refreshed = this.#renewed.get(token);
    if (refreshed) return refreshed;
    return super.verifyAccessToken(token).catch(() => {
      throw new InvalidTokenError("the token is not known");
    });
  }

  /** Its presence makes the router offer and advertise the endpoint. */
  async revokeToken(_client: OAuthClientInformationFull, { token }: OAuthTokenRevocationRequest): Promise<void> {
    this.#revoked.add(this.#sessions.get(token)?.accessToken ?? token);
    this.#sessions.delete(token);
  }

  #keep(session: Session): string {
    const token = randomUUID();
    this.#sessions.set(token, session);
    return token;
  }
}

/** A request that one of the demo's two servers answered. */
export interface DemoRequest {
  server: "issuer" | "mcp";
  method: string;
  path: string;
  query: URLSearchParams;
  authorization: string | undefined;
  /** The body as the server's own parser read it. */
  body: Readonly<Record<string, unknown>>;
  status: number;
  /** Where the answer leads. */
  location: string | undefined;
}

/** What express is, as far as it is used here: its types do not come with it. */
type App = RequestListener & {
  use(...handlers: unknown[]): void;
  post(path: string, ...handlers: unknown[]): void;
};

/**
 * An authorization server and an MCP server of the official SDK's first version, on two origins: code that knows nothing
 * of this project. The metadata lies at the root, the issuer ends in a slash, no answer names it (RFC 9207), and tokens
 * can be revoked.
 */
export async function startDemoProvider() {
  const requests: DemoRequest[] = [];
  const [issuer, mcp] = [await serve("issuer", requests), await serve("mcp", requests)];
  const provider = new DemoProvider();
  const issuerUrl = new URL(issuer.origin);
  const mcpUrl = new URL(`${mcp.origin}/mcp`);
  // Limits by time are kept off: a test's requests come at once.
  const unlimited = { rateLimit: false } as const;
  const issuerApp = createMcpExpressApp() as unknown as App;
  issuerApp.use(
    mcpAuthRouter({
      provider,
      issuerUrl,
      scopesSupported: [DEMO_SCOPE],
      authorizationOptions: unlimited,
      tokenOptions: unlimited,
      clientRegistrationOptions: unlimited,
      revocationOptions: unlimited,
    }),
  );
  issuer.answerWith(issuerApp);
  const mcpApp = createMcpExpressApp() as unknown as App;
  const oauthMetadata = createOAuthMetadata({ provider, issuerUrl, scopesSupported: [DEMO_SCOPE] });
  mcpApp.use(mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl: mcpUrl, scopesSupported: [DEMO_SCOPE] }));
  const guard = requireBearerAuth({
    verifier: provider,
    requiredScopes: [DEMO_SCOPE],
    resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(mcpUrl),
    expectedResource: mcpUrl,
  });
  mcpApp.post("/mcp", guard, answerMcp);
  mcp.answerWith(mcpApp);
  return {
    issuer: issuerUrl.href,
    mcpUrl: mcpUrl.href,
    requests,
    /** The requests to one path of either server. */
    to: (path: string) => requests.filter((request) => request.path === path),
    /** Makes a client known beforehand that has no secret. */
    addPublicClient: (clientId: string, redirectUri: string) =>
      provider.clientsStore.registerClient({
        client_id: clientId,
        redirect_uris: [redirectUri],
        token_endpoint_auth_method: "none",
      }),
    forgetClient: (clientId: string) => provider.clientsStore.forget(clientId),
    async close() {
      await Promise.all([issuer.close(), mcp.close()]);
    },
  };
}

/** One server for each request, as the SDK wants it where no session is kept. */
async function answerMcp(request: IncomingMessage & { body?: unknown }, response: ServerResponse): Promise<void> {
  const server = new McpServer({ name: "demo", version: "1.0.0" });
  server.registerTool("whoami", { description: "Returns the client that made the call." }, ({ authInfo }) => ({
    content: [{ type: "text", text: `${authInfo?.clientId} ${authInfo?.scopes.join(" ")}` }],
  }));
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
  response.once("close", () => void transport.close());
  // The SDK's types are not made for exactOptionalPropertyTypes.
  await server.connect(transport as Transport);
  await transport.handleRequest(request, response, request.body);
}

/** A loopback server that writes down what it answers; its application comes once its origin is known. */
async function serve(name: DemoRequest["server"], requests: DemoRequest[]) {
  let app: RequestListener = (_request, response) => void response.destroy();
  const server = createServer((request: IncomingMessage & { body?: unknown }, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://demo");
    response.once("finish", () => {
      requests.push({
        server: name,
        method: request.method ?? "",
        path: pathname,
        query: searchParams,
        authorization: request.headers.authorization,
        body: (request.body ?? {}) as Record<string, unknown>,
        status: response.statusCode,
        location: response.getHeader("location")?.toString(),
      });
    });
    app(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answerWith(made: RequestListener) {
      app = made;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
