import type { AgentAuthError } from "../../errors.js";
import type { AgentClient, LoginStatus } from "../../oauth/agent.js";
import { IDP_ACCOUNT } from "../../oauth/model/machine-grant.js";
import { flagText } from "../flags/flag-name.js";
import type { CommandContext } from "../runtime/context.js";
import { cliHint } from "../runtime/hints.js";
import type { PendingLogin } from "./started-logins.js";

/** A stored login as the command line prints it, without secrets. */
export interface PrintedLogin extends Omit<LoginStatus, "exceptions" | "state"> {
  /**
   * `expired` if the token has expired, or if the issuer rejected the grant (`reason`) and a new login is required;
   * `pending` if the login was started with `login --no-wait` and is not finished: `expires_at` is until when it can be.
   */
  state: LoginStatus["state"] | "pending";
  /** The id for `login --wait` of a pending login. */
  login_id?: string;
  /** How the user logs in, of a pending login. */
  flow?: "browser" | "paste" | "device";
  /** The flags that the login was made with and that stay in force for it, such as `--accept-token-type user`. */
  exceptions: readonly string[];
}

/** A stored login with its exceptions as flags. */
export function printedLogin(login: LoginStatus): PrintedLogin {
  const exceptions = login.exceptions.map(({ option, value }) => flagText(option, value));
  return { ...login, exceptions };
}

/** A started login in the same form. */
export function printedPendingLogin({ id, login, expiresAt, startedAt }: PendingLogin, home: string): PrintedLogin {
  return {
    profile: login.profile,
    server: login.server,
    account: login.account ?? null,
    grant: login.account === IDP_ACCOUNT ? "idp" : "login",
    token_type: login.proofKey === undefined ? "Bearer" : "DPoP",
    resource: login.resource,
    issuer: login.issuer.issuer,
    exceptions: [],
    client_id: login.client.clientId,
    scope: login.scope.join(" ") || null,
    expires_at: new Date(expiresAt).toISOString(),
    logged_in_at: new Date(startedAt).toISOString(),
    state: "pending",
    refreshable: false,
    refresh_lost_at: null,
    reason: null,
    stored_in: home,
    login_id: id,
    flow: login.flow ?? "browser",
  };
}

/** Whether a login gives a token without the user. */
export function isUsable({ state, refreshable }: Pick<PrintedLogin, "state" | "refreshable">): boolean {
  return state === "valid" || (state === "expired" && refreshable);
}

/** Warns of stored logins that cannot be read: they are still there, with their tokens. */
export function warnOfUnusable(errors: readonly AgentAuthError[], { io, redactor }: CommandContext): void {
  for (const { message, hint } of errors.map((error) => cliHint(error))) {
    io.warn(`a stored login cannot be used: ${redactor.redact(message)}`);
    if (hint !== undefined) io.say(`hint: ${hint}`);
  }
}

/** Revokes what an issuer did not revoke at earlier logouts, and says how many of them are done. */
export async function retryRevocations(agent: AgentClient, { io, signal }: CommandContext): Promise<void> {
  // The command has done what it was called for.
  const { revoked } = await agent.retryRevocations({ signal }).catch(() => ({ revoked: 0 }));
  if (revoked > 0) io.say(`revoked the tokens of ${revoked} earlier ${revoked === 1 ? "logout" : "logouts"}`);
}
