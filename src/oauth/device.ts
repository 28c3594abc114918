import * as oauth from "oauth4webapi";
import { AgentAuthError } from "../errors.js";
import { checkAddress } from "../http/peer-address.js";
import type { Discovered } from "./discovery.js";
import type { Prover } from "./dpop.js";
import type { ClientRecord, TokenAnswer } from "./grant.js";
import type { LoginContext, LoginRequest } from "./login-context.js";
import { obtainClient } from "./registration.js";
import { answerOf, oauthError, prepare, told, withNonce } from "./token.js";

const GRANT = "urn:ietf:params:oauth:grant-type:device_code";
// Nobody is sent back in this flow; a registration wants an address all the same.
const REDIRECT = "http://127.0.0.1/device";

/** What a device login asks for. */
interface DeviceLogin {
  found: Discovered;
  scope: readonly string[];
  resource: string;
  request: LoginRequest;
  /** Proves the key that the tokens are to be bound to. */
  prover: Prover | undefined;
}

/**
 * Signs a person in on another device (RFC 8628): shows a code and asks the issuer, no more often than it allows, until
 * the person is done.
 *
 * @throws `AgentAuthError` `no_device_flow`, `access_denied`, `expired_token`
 */
export async function deviceLogin(
  context: LoginContext,
  { found, scope, resource, request, prover }: DeviceLogin,
): Promise<{ client: ClientRecord; answer: TokenAnswer }> {
  const { issuer } = found;
  const endpoint = issuer.deviceAuthorizationEndpoint;
  if (endpoint === undefined || request.method.showDeviceCode === undefined) {
    throw new AgentAuthError("no_device_flow", `${issuer.issuer} does not offer sign-in on another device (RFC 8628)`, {
      class: "auth",
      hint: "use --flow browser, or --flow paste where no browser can reach this machine",
    });
  }
  const { signal } = request;
  const client = await obtainClient({
    ...context,
    server: issuer,
    redirectUri: REDIRECT,
    scope,
    moreGrants: [GRANT],
    now: context.clock.epoch(),
    signal,
  });
  const call = { ...context, issuer: issuer.issuer, tokenEndpoint: issuer.tokenEndpoint, client, signal };
  const { as, client: known, auth, options } = prepare(call);
  const bound = { ...call, prover };
  const { options: boundOptions } = prepare(bound);
  const server = { ...as, device_authorization_endpoint: endpoint };
  const device = await told({ tokenEndpoint: endpoint, client }, async () => {
    const parameters = { resource, ...(scope.length > 0 && { scope: scope.join(" ") }) };
    const response = await oauth.deviceAuthorizationRequest(server, known, auth, parameters, options);
    return oauth.processDeviceAuthorizationResponse(server, known, response);
  });
  const policy = { bounds: await context.bounds() };
  const complete = device.verification_uri_complete;
  await request.method.showDeviceCode({
    verificationUri: checkAddress(device.verification_uri, "verification_uri", endpoint, policy),
    verificationUriComplete:
      complete === undefined ? undefined : checkAddress(complete, "verification_uri_complete", endpoint, policy),
    userCode: device.user_code,
    expiresIn: device.expires_in,
  });
  const endsAt = context.clock.now() + device.expires_in * 1000;
  let interval = device.interval ?? 5;
  while (context.clock.now() < endsAt) {
    await context.clock.sleep(interval * 1000, signal);
    try {
      const ask = async () => {
        const response = await oauth.deviceCodeGrantRequest(server, known, auth, device.device_code, {
          ...boundOptions,
          additionalParameters: { resource },
        });
        return answerOf(bound, response, await oauth.processDeviceCodeResponse(server, known, response));
      };
      return { client, answer: await withNonce(bound, ask) };
    } catch (thrown) {
      const error = oauthError(thrown, issuer.tokenEndpoint, [device.device_code, client.clientSecret?.reveal() ?? ""]);
      const code = error instanceof AgentAuthError ? error.code : undefined;
      if (code === "slow_down") interval += 5;
      else if (code !== "authorization_pending" && !(error instanceof AgentAuthError && error.class === "unavailable"))
        throw error;
    }
  }
  throw new AgentAuthError("expired_token", "nobody entered the code in time", {
    class: "auth",
    hint: "begin the sign-in again",
  });
}
