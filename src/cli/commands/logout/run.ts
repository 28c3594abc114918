import { AgentAuthError, errorMessage, isAgentAuthError, usageError } from "../../../errors.js";
import { isJsonObject, parseStrictJson } from "../../../http/strict-json.js";
import type { AgentClient, LoginStatus } from "../../../oauth/agent.js";
import { transientStore } from "../../../oauth/hand-over.js";
import { CodecError, decodeGrant, encode, type Members, readObject, readString } from "../../../oauth/model/codec.js";
import { readSecretFile } from "../../../profile/secrets.js";
import { escapeText, quote, shellWord } from "../../../redact.js";
import { parseMcpUrlArgument, retryRevocations, warnOfUnusable } from "../../clients/login-first.js";
import type { StoredLoginFlags } from "../../flags/agent.js";
import { rowColumns } from "../../output/columns.js";
import { isOutputGiven, printRows } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";
import { EXIT_CODES } from "../../runtime/exit-codes.js";

const MAX_BYTES = 64 * 1024;

/**
 * A login that `login --hand-over` printed, in any of its formats, in a client that has it alone.
 *
 * @param source its file; `-` is stdin
 * @throws `AgentAuthError` `usage` for another text, `issuer_mismatch` if its issuer is not the one that its server names:
 * that issuer gets none of the secrets
 */
export async function openHandedOver(
  source: string,
  profile: string,
  context: CommandContext,
): Promise<{ agent: AgentClient; server: string }> {
  const { io, signal } = context;
  const isInput = source === "-";
  const text = isInput ? await io.stdin.text({ maxBytes: MAX_BYTES, signal }) : readSecretFile(source);
  const read = <T>(work: () => T): T => {
    try {
      return work();
    } catch (cause) {
      const what = `${isInput ? "standard input" : `the file ${source}`} is not a login that was handed over`;
      throw usageError(`${what}: ${errorMessage(cause)}`, "pass what agentauth login --hand-over printed", cause);
    }
  };
  const auth = read(() => readCredential(parseStrictJson(text)));
  const server = parseMcpUrlArgument(String(auth["mcp_server_url"]));
  // With what is stored for the server, such as an address that the user allowed.
  const { found, error } = await (await context.agent()).discover(server, { signal });
  if (found === undefined) throw error;
  const { issuer, tokenEndpoint: token, revocationEndpoint: revocation } = found.issuer;
  const { refresh, access_token: accessToken, expires_at: expiresAt } = auth;
  const {
    token_endpoint,
    client_id: clientId = "",
    token_endpoint_auth,
    refresh_token: refreshToken,
  } = members(refresh);
  const { type: authMethod = "none", client_secret: clientSecret } = members(token_endpoint_auth);
  if (refresh !== undefined && token_endpoint !== token) {
    const message = `${quote(server)} names an issuer with the token endpoint ${quote(token)}, but the login is of ${quote(token_endpoint)}: nothing was sent`;
    throw new AgentAuthError("issuer_mismatch", message, { class: "refused", hint: "revoke it at its issuer" });
  }
  const client = { issuer, clientId, clientSecret, authMethod, source: "dynamic" };
  const tokens = { accessToken, refreshToken, expiresAt: Date.parse(String(expiresAt)) || undefined };
  const endpoints = { token, revocation };
  const grant = read(() =>
    decodeGrant(encode({ kind: "grant", profile, server, resource: "none", issuer, endpoints, client, tokens })),
  );
  const agent = await context.agent({ adapt: (options) => ({ ...options, store: transientStore(options, grant) }) });
  return { agent, server };
}

function readCredential(value: unknown): Members {
  const { auth = value } = members(value);
  const credential = members(auth);
  if (credential["type"] !== "mcp_oauth") throw new CodecError('type is not "mcp_oauth"');
  for (const name of ["mcp_server_url", "access_token"]) readString(credential, name);
  if (credential["refresh"] !== undefined) readString(readObject(credential, "refresh"), "refresh_token");
  return credential;
}

const members = (value: unknown): Members => (isJsonObject(value) ? value : {});

