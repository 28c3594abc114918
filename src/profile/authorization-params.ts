import { type AuthorizationParams, checkAuthorizationParam } from "../oauth/model/authorization-params.js";
import type { Settings } from "./settings.js";

/** The parameters of the setting `authorize_params`. @throws `TypeError` with the rule */
export function readAuthorizationParams(text: string): AuthorizationParams {
  const pairs = [...new URLSearchParams(text)];
  if (pairs.length === 0) throw new TypeError("must be name=value, with & between several");
  for (const [name, value] of pairs) checkAuthorizationParam(name, value);
  return Object.fromEntries(pairs);
}

/** The parameters that the settings name. */
export function authorizationParamsOf({ authorizeParams }: Pick<Settings, "authorizeParams">): AuthorizationParams {
  return authorizeParams === undefined ? {} : readAuthorizationParams(authorizeParams.value);
}
