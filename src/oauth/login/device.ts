import * as oauth from "oauth4webapi";
import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { checkAddress } from "../../http/address-class.js";
import { Secret } from "../../redact.js";
import { clientIssuer, obtainClient } from "../client/registration.js";
import { acceptedTypeFor, overridesFor, requestParamsFor } from "../discovery/overrides.js";
import { proverFor } from "../dpop/dpop.js";
import type { TokenResponse } from "../model/grant.js";
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
import type { Preparation } from "./login-plan.js";

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

/** A login whose tokens are bound to a key, if it has one. */
type DeviceLogin = Preparation & { proofKey: Secret | undefined };

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
  const { issuer, client, acceptedTokenType } = login;
  const prover = proverFor(login, context.nonces);
  const party = { issuer: issuer.issuer, tokenEndpoint: issuer.tokenEndpoint, client, acceptedTokenType };
  return withLoginClient(context, { client, form: PLACEHOLDER_REDIRECT, signal }, (onClient) => {
    const call: PollCall = { ...context, ...party, prover, signal };
    call.onClient = (accepted) => {
      call.client = accepted;
      onClient(accepted);
    };
    return poll(context, login, call);
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

type PollCall = TokenCall & { signal: AbortSignal };

/** Polls until there is a result, less often while the issuer is unavailable (RFC 8628 section 3.5). */
async function poll(context: LoginContext, login: PreparedDeviceLogin, call: PollCall): Promise<TokenResponse> {
  const { clock } = context;
  const { server, resource, device } = login;
  const loginSeconds = context.loginTimeoutMs / 1000;
  const isLoginShorter = loginSeconds < secondsLeft(clock, device);
  const endsAt = clock.now() + secondsToPoll(context, login) * 1000;
  // A stored interval may be longer than the bound: slow_down added to it.
  let interval = Math.max(device.intervalSeconds, MIN_INTERVAL_S);
  let pause = interval;
  for (;;) {
    const left = (endsAt - clock.now()) / 1000;
    await clock.sleep(Math.min(pause, left) * 1000, call.signal);
    // A poll before its time would only get slow_down.
    if (left < pause) throw isLoginShorter ? timeoutError(server, loginSeconds) : codeExpiredError();
    try {
      return await requestToken(call, device.deviceCode.reveal(), resource);
    } catch (error) {
      if (!isAgentAuthError(error)) throw error;
      if (error.code === "slow_down") {
        interval += SLOW_DOWN_S;
        login.onSlowDown?.(interval);
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