/** `logout`: deletes the local login first, whatever the issuer returns. */
export async function runLogout(options: StoredLoginFlags, context: CommandContext): Promise<number | undefined> {
  const { idp, handOver } = options;
  if ([options.url, options.all, idp, handOver].filter((one) => one !== undefined).length !== 1)
    throw usageError("give one MCP server, --idp, --hand-over, or --all", "agentauth status lists the servers");
  if (options.all && options.accountHint !== undefined)
    throw usageError(
      "--all covers every account, and --account-hint names one",
      `leave out --all: agentauth logout <mcp_url> --account-hint ${shellWord(options.accountHint)}`,
    );
  const agent = await context.agent();
  const profile = context.settings().profile.value;
  const unusable: AgentAuthError[] = [];
  const onUnusable = (error: AgentAuthError) => unusable.push(error);
  const ended =
    handOver !== undefined
      ? [await logoutOfHandOver(handOver, profile, context)]
      : idp !== undefined
        ? await logoutOfIdp(agent, idp, profile, context)
        : options.url !== undefined
          ? [await logout(agent, { server: parseMcpUrlArgument(options.url) }, profile, context)]
          : undefined;
  const { logouts, failure } = ended
    ? { logouts: ended, failure: undefined }
    : await logoutOfAll(agent, await agent.status(undefined, { onUnusable }), profile, context);
  if (isOutputGiven(options)) await printRows(logouts, LOGOUT_COLUMNS, options, context);
  warnOfUnusable(unusable, context);
  // An issuer that has just failed is asked by the next command.
  if (logouts.every(({ revoked }) => revoked !== false)) await retryRevocations(agent, context);
  if (failure) throw failure;
  return unusable.length > 0 ? EXIT_CODES.store : undefined;
}

/** Revokes a login that was handed over. */
async function logoutOfHandOver(source: string, profile: string, context: CommandContext): Promise<LogoutResult> {
  const { agent, server } = await openHandedOver(source, profile, context);
  const result = await logout(agent, { server, account: null, isHandOver: true }, profile, context);
  if (result.revoked)
    context.io.say("this does not revoke what the vault has refreshed since: delete the credential there, too");
  return result;
}

/** The result of one logout, as `logout -o json` prints it. */
interface LogoutResult {
  /** The MCP server. */
  server: string;
  /** The profile that the login belonged to. */
  profile: string;
  /** The account that the login was for; null where none was named. */
  account: string | null;
  /** Whether a stored login was deleted. */
  removed: boolean;
  /** Whether the issuer revoked the tokens (RFC 7009); null if it has no revocation endpoint, or was not called. */
  revoked: boolean | null;
  /**
   * Whether the issuer accepted the request to end the session of the user, which need not revoke a token; null if that
   * was not requested, or was answered with a page, which may ask the user first.
   */
  session_ended: boolean | null;
  /** RFC 3339: until when the access token stays valid; null if it was revoked, or if the issuer did not say. */
  expires_at: string | null;
  /** Why the login is still stored, why revocation failed, or why the session was not ended. */
  error: string | null;
}

const LOGOUT_COLUMNS = rowColumns(
  [
    { path: "server", header: "SERVER", kind: "name" },
    { path: "removed", header: "REMOVED", kind: "bool" },
    { path: "revoked", header: "REVOKED", kind: "bool" },
    { path: "error", header: "ERROR" },
  ],
  [
    { path: "session_ended", header: "SESSION ENDED", kind: "bool" },
    { path: "expires_at", header: "EXPIRES", kind: "time" },
    { path: "account", header: "ACCOUNT", kind: "name" },
    { path: "profile", header: "PROFILE", kind: "name" },
  ],
);

const MAX_REASON = 160;

/** The login to remove: of the given account, if the server has several. */
type LoggedIn = Pick<LoginStatus, "server"> & Partial<Pick<LoginStatus, "account">> & { isHandOver?: boolean };

