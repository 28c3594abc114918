import * as oauth from "oauth4webapi";
import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { checkAddress } from "../../http/address-class.js";
import { Secret } from "../../redact.js";
import { clientIssuer, obtainClient } from "../client/registration.js";
import { acceptedTypeFor, overridesFor, requestParamsFor } from "../discovery/overrides.js";
import { proverFor } from "../dpop/dpop.js";
import type { TokenResponse } from "../model/grant.js";
import type { Discovered } from "../model/metadata.js";
import { resourceParameter } from "../model/resource.js";
import { readTokenResponse, sendAuthenticated, type TokenCall } from "../token/token.js";
import type { ClientResponse, DeviceAuthorization, LoginContext, PreparedDeviceLogin } from "./authorization.js";
import {
  isInvalidClient,
  isScopeRefusal,
  reportReducedScope,
  withLoginClient,
  withoutAddedScope,
  withScopeHint,
} from "./authorization.js";
import { timeoutError } from "./login-method.js";

const DEVICE_CODE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";
// This flow has no redirect, but a registration requires an address.
const PLACEHOLDER_REDIRECT = "http://127.0.0.1/device";

/** Default seconds between two polls (RFC 8628 section 3.2), and the bounds for what the issuer sets. */
const INTERVAL_S = 5;
const MIN_INTERVAL_S = 1;
const MAX_INTERVAL_S = 60;
/** Seconds added on each `slow_down` of the issuer (RFC 8628 section 3.5). */
const SLOW_DOWN_S = 5;
/** Upper bound in seconds for the lifetime of a code. */
const MAX_LIFE_S = 24 * 3600;

interface DeviceLogin {
  found: Discovered;
  scope: readonly string[];
  /** Those of them that the caller did not request. */
  addedScope: readonly string[];
  resource: string;
  proofKey: Secret | undefined;
  signal: AbortSignal;
}

interface IssuedCode extends ClientResponse<oauth.DeviceAuthorizationResponse> {
  scope: readonly string[];
}

/** Requests a code that the user enters on another device (RFC 8628). @throws `AgentAuthError` `no_device_flow` */
export async function startDeviceLogin(context: LoginContext, login: DeviceLogin): Promise<PreparedDeviceLogin> {
  const { found, resource, proofKey } = login;
  const { issuer } = found;
  const endpoint = issuer.deviceAuthorizationEndpoint;
  if (endpoint === undefined) throw noDeviceFlowError(issuer.issuer);
  const known = await context.store.readClient(clientIssuer(issuer), PLACEHOLDER_REDIRECT);
  const { client, scope, response } = await obtainCode(context, login, endpoint).catch((error: unknown) => {
    // The issuer may have forgotten a client from an earlier login.
    if (known === undefined || !isInvalidClient(error)) throw error;
    return obtainCode(context, login, endpoint);
  });
  const request = requestParamsFor(issuer, context);
  const acceptedTokenType = acceptedTypeFor(issuer, context);
  const overrides = overridesFor(issuer, context);
  const bounds = await context.addressPolicy();
  const device = readDeviceResponse(response, endpoint, { now: context.clock.epoch(), bounds });
  const { loginHint: account } = context;
  const target = { server: found.server, account, issuer, client, scope, resource };
  return { ...target, ...request, overrides, acceptedTokenType, proofKey, device };
}

/** Obtains a client, and a code for it; once more without the added scopes, if the issuer refuses those. */
async function obtainCode(context: LoginContext, login: DeviceLogin, endpoint: string): Promise<IssuedCode> {
  const { found, scope, addedScope, resource, signal } = login;
  const { issuer, server } = found;
  const registration = { ...context, server: issuer, redirectUri: PLACEHOLDER_REDIRECT, signal };
  const moreGrants = [DEVICE_CODE_GRANT];
  const client = await obtainClient({ ...registration, moreGrants, scope, now: context.clock.epoch() });
  const { issuer: name, tokenEndpoint } = issuer;
  const acceptedTokenType = acceptedTypeFor(issuer, context);
  const call = { ...context, issuer: name, tokenEndpoint, client, acceptedTokenType, signal };
  const { authorizationParams = {} } = requestParamsFor(issuer, context);
  const parameters = {
    ...Object.fromEntries(Object.entries(authorizationParams).filter(([, value]) => value !== "")),
    ...resourceParameter(resource),
    ...(scope.length > 0 && { scope: scope.join(" ") }),
  };
  const loginClient = { client, form: PLACEHOLDER_REDIRECT, signal };
  try {
    const issued = await withLoginClient(context, loginClient, (onClient) =>
      requestDeviceCode({ ...call, onClient }, endpoint, parameters),
    );
    return { ...issued, scope };
  } catch (error) {
    if (!isScopeRefusal(error, addedScope))
      throw withScopeHint(error, context, { server, scope, account: context.loginHint });
    reportReducedScope(context, { addedScope, issuer });
    return obtainCode(context, { ...login, ...withoutAddedScope({ scope, addedScope }) }, endpoint);
  }
}

export function noDeviceFlowError(issuer: string): AgentAuthError {
  const message = `${issuer} does not support login on another device (RFC 8628)`;
  const hint = "use the flow browser, with a login method that pastes where no browser can reach this machine";
  const remedy = { action: "configure", option: "flow" } as const;
  return new AgentAuthError("no_device_flow", message, { class: "auth", hint, remedy });
}

