import * as oauth from "oauth4webapi";
import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { checkAddress } from "../../http/peer-address.js";
import { obtainClient } from "../client/registration.js";
import type { Discovered } from "../discovery/types.js";
import type { Prover } from "../dpop/dpop.js";
import type { ClientRecord, TokenAnswer } from "../grant/grant.js";
import { answerOf, prepare, type TokenCall, withOAuthErrors } from "../token/token.js";
import { isScopeRefusal, reportReducedScope, withoutAddedScope } from "./authorize-step.js";
import type { LoginContext, LoginRequest } from "./login-context.js";
import { timeoutError } from "./login-timeout.js";
import { isInvalidClient, withClientRefusal, withScopeHint } from "./token-step.js";

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

/** Input of a device login. */
interface DeviceLogin {
  found: Discovered;
  scope: readonly string[];
  /** Those of them that the caller did not request. */
  addedScope: readonly string[];
  resource: string;
  request: LoginRequest;
  /** Signs the DPoP proofs of the key that the tokens are bound to. */
  prover: Prover | undefined;
}

/** A login whose code the issuer has issued. */
interface StartedDeviceLogin {
  call: TokenCall;
  scope: readonly string[];
  device: oauth.DeviceAuthorizationResponse;
}

/**
 * Logs the user in on another device (RFC 8628): shows a code and polls the issuer, no more often than it allows, until
 * the user has finished, the code has expired, or the login has timed out.
 *
 * @throws `AgentAuthError` `no_device_flow`, `access_denied`, `expired_token`, `timeout`
 */
export async function deviceLogin(
  context: LoginContext,
  login: DeviceLogin,
): Promise<{ client: ClientRecord; answer: TokenAnswer; scope: readonly string[] }> {
  const { found, resource, request, prover } = login;
  const { issuer } = found;
  const endpoint = issuer.deviceAuthorizationEndpoint;
  if (endpoint === undefined || request.method.showDeviceCode === undefined) {
    throw new AgentAuthError("no_device_flow", `${issuer.issuer} does not support login on another device (RFC 8628)`, {
      class: "auth",
      hint: "use the flow browser, with a login method that pastes where no browser can reach this machine",
      remedy: { action: "configure", option: "flow" },
    });
  }
  const { signal } = request;
  const moreGrants = [DEVICE_CODE_GRANT];
  const registration = { ...context, server: issuer, redirectUri: PLACEHOLDER_REDIRECT, moreGrants, signal };
  const start = async (wanted: Pick<DeviceLogin, "scope" | "addedScope">): Promise<StartedDeviceLogin> => {
    const { scope } = wanted;
    const client = await obtainClient({ ...registration, scope, now: context.clock.epoch() });
    const call = { ...context, issuer: issuer.issuer, tokenEndpoint: issuer.tokenEndpoint, client, signal };
    const parameters = { resource, ...(scope.length > 0 && { scope: scope.join(" ") }) };
    const loginClient = { client, form: PLACEHOLDER_REDIRECT, signal };
    try {
      return {
        call,
        scope,
        device: await withClientRefusal(context, loginClient, () => requestDeviceCode(call, endpoint, parameters)),
      };
    } catch (error) {
      const { server } = found;
      if (!isScopeRefusal(error, wanted.addedScope)) {
        throw withScopeHint(error, context, { server, scope, account: context.loginHint });
      }
      reportReducedScope(context, { ...wanted, issuer });
      return start(withoutAddedScope(wanted));
    }
  };
  const known = await context.store.readClient(issuer.issuer, PLACEHOLDER_REDIRECT);
  const { call, device, scope } = await start(login).catch((error: unknown) => {
    // The issuer may have forgotten a client from an earlier login.
    if (known === undefined || !isInvalidClient(error)) throw error;
    return start(login);
  });
  const loginSeconds = context.loginTimeoutMs / 1000;
  const codeSeconds = Math.min(device.expires_in, MAX_LIFE_S);
  const policy = { bounds: await context.addressPolicy() };
  const complete = device.verification_uri_complete;
  await request.method.showDeviceCode({
    verificationUri: checkAddress(device.verification_uri, "verification_uri", endpoint, policy),
    verificationUriComplete:
      complete === undefined ? undefined : checkAddress(complete, "verification_uri_complete", endpoint, policy),
    userCode: device.user_code,
    expiresIn: Math.min(codeSeconds, loginSeconds),
  });
  const answer = await poll(context, {
    request: () => requestToken({ ...call, prover }, device.device_code, resource),
    interval: device.interval ?? INTERVAL_S,
    seconds: Math.min(codeSeconds, loginSeconds),
    timeoutError: () => (loginSeconds < codeSeconds ? timeoutError(found.server, loginSeconds) : codeExpired()),
    signal,
  });
  return { client: call.client, answer, scope };
}

/** Requests a code (RFC 8628 section 3.1). */
function requestDeviceCode(
  call: TokenCall & { client: ClientRecord },
  endpoint: string,
  parameters: Record<string, string>,
) {
  const { as, client, auth, options } = prepare(call);
  const server = { ...as, device_authorization_endpoint: endpoint };
  return withOAuthErrors({ tokenEndpoint: endpoint }, async () => {
    const response = await oauth.deviceAuthorizationRequest(server, client, auth, parameters, options);
    return oauth.processDeviceAuthorizationResponse(server, client, response);
  });
}

/** Polls the token endpoint once (RFC 8628 section 3.4). */
async function requestToken(call: TokenCall, deviceCode: string, resource: string): Promise<TokenAnswer> {
  const { as, client, auth, options } = prepare(call);
  return withOAuthErrors(call, async () => {
    const response = await oauth.deviceCodeGrantRequest(as, client, auth, deviceCode, {
      ...options,
      additionalParameters: { resource },
    });
    return answerOf(call, response, await oauth.processDeviceCodeResponse(as, client, response));
  });
}

interface Polling {
  request: () => Promise<TokenAnswer>;
  /** Seconds between two polls, as set by the issuer. */
  interval: number;
  /** Seconds until polling stops. */
  seconds: number;
  /** The error at that time. */
  timeoutError: () => AgentAuthError;
  signal: AbortSignal;
}

/** Polls until there is a result, less often while the issuer is unavailable (RFC 8628 section 3.5). */
async function poll(
  { clock }: LoginContext,
  { request, seconds, timeoutError, signal, interval: initial }: Polling,
): Promise<TokenAnswer> {
  const endsAt = clock.now() + seconds * 1000;
  let interval = Math.min(Math.max(initial, MIN_INTERVAL_S), MAX_INTERVAL_S);
  let pause = interval;
  for (;;) {
    const left = (endsAt - clock.now()) / 1000;
    if (left > 0) await clock.sleep(Math.min(pause, left) * 1000, signal);
    // A poll before its time would only get slow_down.
    if (left < pause) throw timeoutError();
    try {
      return await request();
    } catch (error) {
      if (!isAgentAuthError(error)) throw error;
      if (error.code === "slow_down") interval += SLOW_DOWN_S;
      if (error.code === "slow_down" || error.code === "authorization_pending") pause = interval;
      else if (error.class === "unavailable") pause = Math.max(nextPause(pause), error.retryAfter ?? 0);
      else throw error;
    }
  }
}

function nextPause(pause: number): number {
  return Math.max(pause, Math.min(Math.max(pause * 2, pause + SLOW_DOWN_S), MAX_INTERVAL_S));
}

function codeExpired(): AgentAuthError {
  const message = "the code was not entered in time";
  return new AgentAuthError("expired_token", message, { class: "auth", hint: "start the login again" });
}
