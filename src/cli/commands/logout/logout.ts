import { AgentAuthError, isAgentAuthError } from "../../../errors.js";
import type { AgentClient } from "../../../oauth/agent.js";
import type { LoginStatus } from "../../../oauth/login/login-status.js";
import type { ColumnSet } from "../../output/columns.js";
import type { CommandContext } from "../../runtime/context.js";

/** What became of one login, as `logout -o json` prints it. */
export interface LogoutResult {
  server: string;
  profile: string;
  /** The account that the login was for; null where none was named. */
  account: string | null;
  /** Whether a login was kept here and is gone. */
  removed: boolean;
  /** Whether the issuer took it; null where it has no way to be told, or was not asked. */
  told: boolean | null;
  /** Why it is still kept, or why the issuer could not be told. */
  error: string | null;
}

const COLUMNS = [
  { path: "server", header: "SERVER" },
  { path: "removed", header: "REMOVED", kind: "bool" },
  { path: "told", header: "ISSUER TOLD", kind: "bool" },
  { path: "error", header: "WHY NOT" },
] as const;

/** How sign-outs are printed. */
export const LOGOUT_COLUMNS: ColumnSet = {
  columns: COLUMNS,
  wideColumns: [...COLUMNS, { path: "account", header: "ACCOUNT" }, { path: "profile", header: "PROFILE" }],
  fields: ["server", "profile", "account", "removed", "told", "error"],
};

const MAX_REASON = 160;

/** Which login is to end: the one account of several at a server, where it is named. */
export type LoggedIn = Pick<LoginStatus, "server"> & Partial<Pick<LoginStatus, "account">>;

/** Signs out of one server and says what came of it. A login that cannot be removed here throws. */
export async function logout(
  agent: Pick<AgentClient, "logout">,
  { server, account }: LoggedIn,
  profile: string,
  { io, signal, redactor }: CommandContext,
): Promise<LogoutResult> {
  const { removed, revoked: told, error } = await agent.logout(server, { account, signal });
  const why = told === false ? redactor.redact(reasonOf(error)) : null;
  const where = account == null ? server : `${server} (account ${account})`;
  if (!removed) io.say(`nobody was signed in at ${where}`);
  else if (why !== null) {
    io.warn(`signed out of ${where} here; its issuer could not be told (${why}), so the token lives until it ends`);
  } else io.say(`signed out of ${where}${told ? "" : "; its issuer has no way to be told"}`);
  return { server, profile, account: account ?? null, removed, told: told ?? null, error: why };
}

/**
 * Signs out of several servers, all at once: an issuer that is down keeps nobody else waiting, and a login that cannot
 * be removed stops no other.
 *
 * @returns what became of each, and the error that the command has to end with
 */
export async function logoutOfAll(
  agent: Pick<AgentClient, "logout">,
  logins: readonly LoggedIn[],
  profile: string,
  context: CommandContext,
): Promise<{ outs: LogoutResult[]; failure: AgentAuthError | undefined }> {
  const failures: AgentAuthError[] = [];
  const attempt = async (login: LoggedIn): Promise<LogoutResult> => {
    const { server, account = null } = login;
    try {
      return await logout(agent, login, profile, context);
    } catch (error) {
      if (!isAgentAuthError(error)) throw error;
      failures.push(error);
      const why = context.redactor.redact(error.message);
      context.io.warn(`still signed in at ${server}: ${why}`);
      return { server, profile, account, removed: false, told: null, error: why };
    }
  };
  const outs = await Promise.all(logins.map(attempt));
  const untold = outs.filter(({ told }) => told === false).length;
  if (outs.length === 0) context.io.say("nobody is signed in");
  if (outs.length > 1 && untold > 0) context.io.say(`${untold} of ${outs.length} issuers could not be told`);
  return { outs, failure: summaryOf(failures, outs.length) };
}

function summaryOf(failures: readonly AgentAuthError[], count: number): AgentAuthError | undefined {
  const [first] = failures;
  if (first === undefined) return undefined;
  const message = `${failures.length} of ${count} logins could not be removed, the first of them: ${first.message}`;
  return new AgentAuthError(first.code, message, { class: first.class, hint: first.hint, cause: first });
}

/** In few words; an issuer that answered with an error gives no other reason. */
function reasonOf(error: unknown): string {
  if (!isAgentAuthError(error)) return "it answered with an error";
  const { message } = error;
  return message.length > MAX_REASON ? `${message.slice(0, MAX_REASON)}…` : message;
}
