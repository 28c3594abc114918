import { type AgentAuthError, isAgentAuthError, usageError, withHint } from "../../errors.js";
import { followSignal } from "../../http/deadline.js";
import type { AgentClient, LoginStatus } from "../../oauth/agent.js";
import {
  isLoginNotRequired,
  loginNotRequiredError,
  requiredUnlessAbsent,
} from "../../oauth/discovery/challenge-request.js";
import type { TokenOptions } from "../../oauth/grant/grant-requirements.js";
import { findStrategy, type GrantFlag } from "../../oauth/machine/grant-strategies.js";
import type { AccessToken } from "../../oauth/model/grant.js";
import { IDP_ACCOUNT, parseMachineAccount } from "../../oauth/model/machine-grant.js";
import { parseMcpUrl } from "../../oauth/model/resource.js";
import { shellWord } from "../../redact.js";
import { flagText } from "../flags/flag-name.js";
import type { CommandContext } from "../runtime/context.js";
import { cliHint } from "../runtime/hints.js";
import type { PendingLogin } from "./started-logins.js";

/** The address of an MCP server as it was typed. @throws `AgentAuthError` `usage` */
export function parseMcpUrlArgument(value: string): string {
  try {
    return parseMcpUrl(value).url;
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw usageError(cause.message, undefined, cause);
  }
}

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

type Agent = Pick<AgentClient, "token" | "requiresLogin" | "status" | "discover">;

/** Without a user to log in, `token` fails within a second. */
const PROBE_MS = 800;

/**
 * Logs in before a request, if its server requires a login, so that the login does not count against a time limit.
 *
 * @returns the machine grant that gets the token, also that of a login at an identity provider; undefined for a user's login
 */
export async function loginFirst(agent: Agent, url: string, options: TokenOptions): Promise<GrantFlag | undefined> {
  try {
    const { account } = await agent.token(url, options);
    const type = parseMachineAccount(account);
    return type && findStrategy({ type }).flag;
  } catch (error) {
    if (isLoginNotRequired(error)) return undefined;
    if (!isLoginRequired(error)) throw error;
    if (await agent.requiresLogin(url, options).catch(requiredUnlessAbsent))
      throw await withOpenHint(agent, url, error);
    return undefined;
  }
}

/** The error of a stored login that cannot be used, with a hint if its server answers without a token by now. */
async function withOpenHint(agent: Agent, url: string, error: AgentAuthError): Promise<AgentAuthError> {
  if ((await agent.status(url)).length === 0) return error;
  const { found, error: failure } = await agent.discover(url);
  if (!found?.isUnprotected && !isLoginNotRequired(failure)) return error;
  const way = `it answers without a token now, and after agentauth logout ${shellWord(url)} it is used that way`;
  return withHint(error, `${way}; to keep the login`, error.remedy);
}

/** A token; an error that says so if the server requires no login, rather than one that asks for a login. */
export async function requestToken(agent: Agent, url: string, options: TokenOptions): Promise<AccessToken> {
  try {
    return await agent.token(url, options);
  } catch (error) {
    if (!isLoginRequired(error)) throw error;
    const call = followSignal(options.signal, PROBE_MS, () => error);
    const isRequired = await agent
      .requiresLogin(url, { signal: call.signal })
      .catch(requiredUnlessAbsent)
      .finally(() => call.release());
    throw isRequired ? error : loginNotRequiredError(parseMcpUrl(url).resource);
  }
}

function isLoginRequired(error: unknown): error is AgentAuthError {
  return isAgentAuthError(error, "login_required") && error.status === undefined;
}
