import { type AgentAuthError, isAgentAuthError, withHint } from "../../errors.js";
import { followSignal } from "../../http/deadline.js";
import type { AgentClient } from "../../oauth/agent.js";
import {
  isLoginNotRequired,
  loginNotRequiredError,
  requiredUnlessAbsent,
} from "../../oauth/discovery/challenge-request.js";
import type { TokenOptions } from "../../oauth/grant/grant-requirements.js";
import { type GrantFlag, strategyOf } from "../../oauth/machine/grant-strategies.js";
import type { AccessToken } from "../../oauth/model/grant.js";
import { machineGrantOf } from "../../oauth/model/machine-grant.js";
import { parseMcpUrl } from "../../oauth/model/resource.js";
import { shellWord } from "../../redact.js";

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
    const type = machineGrantOf(account);
    return type && strategyOf({ type }).flag;
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
export async function tokenOf(agent: Agent, url: string, options: TokenOptions): Promise<AccessToken> {
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
