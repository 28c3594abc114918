import { bindMethods } from "../../http/public-class.js";
import { bearerChallenge } from "../model/challenge.js";
import { unionScopes } from "../model/scope.js";
import type { SdkTokenSource } from "./token-source.js";
import type {
  McpAuthProvider,
  McpClientInformation,
  McpClientMetadata,
  McpDiscoveryState,
  McpTokens,
} from "./types.js";

// After a rejection both SDKs run an authorization of their own (`auth()`), and send the request again only if a token
// request succeeded. The hook for the preparation of that request does the real work, with our discovery, leases and
// store; the rest of the SDK's authorization works on placeholders. Its requests are for `data:` addresses, which fetch
// answers inside the process, and a request that an SDK sent to the host of the placeholders would fail: RFC 6761
// section 6.4 reserves `.invalid`.
const ISSUER = "https://agentauth.invalid/";
const CLIENT = { client_id: "agentauth", issuer: ISSUER };

function buildDataUrl(document: object): string {
  return `data:application/json,${encodeURIComponent(JSON.stringify(document))}`;
}

/** The provider of one MCP server for both official MCP SDKs. */
export class SdkProvider implements McpAuthProvider {
  readonly #source: SdkTokenSource;
  readonly #server: string;
  // The scopes of the challenges that led to authorizations of SDK 1.x, until their token requests.
  #challengedScope: string | undefined;

  constructor(source: SdkTokenSource, server: string) {
    this.#source = source;
    this.#server = server;
    bindMethods(this, SdkProvider.prototype);
  }

  async token(): Promise<string | undefined> {
    return (await this.tokens())?.access_token;
  }

  async onUnauthorized({ response }: { response: Response }): Promise<void> {
    await this.#source.recover(bearerChallenge(response.headers));
  }

  async tokens(): Promise<McpTokens | undefined> {
    const grant = await this.#source.token();
    if (grant === undefined) return undefined;
    const { tokens } = grant;
    return {
      access_token: tokens.accessToken.reveal(),
      token_type: "Bearer",
      ...(tokens.scope !== undefined && { scope: tokens.scope }),
      issuer: ISSUER,
    };
  }

  async prepareTokenRequest(scope?: string): Promise<URLSearchParams> {
    const challengedScope = scope ?? this.#challengedScope;
    this.#challengedScope = undefined;
    await this.#source.recover(undefined, challengedScope);
    return new URLSearchParams();
  }

  addClientAuthentication(_headers: Headers, _parameters: URLSearchParams, url: string | URL): void {
    // Both SDKs send the request to this object. 2.x accepts no `data:` address in the metadata.
    if (typeof url !== "string") url.href = buildDataUrl({ access_token: "placeholder", token_type: "Bearer" });
  }

  get redirectUrl(): undefined {
    return undefined;
  }

  get clientMetadata(): McpClientMetadata {
    const note = (scope: unknown) => {
      if (typeof scope === "string") this.#challengedScope = unionScopes(this.#challengedScope, scope);
    };
    const metadata = {
      redirect_uris: [],
      // SDK 1.x passes the scopes of a challenge to a registration only: as a member of a copy of this object, in JSON.
      toJSON(this: { scope?: unknown }) {
        note(this.scope);
        return { redirect_uris: [] };
      },
    };
    return metadata;
  }

  clientInformation(context?: object): McpClientInformation | undefined {
    // SDK 1.x passes no context. Without a client it registers one.
    return context && CLIENT;
  }

  discoveryState(): McpDiscoveryState {
    return {
      authorizationServerUrl: ISSUER,
      resourceMetadata: { resource: this.#server },
      authorizationServerMetadata: {
        issuer: ISSUER,
        authorization_endpoint: `${ISSUER}authorize`,
        token_endpoint: `${ISSUER}token`,
        registration_endpoint: buildDataUrl({ client_id: CLIENT.client_id, redirect_uris: [] }),
        response_types_supported: ["code"],
      },
    };
  }

  async validateResourceURL(): Promise<undefined> {}

  saveClientInformation(): void {}

  saveTokens(): void {}

  redirectToAuthorization(): void {
    throw ownLoginError();
  }

  saveCodeVerifier(): void {
    throw ownLoginError();
  }

  codeVerifier(): string {
    throw ownLoginError();
  }
}

function ownLoginError(): TypeError {
  return new TypeError("the agent client logs in: the transport's finishAuth() is not for its providers");
}
