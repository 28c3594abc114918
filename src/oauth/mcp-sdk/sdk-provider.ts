import { type AgentAuthError, usageError } from "../../errors.js";
import type { Clock } from "../../http/deadline.js";
import { bindMethods } from "../../http/public-class.js";
import { SingleFlight } from "../../http/single-flight.js";
import { quote } from "../../redact.js";
import { loginRequired } from "../grant/grant-requirements.js";
import { chooseRecovery, recoverToken, type ServerTokens, wasRequested } from "../grant/token-fetch.js";
import { type BearerChallenge, bearerChallenge } from "../model/challenge.js";
import { coversScope, type Grant, hasSameTokens } from "../model/grant.js";
import { splitScope, unionScopes } from "../model/scope.js";

/** Options of the providers for the official MCP SDKs. */
export interface ProviderOptions {
  /** Required scopes, separated by blanks. */
  scope?: string | undefined;
  /** Aborts every call of the provider, such as a login that waits for the user. */
  signal?: AbortSignal | undefined;
}

export interface SdkTokenContext extends ServerTokens {
  clock: Pick<Clock, "now">;
  challenge(url: string, signal: AbortSignal): Promise<BearerChallenge | undefined>;
  /** Adds to an error whose remedy is a login the function that begins it. */
  offerLogin<T>(work: Promise<T>): Promise<T>;
}

const NO_CHALLENGE: BearerChallenge = { resourceMetadata: [], scope: undefined, error: undefined, schemes: [] };

/** How long after its replacement a token may still be rejected by requests that were in flight. */
const LATE_MS = 5_000;

/** How long a rejection of a refreshed token means that the next refresh would not help either. */
const REPEAT_REFRESH_MS = 60_000;

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

/**
 * An `AuthProvider` of `@modelcontextprotocol/client` 2.x, and an `OAuthClientProvider` of that and of
 * `@modelcontextprotocol/sdk` 1.x: only to one of those a transport reports missing scopes. The package depends on neither
 * SDK.
 *
 * An SDK sends the requests itself, and reports a rejection without the token that was rejected: it is taken to be the last
 * one that the provider returned.
 */
export class McpAuthProvider {
  readonly #context: SdkTokenContext;
  /** The address of the MCP server, as it was given and canonical. */
  readonly #mcpUrl: string;
  readonly #server: string;
  readonly #options: ProviderOptions;
  readonly #recoveries = new SingleFlight<Grant | undefined>();
  #sent: { grant: Grant; times: number[] } | undefined;
  // The last grant that replaced another, whether because the other was rejected, and how many rejections may still arrive.
  #replaced: { grant: Grant; at: number; late: number; wasRejected: boolean } | undefined;
  // The scopes of the challenges that led to authorizations of SDK 1.x, until their token requests.
  #challengedScope: string | undefined;

  /** @internal */
  constructor(context: SdkTokenContext, address: { mcpUrl: string; server: string }, options: ProviderOptions) {
    this.#context = context;
    this.#mcpUrl = address.mcpUrl;
    this.#server = address.server;
    this.#options = options;
    bindMethods(this, McpAuthProvider.prototype);
  }

  /** A valid token: the stored one, else a refreshed one, else one from a login; undefined if the server requires none. */
  async token(): Promise<string | undefined> {
    return (await this.tokens())?.access_token;
  }

  /** Replaces the token that the server rejected: refreshes it, or logs in. */
  async onUnauthorized({ response }: { response: Response }): Promise<void> {
    const challenge = bearerChallenge(response.headers);
    await this.#recover(challenge, challenge?.scope);
  }

  /** As {@link McpAuthProvider.token}: never a refresh token, which stays in the store. */
  async tokens(): Promise<{ access_token: string; token_type: "Bearer"; scope?: string; issuer: string } | undefined> {
    const grant = await this.#context.offerLogin(this.#find());
    if (grant === undefined) return undefined;
    const { accessToken, scope } = grant.tokens;
    return {
      access_token: accessToken.reveal(),
      token_type: "Bearer",
      ...(scope !== undefined && { scope }),
      issuer: ISSUER,
    };
  }

  /** Replaces the token that the server rejected: refreshes it, or logs in, also for missing scopes. */
  async prepareTokenRequest(scope?: string): Promise<URLSearchParams> {
    const challengedScope = scope ?? this.#challengedScope;
    this.#challengedScope = undefined;
    await this.#recover(undefined, challengedScope);
    return new URLSearchParams();
  }

  /** Answers the SDK's own token request inside the process. */
  addClientAuthentication(_headers: Headers, _parameters: URLSearchParams, url: string | URL): void {
    // Both SDKs send the request to this object. 2.x accepts no `data:` address in the metadata.
    if (typeof url !== "string") url.href = buildDataUrl({ access_token: "placeholder", token_type: "Bearer" });
  }

  /** Undefined: the SDK sends no user anywhere, the agent client does. */
  get redirectUrl(): undefined {
    return undefined;
  }

