import * as oauth from "oauth4webapi";
import type { Sandbox } from "../../../src/sandbox/index.js";

export const REDIRECT_URI = "http://127.0.0.1:9/callback";
export const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";

const insecure = { [oauth.allowInsecureRequests]: true } as const;

/** What a login leaves behind. */
export interface LoggedIn {
  as: oauth.AuthorizationServer;
  client: oauth.Client;
  auth: oauth.ClientAuth;
  tokens: oauth.TokenEndpointResponse;
}

/** The metadata of a pool's authorization server, at the service's own address. */
export async function discover(sandbox: Sandbox, poolId = sandbox.ids.pool): Promise<oauth.AuthorizationServer> {
  const issuer = new URL(sandbox.authUrl(poolId));
  const response = await fetch(`${issuer.href}/.well-known/oauth-authorization-server`);
  return oauth.processDiscoveryResponse(issuer, response);
}

export async function register(
  as: oauth.AuthorizationServer,
  metadata: Partial<oauth.Client> & Record<string, oauth.JsonValue> = {},
): Promise<oauth.Client> {
  const request = {
    client_name: "Test agent",
    redirect_uris: [REDIRECT_URI],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    ...metadata,
  };
  const response = await oauth.dynamicClientRegistrationRequest(as, request as Partial<oauth.Client>, insecure);
  const client = await oauth.processDynamicClientRegistrationResponse(response);
  // The service answers with few fields, and this is what a client that checks ID tokens goes by.
  return { ...client, id_token_signed_response_alg: "ES256" };
}

export function authOf(client: oauth.Client): oauth.ClientAuth {
  return typeof client["client_secret"] === "string" ? oauth.ClientSecretBasic(client["client_secret"]) : oauth.None();
}

export interface Begun {
  url: URL;
  verifier: string;
  state: string;
}

/** The URL that the browser opens. */
export async function begin(
  as: oauth.AuthorizationServer,
  client: oauth.Client,
  params: Record<string, string> = {},
): Promise<Begun> {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const url = new URL(as.authorization_endpoint ?? "");
  url.search = new URLSearchParams({
    client_id: client.client_id,
    response_type: "code",
    redirect_uri: REDIRECT_URI,
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    ...params,
  }).toString();
  return { url, verifier, state };
}

/** Where a browser that follows redirects would land outside the sandbox; it keeps no cookies. */
export async function landing(url: URL): Promise<URL> {
  const response = await fetch(url, { redirect: "manual" });
  const location = response.headers.get("location");
  if (location === null) throw new Error(`no redirect: ${response.status} ${await response.text()}`);
  return new URL(location);
}

/** Redeems the code of a callback. */
export async function redeem(
  as: oauth.AuthorizationServer,
  client: oauth.Client,
  { verifier, state }: Begun,
  callback: URL,
): Promise<oauth.TokenEndpointResponse> {
  const params = oauth.validateAuthResponse(as, client, callback, state);
  const response = await oauth.authorizationCodeGrantRequest(
    as,
    client,
    authOf(client),
    params,
    REDIRECT_URI,
    verifier,
    insecure,
  );
  return oauth.processAuthorizationCodeResponse(as, client, response);
}

/** The whole way, with a sandbox that logs in by itself. */
export async function logIn(
  sandbox: Sandbox,
  params: Record<string, string> = {},
  metadata: Record<string, oauth.JsonValue> = {},
  poolId = sandbox.ids.pool,
): Promise<LoggedIn> {
  const as = await discover(sandbox, poolId);
  const client = await register(as, metadata);
  const begun = await begin(as, client, params);
  const tokens = await redeem(as, client, begun, await landing(begun.url));
  return { as, client, auth: authOf(client), tokens };
}

/** A refresh, unprocessed. */
export function refresh({ as, client, auth, tokens }: LoggedIn, token = tokens.refresh_token): Promise<Response> {
  return oauth.refreshTokenGrantRequest(as, client, auth, token ?? "", insecure);
}

/** A refresh that has to succeed. */
export async function refreshed(session: LoggedIn, token?: string): Promise<oauth.TokenEndpointResponse> {
  return oauth.processRefreshTokenResponse(session.as, session.client, await refresh(session, token));
}

/** Posts a form to an endpoint as a client with a secret. */
export function post(
  { client }: Pick<LoggedIn, "client">,
  url: string | undefined,
  form: Record<string, string>,
): Promise<Response> {
  const basic = Buffer.from(`${client.client_id}:${client["client_secret"]}`).toString("base64");
  return fetch(url ?? "", {
    method: "POST",
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams(form),
  });
}

/** A JSON-RPC request to an MCP server. */
export function rpc(url: string, token: string | undefined, method: string, params: object = {}): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
}

export function callTool(url: string, token: string | undefined, name: string, args: object = {}): Promise<Response> {
  return rpc(url, token, "tools/call", { name, arguments: args });
}
