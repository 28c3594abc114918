// Structural copies of the SDKs' types: the package depends on neither SDK. test/oauth/mcp-sdk/types.test.ts checks that
// they are assignable to the real ones.

/** Options of the providers for the official MCP SDKs. */
export interface ProviderOptions {
  /** Required scopes, separated by blanks. */
  scope?: string | undefined;
  /** Aborts every call of the provider, such as a login that waits for the user. */
  signal?: AbortSignal | undefined;
}

/** The tokens that a provider returns to an SDK: never a refresh token, which stays in the store. */
export interface McpTokens {
  /** The access token. */
  access_token: string;
  /** Its type. */
  token_type: "Bearer";
  /** The scopes granted. */
  scope?: string;
  /** The placeholder of {@link McpDiscoveryState}. */
  issuer: string;
}

/** The registration that an SDK sees: a placeholder that no server receives. */
export interface McpClientMetadata {
  /** Empty: the client's real registration has the redirect addresses. */
  redirect_uris: string[];
}

/** The client that an SDK sees: a placeholder that no server receives. */
export interface McpClientInformation {
  /** The placeholder of a client. */
  client_id: string;
  /** The placeholder of the authorization server. */
  issuer: string;
}

/** What an SDK reads instead of running its own discovery: a placeholder that no request is sent to. */
export interface McpDiscoveryState {
  /** The placeholder of the authorization server. */
  authorizationServerUrl: string;
  /** The MCP server. */
  resourceMetadata: {
    /** Its canonical address. */
    resource: string;
  };
  /** Endpoints that are answered inside the process. */
  authorizationServerMetadata: {
    /** The placeholder of the authorization server. */
    issuer: string;
    /** Never opened. */
    authorization_endpoint: string;
    /** Replaced by an address inside the process before the SDK's request. */
    token_endpoint: string;
    /** An address inside the process. */
    registration_endpoint: string;
    /** The one that both SDKs require. */
    response_types_supported: string[];
  };
}

/** An `OAuthClientProvider` of `@modelcontextprotocol/sdk` 1.x and `@modelcontextprotocol/client` 2.x. */
export interface McpOAuthClientProvider {
  /** Undefined: the SDK sends no user anywhere, the agent client does. */
  get redirectUrl(): undefined;
  /** The placeholder of a registration. */
  get clientMetadata(): McpClientMetadata;
  /** The placeholder of a client. */
  clientInformation(context?: object): McpClientInformation | undefined;
  /** Does nothing: the store has the client. */
  saveClientInformation(): void;
  /** A valid token: the stored one, else a refreshed one, else one from a login. */
  tokens(): Promise<McpTokens | undefined>;
  /** Does nothing: the store has the tokens. */
  saveTokens(): void;
  /** Fails: the SDK starts no login. */
  redirectToAuthorization(): void;
  /** Fails: the SDK starts no login. */
  saveCodeVerifier(): void;
  /** Fails: the SDK starts no login. */
  codeVerifier(): string;
  /** Answers the SDK's own discovery without a request. */
  discoveryState(): McpDiscoveryState;
  /** Leaves the resource to the agent client. */
  validateResourceURL(): Promise<undefined>;
  /** Replaces the token that the server rejected: refreshes it, or logs in, also for missing scopes. */
  prepareTokenRequest(scope?: string): Promise<URLSearchParams>;
  /** Answers the SDK's own token request inside the process. */
  addClientAuthentication(headers: Headers, parameters: URLSearchParams, url: string | URL): void;
}

/**
 * An `AuthProvider` of `@modelcontextprotocol/client` 2.x. It is an `OAuthClientProvider` too, because only to one of
 * those the SDK's transport reports missing scopes.
 */
export interface McpAuthProvider extends McpOAuthClientProvider {
  /** A valid token: the stored one, else a refreshed one, else one from a login. */
  token(): Promise<string | undefined>;
  /** Replaces the token that the server rejected: refreshes it, or logs in. */
  onUnauthorized(context: { response: Response }): Promise<void>;
}
