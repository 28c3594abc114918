import { AgentAuthError, abortedError, isAgentAuthError } from "../../../errors.js";
import { followSignal } from "../../../http/deadline.js";
import { HttpRequest } from "../../../http/http-request.js";
import { networkError } from "../../../http/network-error.js";
import { VERSION } from "../../../http/user-agent.js";
import { connectionError, isTimeout, serverMessage } from "../../../mcp/errors.js";
import { type McpOptions, type McpSession, openMcp } from "../../../mcp/session.js";
import type { AgentClient } from "../../../oauth/agent.js";
import { extensionOf } from "../../../oauth/machine/grant-strategies.js";
import { escapeText, quote } from "../../../redact.js";
import { lateError, limitOf, responseError } from "../../clients/http-error.js";
import { loginFirst } from "../../clients/login-first.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import type { AgentFlags } from "../../flags/agent.js";
import type { OutputFlags } from "../../flags/output.js";
import type { CommandContext } from "../../runtime/context.js";

/** Options of `mcp tools` and `mcp call`. */
export interface McpFlags extends AgentFlags, OutputFlags {
  url: string;
  tool: string;
  args?: string;
}

/** A session whose errors are those of a single request. */
export type CliSession = Omit<McpSession, "close">;

/**
 * Runs the work in a session with an MCP server, with its token.
 *
 * @param defaultTimeout seconds for each response without `--timeout`
 * @throws `AgentAuthError` `auth` for 401, `unavailable` for 429, 5xx, a broken connection and a timeout, `remote` for
 * any other error of the server
 */
export async function withSession<T>(
  options: McpFlags,
  context: CommandContext,
  defaultTimeout: number,
  work: (session: CliSession) => Promise<T>,
): Promise<T> {
  const url = parseMcpUrlArgument(options.url);
  const { signal } = context;
  // A tool may take longer than the usual idle timeout of a connection: only the limit of each request counts.
  const agent = await context.agent({ idleTimeoutMs: 0 });
  // A login, if needed, comes before the time limit starts.
  await loginFirst(agent, url, { scope: options.scope, signal });
  const limit = limitOf(options, context, defaultTimeout);
  const limited = createLimitedFetch(agent, url, limit);
  const withCliError = <R>(call: Promise<R>): Promise<R> =>
    call.catch((error: unknown) => {
      if (signal.aborted) throw abortedError(signal);
      throw cliError(error, { url, limit, errorResponse: limited.errorResponse(), grant: options.grant });
    });
  const client = { name: "agentauth", version: VERSION, extension: extensionOf(options.grant) };
  const session = await withCliError(
    openMcp(url, { ...client, fetch: limited.fetch, timeoutMs: limit * 1000, signal }),
  );
  try {
    return await work({
      tools: (callSignal) => withCliError(session.tools(callSignal)),
      call: (...call) => withCliError(session.call(...call)),
    });
  } finally {
    await session.close().catch(() => undefined);
  }
}

/** A fetch with the token and the time limit that remembers the last error response. */
function createLimitedFetch(agent: AgentClient, url: string, limit: number) {
  let errorResponse: Response | undefined;
  const fetch: McpOptions["fetch"] = async (address, { signal, ...init }) => {
    const request = new HttpRequest(address, init);
    // The stream for server-initiated messages has no time limit.
    if (init.method !== "POST") return agent.fetch(request, { signal: signal ?? null });
    const call = followSignal(signal ?? undefined);
    // A notification, such as the one that ends the handshake, has no other time limit.
    const timer = setTimeout(() => call.abort(lateError(url, limit)), limit * 1000);
    try {
      const response = await agent.fetch(request, { signal: call.signal });
      errorResponse = response.status >= 400 ? response : undefined;
      return response;
    } catch (error) {
      throw call.signal.aborted ? abortedError(call.signal) : networkError(error, url);
    } finally {
      clearTimeout(timer);
    }
  };
  return { fetch, errorResponse: () => errorResponse };
}

interface SessionContext {
  url: string;
  limit: number;
  errorResponse: Response | undefined;
  grant: string | undefined;
}

/** The error that `request` would report; a JSON-RPC error keeps the server's message. */
function cliError(error: unknown, { url, limit, errorResponse, grant }: SessionContext): unknown {
  const known = isTimeout(error) ? lateError(url, limit) : connectionError(error, url);
  if (known) return known;
  const message = serverMessage(error);
  if (errorResponse) {
    const httpError = responseError(errorResponse, { requested: url, grant, words: message });
    if (message === undefined || httpError.class !== "remote") return httpError;
  }
  if (isAgentAuthError(error) || !(error instanceof Error)) return error;
  const text = `the MCP server ${quote(url)}: ${escapeText(message ?? error.message).slice(0, 300)}`;
  return new AgentAuthError("mcp_failed", text, { class: "remote", cause: error });
}
