import * as oauth from "oauth4webapi";
import { AgentAuthError } from "../../errors.js";
import { refusalError } from "../../http/refuse.js";
import { quote, Secret } from "../../redact.js";
import { oauthError } from "../http/oauth-error.js";
import { type AuthorizationParams, FLOW_PARAMETERS, knownIssuer } from "../model/authorization-params.js";
import type { ClientRecord } from "../model/grant.js";
import type { ServerMetadata } from "../model/metadata.js";
import { resourceParameter } from "../model/resource.js";

/**
 * A pending authorization: stores the issuer with state and verifier, so that the callback is validated against the
 * request (RFC 9207, MCP Authorization Response Validation).
 */
export interface PendingAuthorization {
  readonly issuer: string;
  readonly promisesIss: boolean;
  readonly authorizationUrl: string;
  readonly redirectUri: string;
  readonly state: string;
  readonly verifier: Secret;
  /** What the id token must repeat, if one was requested (OpenID Connect Core section 3.1.2.1). */
  readonly nonce?: string | undefined;
  readonly clientId: string;
  readonly scope: readonly string[];
  readonly resource: string | undefined;
}

export interface AuthorizationRequest {
  server: ServerMetadata;
  client: ClientRecord;
  redirectUri: string;
  scope: readonly string[];
  resource: string | undefined;
  /** The account to log in with, if the server supports a hint. */
  loginHint?: string | undefined;
  /** The hash of the key that the tokens are bound to: the code is then bound to it as well (RFC 9449 section 10). */
  proofKeyThumbprint?: string | undefined;
  /** The user's parameters. */
  authorizationParams?: AuthorizationParams | undefined;
  /** Whether only a forced consent leads to a refresh token, as an earlier login showed. */
  needsConsent?: boolean | undefined;
}

const MAX_URL = 8192;

/** Builds the authorization request (RFC 6749 section 4.1.1) with PKCE S256 (RFC 7636) and `resource` (RFC 8707). */
export async function buildAuthorization(request: AuthorizationRequest): Promise<PendingAuthorization> {
  const { server, client, redirectUri, scope, resource, loginHint, proofKeyThumbprint } = request;
  const { authorizationParams, needsConsent = true } = request;
  const needsNone = [server.issuer, server.authorizationEndpoint].some((url) => knownIssuer(url).needsNoConsent);
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  // Optional in this flow (OpenID Connect Core section 3.1.2.1), and some servers require it.
  const nonce = scope.includes("openid") ? oauth.generateRandomNonce() : undefined;
  const url = new URL(server.authorizationEndpoint);
  const parameters = {
    // OpenID Connect issues a refresh token for offline_access only after consent (Core section 11), unless "other
    // conditions" are met, such as the consent of an administrator.
    ...(scope.includes("offline_access") && needsConsent && !needsNone && { prompt: "consent" }),
    ...authorizationParams,
    response_type: "code",
    client_id: client.clientId,
    redirect_uri: redirectUri,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    state,
    ...(scope.length > 0 && { scope: scope.join(" ") }),
    ...resourceParameter(resource),
    ...(nonce !== undefined && { nonce }),
    ...(loginHint !== undefined && { login_hint: loginHint }),
    ...(proofKeyThumbprint !== undefined && { dpop_jkt: proofKeyThumbprint }),
  };
  // Servers differ in which of two values they use: ours replace those that the endpoint brings (RFC 6749 section 3.1).
  for (const name of FLOW_PARAMETERS) url.searchParams.delete(name);
  for (const [name, value] of Object.entries(parameters)) {
    if (value === "") url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  if (url.href.length > MAX_URL) {
    throw refusalError("bad_address", {
      field: "authorization_endpoint",
      value: server.authorizationEndpoint,
      from: server.url,
      rule: `results in an address longer than ${MAX_URL} characters, which some browsers do not open`,
    });
  }
  return {
    issuer: server.issuer,
    promisesIss: server.promisesIss,
    authorizationUrl: url.href,
    redirectUri,
    state,
    verifier: new Secret(verifier),
    nonce,
    clientId: client.clientId,
    scope,
    resource,
  };
}

/** Whether an authorization request forces the user to consent. */
export function asksForConsent({ authorizationUrl }: PendingAuthorization): boolean {
  return new URL(authorizationUrl).searchParams.get("prompt")?.split(" ").includes("consent") === true;
}

/**
 * Validates a callback before any of its values are used: `state`, and `iss` by the four-row table of RFC 9207,
 * compared character by character. This applies to errors too, whose texts are not shown if `iss` does not match.
 *
 * @returns the parameters in the form that `exchangeCode` takes
 * @throws `AgentAuthError` `iss_mismatch`, `state_mismatch`, `bad_callback`, or the server's own error such as
 * `access_denied`
 */
export function checkCallback(pending: PendingAuthorization, parameters: URLSearchParams): URLSearchParams {
  const from = "the callback of the login";
  for (const name of ["state", "iss", "code", "error"]) {
    if (parameters.getAll(name).length > 1)
      throw refusalError("bad_callback", { field: name, value: "(several)", from, rule: "must come once" });
  }
  if (parameters.get("state") !== pending.state) {
    throw new AgentAuthError("state_mismatch", "the callback does not belong to this login: its state differs", {
      class: "refused",
    });
  }
  const iss = parameters.get("iss");
  if (iss === null && pending.promisesIss) throw missingIssError(pending.issuer);
  if (iss !== null && iss !== pending.issuer) {
    const rule = `must be exactly ${quote(pending.issuer)} (RFC 9207 section 2.4); the response is not used`;
    throw refusalError("iss_mismatch", { field: "iss", value: iss, from, rule });
  }
  // An `error` without a value counts as missing, so a code is still required.
  if (!parameters.get("error") && !parameters.get("code")) {
    const rule = "is required (RFC 6749 section 4.1.2)";
    throw refusalError("bad_callback", { field: "code", value: undefined, from, rule });
  }
  try {
    const as: oauth.AuthorizationServer = {
      issuer: pending.issuer,
      authorization_response_iss_parameter_supported: pending.promisesIss,
    };
    return oauth.validateAuthResponse(as, { client_id: pending.clientId }, parameters, pending.state);
  } catch (thrown) {
    throw oauthError(thrown, pending.issuer);
  }
}

/** The error for a response without the issuer that the metadata announce: it may be that of another issuer. */
function missingIssError(issuer: string): AgentAuthError {
  const announced = "authorization_response_iss_parameter_supported";
  const message = `iss is missing from the callback of the login, although the metadata of ${quote(issuer)} announce it (${announced}): such a response may come from another issuer and is not used (RFC 9207 section 2.4)`;
  const hint = `no option accepts that; the operator of ${quote(issuer)} has to send iss, or no longer announce it`;
  return new AgentAuthError("iss_mismatch", message, { class: "refused", hint });
}
