import type { IncomingMessage, ServerResponse } from "node:http";

/** The parts of oidc-provider that the sandbox uses: the package has no types. */
export interface OidcModule {
  Provider: new (issuer: string, configuration: object) => OidcProvider;
  errors: OidcErrors;
  proofs: OidcProofs;
}

/** How custom grants bind their tokens to a key (RFC 9449). */
export interface OidcProofs {
  /** Validates the proof of a request; undefined where there is none, or where DPoP is off. */
  read(provider: OidcProvider, ctx: OidcContext): Promise<object | undefined>;
  /** Binds a token to the key of a proof and marks the proof as used; without a proof it does nothing. */
  bind(provider: OidcProvider, ctx: OidcContext, proof: object | undefined, token: object): Promise<void>;
}

/** Constructors of the errors that become OAuth error responses. */
export interface OidcErrors {
  AccessDenied: new (description?: string) => Error;
  InvalidGrant: new (detail: string) => Error;
  InvalidRequest: new (description: string) => Error;
  InvalidScope: new (description: string, scope: string) => Error;
  InvalidTarget: new (description?: string) => Error;
}

/** An authorization server. */
export interface OidcProvider {
  /** Whether `x-forwarded-*` say where clients reach it. */
  proxy: boolean;
  callback(): (request: IncomingMessage, response: ServerResponse) => unknown;
  on(event: string, listener: (...args: never[]) => void): unknown;
  registerGrantType(name: string, handler: (ctx: OidcContext) => Promise<void>, parameters: string[]): void;
  interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>;
  interactionFinished(request: IncomingMessage, response: ServerResponse, result: InteractionResult): Promise<void>;
  Grant: GrantModel;
  AccessToken: AccessTokenModel;
  RefreshToken: {
    find(value: string): Promise<Pick<OidcAccessToken, "accountId" | "clientId" | "isValid"> | undefined>;
  };
  ClientCredentials: ClientCredentialsModel;
  Interaction: { find(uid: string): Promise<Interaction | undefined> };
  Client: { find(id: string): Promise<OidcClient | undefined> };
  ResourceServer: new (identifier: string, info: ResourceServerInfo) => object;
}

export interface OidcClient {
  clientId: string;
  clientName?: string;
  clientAuthMethod: string;
  redirectUris: string[];
  grantTypeAllowed(name: string): boolean;
}

/** Parameters of a request; a repeated parameter is a list. */
export type OidcParams = Record<string, string | string[] | undefined>;

/** A parameter; `undefined` where it is empty or repeated. */
export function readParam(params: OidcParams, name: string): string | undefined {
  const value = params[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** One request inside the authorization server. */
export interface OidcContext {
  req: IncomingMessage;
  type: string;
  body: unknown;
  oidc: {
    route: string;
    params: OidcParams;
    client: OidcClient;
    entities: { Grant?: OidcGrant; Account?: { accountId: string } };
    entity(name: string, value: object): void;
  };
}

/** The format and lifetime of access tokens for a resource. */
export interface ResourceServerInfo {
  scope: string;
  audience: string;
  accessTokenFormat: "jwt" | "opaque";
  accessTokenTTL: number;
  jwt: { sign: { alg: string } };
}

/** What a user allowed a client to do. */
export interface OidcGrant {
  addOIDCScope(scope: string): void;
  addResourceScope(resource: string, scope: string): void;
  getResourceScope(resource: string): string;
  save(): Promise<string>;
}

interface GrantModel {
  new (owner: { accountId: string; clientId: string }): OidcGrant;
  find(id: string): Promise<OidcGrant | undefined>;
}

/** An access token, made or found. */
export interface OidcAccessToken {
  /** The name of its model. */
  kind: string;
  jti: string;
  aud?: string;
  accountId: string;
  clientId: string;
  grantId: string;
  scope?: string;
  /** Unix seconds by the machine's clock. */
  exp: number;
  expiration: number;
  isValid: boolean;
  /** The thumbprint of the key that it is bound to. */
  jkt?: string;
  tokenType: "Bearer" | "DPoP";
  resourceServer: object;
  save(): Promise<string>;
}

interface AccessTokenModel {
  new (fields: { accountId: string; client: OidcClient; grantId: string; gty: string }): OidcAccessToken;
  find(value: string): Promise<OidcAccessToken | undefined>;
}

interface ClientCredentialsModel {
  new (fields: { client: OidcClient }): ClientToken;
  find(value: string): Promise<ClientToken | undefined>;
}

export type ClientToken = Omit<OidcAccessToken, "accountId" | "grantId">;

/** A user at the login and consent pages. */
export interface Interaction {
  /** Unix seconds by the machine's clock. */
  exp: number;
  returnTo: string;
  prompt: { name: string };
  params: OidcParams;
  session?: { accountId: string };
  grantId?: string;
  result?: InteractionResult;
  save(ttl: number): Promise<string>;
}

export interface InteractionResult {
  login?: { accountId: string };
  consent?: { grantId: string };
  error?: string;
  error_description?: string;
}

/** Loads oidc-provider by its modules, since its entry point prints a warning about the version of Node.js. */
export async function loadOidc(): Promise<OidcModule> {
  const { Provider, errors, readProof: read, applyDpopBinding: bind } = await import("#packages/oidc-provider");
  return { Provider, errors, proofs: { read, bind } };
}