  /** The placeholder of a registration: the client's real one has the redirect addresses. */
  get clientMetadata(): { redirect_uris: string[] } {
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

  /** The placeholder of a client, which no server receives. */
  clientInformation(context?: object): { client_id: string; issuer: string } | undefined {
    // SDK 1.x passes no context. Without a client it registers one.
    return context && CLIENT;
  }

  /** Answers the SDK's own discovery without a request. */
  discoveryState() {
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

  /** Leaves the resource to the agent client. */
  async validateResourceURL(): Promise<undefined> {}

  /** Does nothing: the store has the client. */
  saveClientInformation(): void {}

  /** Does nothing: the store has the tokens. */
  saveTokens(): void {}

  /** Fails: the SDK starts no login. */
  redirectToAuthorization(): void {
    throw ownLoginError();
  }

  /** Fails: the SDK starts no login. */
  saveCodeVerifier(): void {
    throw ownLoginError();
  }

  /** Fails: the SDK starts no login. */
  codeVerifier(): string {
    throw ownLoginError();
  }

  /** A grant whose token is valid; undefined if the server requires no login. */
  async #find(challenge?: BearerChallenge): Promise<Grant | undefined> {
    const grant = await this.#context.grant(this.#mcpUrl, { ...this.#options, challenge });
    if (grant === undefined) return undefined;
    if (grant.proofKey !== undefined) throw boundToKeyError(grant);
    const now = this.#context.clock.now();
    const recent = (this.#sent?.times ?? []).filter((at) => now - at < LATE_MS);
    const isSame = this.#sent !== undefined && hasSameTokens(this.#sent.grant, grant);
    // Requests with an expired token may be in flight when the grant is refreshed for the next request.
    if (!isSame && !(this.#replaced && hasSameTokens(this.#replaced.grant, grant)))
      this.#replaced = { grant, at: now, late: recent.length, wasRejected: false };
    this.#sent = { grant, times: isSame ? [...recent, now] : [now] };
    return grant;
  }

  /**
   * Replaces the token that the server rejected; concurrent rejections share the result.
   *
   * @param challenge that of the response; without it the server is requested to send one
   * @param scope the scopes that the response named
   * @throws `AgentAuthError` `login_required` or `insufficient_scope` if a login is needed and not possible or futile
   */
  async #recover(challenge: BearerChallenge | undefined, scope: string | undefined): Promise<void> {
    const work = (signal: AbortSignal) => this.#replace(challenge, scope, signal);
    await this.#context.offerLogin(this.#recoveries.run(scope ?? "", work, this.#options.signal));
  }

  async #replace(received: BearerChallenge | undefined, scope: string | undefined, signal: AbortSignal) {
    if (this.#sent === undefined) {
      this.#context.onRejected(this.#mcpUrl);
      return this.#find(received);
    }
    const { grant, times } = this.#sent;
    const lacksScope = !coversScope(grant, splitScope(scope)) && !wasRequested(grant, scope);
    if (!lacksScope && this.#isLate(grant)) return grant;
    // A challenge makes a login read the server's metadata again, which may name another issuer by now.
    const fresh = received ?? (await this.#context.challenge(this.#mcpUrl, signal)) ?? NO_CHALLENGE;
    const challenge = lacksScope ? { ...fresh, scope, error: "insufficient_scope" } : fresh;
    const wasRefreshed = this.#replacedWithin(REPEAT_REFRESH_MS, grant)?.wasRejected === true;
    const tried = { refresh: wasRefreshed, login: false, stepUp: false };
    const rejection = { status: lacksScope ? 403 : 401, challenge, grant, tried };
    const recovery = chooseRecovery(rejection, this.#context);
    if (recovery === undefined) throw loginRequired(grant, "the server rejected the token");
    const next = await recoverToken(this.#context, recovery, { ...rejection, signal });
    this.#replaced = { grant: next, at: this.#context.clock.now(), late: times.length - 1, wasRejected: true };
    return next;
  }

  /** The last replacement, if it led to this grant within this time. */
  #replacedWithin(milliseconds: number, grant: Grant) {
    const last = this.#replaced;
    if (!last || !hasSameTokens(last.grant, grant)) return undefined;
    return this.#context.clock.now() - last.at < milliseconds ? last : undefined;
  }

  /** Whether the rejection is probably of a request that was sent before the token was replaced. */
  #isLate(grant: Grant): boolean {
    const last = this.#replacedWithin(LATE_MS, grant);
    return last !== undefined && last.late-- > 0;
  }
}

function boundToKeyError({ server }: Grant): AgentAuthError {
  const message = `the token for ${quote(server)} is bound to a key, and the transport of an MCP SDK sends no proof of it (RFC 9449)`;
  return usageError(message, "pass agent.fetch as the fetch of the transport instead of a provider");
}

function ownLoginError(): TypeError {
  return new TypeError("the agent client logs in: the transport's finishAuth() is not for its providers");
}