/** Logs out of one server and reports the result. Throws if the local login cannot be removed. */
export async function logout(
  agent: Pick<AgentClient, "disconnect">,
  { server, account, isHandOver }: LoggedIn,
  profile: string,
  { io, signal, redactor, now }: CommandContext,
): Promise<LogoutResult> {
  const { removed, revoked, sessionEnded, notRevoked, expiresAt, error } = await agent.disconnect(server, {
    account,
    signal,
  });
  const why = revoked === false || sessionEnded === false ? redactor.redact(shortReason(error)) : null;
  const where = account == null ? server : `${server} (account ${account})`;
  const remaining = remainingLife(expiresAt, now());
  if (!removed) io.say(`not logged in at ${where}`);
  else if (revoked === true) io.say(`logged out of ${where}`);
  else if (revoked === false) {
    const isAccessLeft = notRevoked?.includes("access_token") !== false;
    const left = notRevoked?.includes("refresh_token")
      ? `its refresh token was not revoked (${why})${isAccessLeft ? ", nor was its access token" : ""}`
      : `its access token was not revoked (${why})`;
    const next = isHandOver ? "try again" : "the next login or logout tries again";
    io.warn(
      `logged out of ${where}${isHandOver ? "" : " locally"}, but ${left}: ${next}${isAccessLeft ? `; ${remaining}` : ""}`,
    );
  } else if (sessionEnded === false) {
    const failure = `its session was not ended (${why}), and its issuer has no revocation endpoint`;
    io.warn(`logged out of ${where} locally, but ${failure}: ${remaining}`);
  } else {
    const session = sessionEnded ? "accepted the request to end the session, but " : "";
    io.say(`logged out of ${where}; its issuer ${session}has no revocation endpoint: ${remaining}`);
  }
  return {
    server,
    profile,
    account: account ?? null,
    removed,
    revoked,
    session_ended: sessionEnded,
    expires_at: expiresAt?.toISOString() ?? null,
    error: why,
  };
}

/** Logs out of the identity provider and of all servers whose tokens came from it, and reports each. */
async function logoutOfIdp(
  agent: Pick<AgentClient, "logoutIdp">,
  idp: string | true,
  profile: string,
  context: CommandContext,
): Promise<LogoutResult[]> {
  const ended = await agent.logoutIdp({ signal: context.signal });
  if (ended.length === 0)
    context.io.say(
      `not logged in at ${idp === true ? "an identity provider" : `the identity provider ${escapeText(idp)}`}`,
    );
  return Promise.all(ended.map((one) => logout({ disconnect: async () => one }, one, profile, context)));
}

/** Until when a token is valid that was not revoked. */
function remainingLife(expiresAt: Date | undefined, now: number): string {
  if (expiresAt === undefined) return "the access token stays valid until it expires";
  const isValid = expiresAt.getTime() > now;
  return `the access token ${isValid ? "stays valid until" : "expired at"} ${expiresAt.toISOString()}`;
}

/**
 * Logs out of several servers at the same time: an issuer that is down does not delay the others, and a login that
 * cannot be removed does not stop the others.
 *
 * @returns the result of each, and the error that the command ends with
 */
export async function logoutOfAll(
  agent: Pick<AgentClient, "disconnect">,
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
      const notCalled = { removed: false, revoked: null, session_ended: null, expires_at: null };
      return { server, profile, account, ...notCalled, error: why };
    }
  };
  const logouts = await Promise.all(logins.map(attempt));
  const unrevoked = logouts.filter(({ revoked }) => revoked === false).length;
  if (logouts.length === 0) context.io.say("not logged in");
  if (logouts.length > 1 && unrevoked > 0)
    context.io.say(`revocation failed at ${unrevoked} of ${logouts.length} issuers`);
  return { logouts, failure: summarizeFailures(failures, logouts.length) };
}

function summarizeFailures(failures: readonly AgentAuthError[], count: number): AgentAuthError | undefined {
  const [first] = failures;
  if (first === undefined) return undefined;
  const message = `${failures.length} of ${count} logins could not be removed, the first of them: ${first.message}`;
  const { code, class: kind, hint, remedy } = first;
  return new AgentAuthError(code, message, { class: kind, hint, remedy, cause: first });
}

/** A short reason; an unexpected error is an error response of the issuer. */
function shortReason(error: unknown): string {
  if (!isAgentAuthError(error)) return "it responded with an error";
  const { message } = error;
  return message.length > MAX_REASON ? `${message.slice(0, MAX_REASON)}…` : message;
}
