import { AgentAuthError, type LoginRemedy } from "../../errors.js";
import { quote } from "../../redact.js";
import type { DpopPolicy } from "../dpop/dpop.js";
import type { GrantKey } from "../grant/grant-store.js";

/** What a sign-in has to be like for its token to be good for what was asked. */
export interface LoginWish {
  /** Scopes, separated by blanks. */
  scope?: string | undefined;
  /** Whether its tokens are bound to a key. */
  dpop?: DpopPolicy | undefined;
}

/** The hint of an error whose remedy is a login and nothing else. */
export const LOGIN_HINT = "call login() with the account and the scope of the remedy";

/** The error for a server that needs a login of the user: it names the profile, and its remedy the login. */
export function loginRequired(
  key: GrantKey,
  reason: string,
  { cause, ...wish }: LoginWish & { cause?: unknown } = {},
): AgentAuthError {
  const { profile, server, account } = key;
  const whose = account === undefined ? `profile ${profile}` : `profile ${profile}, account ${quote(account)}`;
  const message = `a login is required for ${quote(server)} (${whose}): ${reason}`;
  const remedy = loginRemedy(key, wish);
  return new AgentAuthError("login_required", message, { class: "auth", hint: LOGIN_HINT, remedy, cause });
}

/** The login that helps, without defaults. */
export function loginRemedy(
  { profile, server, account }: GrantKey,
  { scope = "", dpop = "auto" }: LoginWish = {},
): LoginRemedy {
  return {
    action: "login",
    server,
    ...(profile !== "default" && { profile }),
    ...(account !== undefined && { account }),
    ...(scope !== "" && { scope }),
    ...(dpop !== "auto" && { dpop }),
  };
}
