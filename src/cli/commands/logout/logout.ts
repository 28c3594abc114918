import { AgentAuthError, isAgentAuthError } from "../../../errors.js";
import type { AgentClient } from "../../../oauth/agent.js";
import type { LoginStatus } from "../../../oauth/login/login-status.js";
import type { ColumnSet } from "../../output/columns.js";
import type { CommandContext } from "../../runtime/context.js";

/** The result of one logout, as `logout -o json` prints it. */
export interface LogoutResult {
  /** The MCP server. */
  server: string;
  /** The profile that the login belonged to. */
  profile: string;
  /** The account that the login was for; null where none was named. */
  account: string | null;
  /** Whether a stored login was deleted. */
  removed: boolean;
  /** Whether the issuer revoked the tokens; null if it has no revocation endpoint, or was not called. */
  revoked: boolean | null;
  /** Why the login is still stored, or why revocation failed. */
  error: string | null;
}

const COLUMNS = [
  { path: "server", header: "SERVER" },
  { path: "removed", header: "REMOVED", kind: "bool" },
  { path: "revoked", header: "REVOKED", kind: "bool" },
  { path: "error", header: "ERROR" },
] as const;

/** The columns of logouts. */
export const LOGOUT_COLUMNS: ColumnSet = {
  columns: COLUMNS,
  wideColumns: [...COLUMNS, { path: "account", header: "ACCOUNT" }, { path: "profile", header: "PROFILE" }],
  fields: ["server", "profile", "account", "removed", "revoked", "error"],
};

const MAX_REASON = 160;

/** The login to remove: of the given account, if the server has several. */
export type LoggedIn = Pick<LoginStatus, "server"> & Partial<Pick<LoginStatus, "account">>;

/** Logs out of one server and reports the result. Throws if the local login cannot be removed. */
export async function logout(
  agent: Pick<AgentClient, "logout">,
  { server, account }: LoggedIn,
  profile: string,
  { io, signal, redactor }: CommandContext,
): Promise<LogoutResult> {
  const { removed, revoked, error } = await agent.logout(server, { account, signal });
  const why = revoked === false ? redactor.redact(reasonOf(error)) : null;
  const where = account == null ? server : `${server} (account ${account})`;
  if (!removed) io.say(`not logged in at ${where}`);
  else if (why !== null) {
    io.warn(`logged out of ${where} locally, but revocation failed (${why}): the token stays valid until it expires`);
  } else io.say(`logged out of ${where}${revoked ? "" : "; its issuer has no revocation endpoint"}`);
  return { server, profile, account: account ?? null, removed, revoked: revoked ?? null, error: why };
}

/**
 * Logs out of several servers at the same time: an issuer that is down does not delay the others, and a login that
 * cannot be removed does not stop the others.
 *
 * @returns the result of each, and the error that the command ends with
 */
export async function logoutOfAll(
  agent: Pick<AgentClient, "logout">,
  logins: readonly LoggedIn[],
  profile: string,
  context: CommandContext,
): Promise<{ logouts: LogoutResult[]; failure: AgentAuthError | undefined }> {
  const failures: AgentAuthError[] = [];
  const attempt = async (login: LoggedIn): Promise<LogoutResult> => {
    const { server, account = null } = login;
    try {
      return await logout(agent, login, profile, context);
    } catch (error) {
      if (!isAgentAuthError(error)) throw error;
      failures.push(error);
      const why = context.redactor.redact(error.message);
      context.io.warn(`still logged in at ${server}: ${why}`);
      return { server, profile, account, removed: false, revoked: null, error: why };
    }
  };
  const logouts = await Promise.all(logins.map(attempt));
  const unrevoked = logouts.filter(({ revoked }) => revoked === false).length;
  if (logouts.length === 0) context.io.say("not logged in");
  if (logouts.length > 1 && unrevoked > 0)
    context.io.say(`revocation failed at ${unrevoked} of ${logouts.length} issuers`);
  return { logouts, failure: summaryOf(failures, logouts.length) };
}

function summaryOf(failures: readonly AgentAuthError[], count: number): AgentAuthError | undefined {
  const [first] = failures;
  if (first === undefined) return undefined;
  const message = `${failures.length} of ${count} logins could not be removed, the first of them: ${first.message}`;
  const { code, class: kind, hint, remedy } = first;
  return new AgentAuthError(code, message, { class: kind, hint, remedy, cause: first });
}

/** A short reason; an unexpected error is an error response of the issuer. */
function reasonOf(error: unknown): string {
  if (!isAgentAuthError(error)) return "it responded with an error";
  const { message } = error;
  return message.length > MAX_REASON ? `${message.slice(0, MAX_REASON)}…` : message;
}
