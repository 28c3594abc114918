import { follow, untilAborted } from "../../http/deadline.js";
import { refused } from "../../http/refuse.js";
import { foreignFirstEndpoint } from "../discovery/first-endpoint.js";
import { overridesFor } from "../discovery/overrides.js";
import type { Discovered } from "../model/metadata.js";
import type { LoginContext } from "./login-context.js";
import type { LoginMethod } from "./login-method.js";
import { timeoutError } from "./login-timeout.js";

/** How a login is going to be done. */
export interface LoginPlan {
  flow: LoginContext["flow"];
  /** Asks the user; undefined if no user can be asked. */
  method: Pick<LoginMethod, "confirmEndpoints"> | undefined;
  signal: AbortSignal;
}

/**
 * Rejects an issuer that may steal the logins of another one (mix-up, RFC 9700 section 4.4): its metadata name the
 * authorization endpoint of an honest issuer, and its own token endpoint gets the code and the verifier. A browser
 * login is safe if both endpoints have one origin, or if the callback names its issuer (RFC 9207). A device login has
 * no callback, so both endpoints must have one origin. Everything else needs the user's consent.
 *
 * @returns the context of the login, in which a consent of the user is one of the overrides
 * @throws `AgentAuthError` `bad_server_metadata` without consent, `timeout` if the user does not answer
 */
export async function checkEndpointOrigins(
  context: LoginContext,
  { server, issuer }: Discovered,
  { flow, method, signal }: LoginPlan,
): Promise<LoginContext> {
  const first = foreignFirstEndpoint(issuer, flow);
  if (first === undefined) return context;
  if (overridesFor(issuer, context).includes("allowCrossOriginEndpoints")) return context;
  const prompt = {
    resource: server,
    issuer: issuer.issuer,
    authorizationEndpoint: first.address,
    tokenEndpoint: issuer.tokenEndpoint,
  };
  const deadline = follow(signal, context.loginTimeoutMs, () => timeoutError(server, context.loginTimeoutMs / 1000));
  try {
    const confirming = method?.confirmEndpoints?.({ ...prompt, signal: deadline.signal });
    if (confirming && (await untilAborted(confirming, deadline.signal)) === true)
      return { ...context, overrides: { ...context.overrides, allowCrossOriginEndpoints: true } };
  } finally {
    deadline.release();
  }
  const value = issuer.tokenEndpoint;
  const rule = `must be at ${new URL(first.address).origin}, the origin of its ${first.field}${first.unless} (RFC 9700 section 4.4)`;
  const override = "allowCrossOriginEndpoints";
  throw refused("bad_server_metadata", { field: "token_endpoint", value, from: issuer.url, rule, override });
}