function readDeviceResponse(
  response: oauth.DeviceAuthorizationResponse,
  endpoint: string,
  { now, bounds }: { now: number; bounds: Awaited<ReturnType<LoginContext["addressPolicy"]>> },
): DeviceAuthorization {
  const check = (address: string, field: string) => checkAddress(address, field, endpoint, { bounds });
  const complete = response.verification_uri_complete;
  return {
    deviceCode: new Secret(response.device_code),
    userCode: response.user_code,
    verificationUri: check(response.verification_uri, "verification_uri"),
    verificationUriComplete: complete === undefined ? undefined : check(complete, "verification_uri_complete"),
    intervalSeconds: Math.min(Math.max(response.interval ?? INTERVAL_S, MIN_INTERVAL_S), MAX_INTERVAL_S),
    expiresAt: now + Math.min(response.expires_in, MAX_LIFE_S) * 1000,
  };
}

/** Seconds until polling stops: the code has expired, or the login has timed out. */
export function secondsToPoll({ clock, loginTimeoutMs }: LoginContext, { device }: PreparedDeviceLogin): number {
  return Math.min(secondsLeft(clock, device), loginTimeoutMs / 1000);
}

function secondsLeft(clock: LoginContext["clock"], { expiresAt }: DeviceAuthorization): number {
  return Math.max(0, Math.round((expiresAt - clock.epoch()) / 1000));
}

/**
 * Polls the issuer, no more often than it allows, until the user has entered the code, the code has expired, or the login
 * has timed out.
 *
 * @throws `AgentAuthError` `access_denied`, `expired_token`, `timeout`
 */
export async function pollDeviceLogin(
  context: LoginContext,
  login: PreparedDeviceLogin,
  signal: AbortSignal,
): Promise<ClientResponse<TokenResponse>> {
  const { server, issuer, client, acceptedTokenType, resource, device } = login;
  const { issuer: name, tokenEndpoint } = issuer;
  const prover = proverFor(login, context.nonces);
  const party = { issuer: name, tokenEndpoint, client, acceptedTokenType };
  const loginSeconds = context.loginTimeoutMs / 1000;
  const isLoginShorter = loginSeconds < secondsLeft(context.clock, device);
  return withLoginClient(context, { client, form: PLACEHOLDER_REDIRECT, signal }, (onClient) => {
    const call: TokenCall = { ...context, ...party, prover, signal };
    call.onClient = (accepted) => {
      call.client = accepted;
      onClient(accepted);
    };
    return poll(context, {
      request: () => requestToken(call, device.deviceCode.reveal(), resource),
      interval: device.intervalSeconds,
      onSlowDown: login.onSlowDown,
      seconds: secondsToPoll(context, login),
      timeoutError: () => (isLoginShorter ? timeoutError(server, loginSeconds) : codeExpiredError()),
      signal,
    });
  });
}

/** Requests a code (RFC 8628 section 3.1). */
function requestDeviceCode(call: TokenCall, endpoint: string, parameters: Record<string, string>) {
  return sendAuthenticated({ ...call, tokenEndpoint: endpoint }, async ({ as, client, auth, options }) => {
    const server = { ...as, device_authorization_endpoint: endpoint };
    const response = await oauth.deviceAuthorizationRequest(server, client, auth, parameters, options);
    return oauth.processDeviceAuthorizationResponse(server, client, response);
  });
}

/** Polls the token endpoint once (RFC 8628 section 3.4). */
async function requestToken(call: TokenCall, deviceCode: string, resource: string): Promise<TokenResponse> {
  return sendAuthenticated(call, async ({ as, client, auth, options, processing }) => {
    const response = await oauth.deviceCodeGrantRequest(as, client, auth, deviceCode, {
      ...options,
      additionalParameters: resourceParameter(resource),
    });
    return readTokenResponse(call, response, await oauth.processDeviceCodeResponse(as, client, response, processing));
  });
}

interface Polling {
  request: () => Promise<TokenResponse>;
  /** Seconds between two polls, as set by the issuer. */
  interval: number;
  onSlowDown: PreparedDeviceLogin["onSlowDown"];
  /** Seconds until polling stops. */
  seconds: number;
  timeoutError: () => AgentAuthError;
  signal: AbortSignal;
}

/** Polls until there is a result, less often while the issuer is unavailable (RFC 8628 section 3.5). */
async function poll(
  { clock }: LoginContext,
  { request, seconds, timeoutError, signal, interval: initial, onSlowDown }: Polling,
): Promise<TokenResponse> {
  const endsAt = clock.now() + seconds * 1000;
  // A stored interval may be longer than the bound: slow_down added to it.
  let interval = Math.max(initial, MIN_INTERVAL_S);
  let pause = interval;
  for (;;) {
    const left = (endsAt - clock.now()) / 1000;
    await clock.sleep(Math.min(pause, left) * 1000, signal);
    // A poll before its time would only get slow_down.
    if (left < pause) throw timeoutError();
    try {
      return await request();
    } catch (error) {
      if (!isAgentAuthError(error)) throw error;
      if (error.code === "slow_down") {
        interval += SLOW_DOWN_S;
        onSlowDown?.(interval);
      }
      if (error.code === "slow_down" || error.code === "authorization_pending") pause = interval;
      else if (error.class === "unavailable")
        pause = Math.max(
          pause,
          Math.min(Math.max(pause * 2, pause + SLOW_DOWN_S), MAX_INTERVAL_S),
          error.retryAfter ?? 0,
        );
      else throw error;
    }
  }
}

function codeExpiredError(): AgentAuthError {
  const message = "the code was not entered in time";
  return new AgentAuthError("expired_token", message, { class: "auth", hint: "start the login again" });
}
