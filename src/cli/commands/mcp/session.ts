import { AgentAuthError, abortedError, isAgentAuthError } from "../../../errors.js";
import { shownUrl } from "../../../http/buffered-response.js";
import { follow } from "../../../http/deadline.js";
import { networkError } from "../../../http/network-error.js";
import { VERSION } from "../../../http/user-agent.js";
import { type McpSession, openMcp } from "../../../mcp/client.js";
import { connectionError, isLate, serverWords } from "../../../mcp/failure.js";
import type { AgentClient } from "../../../oauth/agent.js";
import { escapeText, quote } from "../../../redact.js";
import { responseError } from "../../clients/http-error.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import type { CommandContext } from "../../runtime/context.js";
import type { McpFlags } from "./options.js";

const DEFAULT_LOGIN_TIMEOUT_S = 300;

/** A session whose failures are told as those of one request are. */
export type ToldSession = Omit<McpSession, "close">;

/**
 * Works in a session with an MCP server, with its token.
 *
 * @param patience seconds that each answer may take where `--timeout` does not say it
 * @throws `AgentAuthError` `auth` for 401, `unavailable` for 429, 5xx, a broken connection and where there is no answer
 * in time, `remote` for any other error of the server
 */
export async function withSession<T>(
  options: McpFlags,
  context: CommandContext,
  patience: number,
  work: (session: ToldSession) => Promise<T>,
): Promise<T> {
  const url = parseMcpUrlArgument(options.url);
  const { signal } = context;
  // A tool may think for longer than any connection's usual patience: what counts is the limit of each request.
  const agent = await context.agent({ idleTimeoutMs: 0 });
  // Whoever has to sign in first does so before the server's time begins.
  await agent.token(url, { scope: options.scope, signal });
  const limit = limitOf(options, context, patience);
  const line = openLine(agent, url, limit);
  const told = <R>(asking: Promise<R>): Promise<R> =>
    asking.catch((error: unknown) => {
      if (signal.aborted) throw abortedError(signal);
      throw toldError(error, { url, limit, refusal: line.refusal(), grant: options.grant });
    });
  const client = { name: "agentauth", version: VERSION };
  const session = await told(openMcp(url, { ...client, fetch: line.fetch, timeoutMs: limit * 1000, signal }));
  try {
    return await work({
      tools: (within) => told(session.tools(within)),
      call: (...call) => told(session.call(...call)),
    });
  } finally {
    await session.close().catch(() => undefined);
  }
}

/** Seconds until an answer has to be there. A person who has to sign in once more is not hurried by it. */
function limitOf(options: McpFlags, context: CommandContext, patience: number): number {
  const { timeout = patience, loginTimeout = DEFAULT_LOGIN_TIMEOUT_S } = options;
  return context.mayLogin() ? timeout + loginTimeout : timeout;
}

/** A fetch with the token that keeps the last answer to a message, where that was a refusal. */
function openLine(agent: AgentClient, url: string, limit: number) {
  let refusal: Response | undefined;
  const fetch: typeof globalThis.fetch = async (input, init = {}) => {
    // The stream for what nobody asked for waits as long as there is nothing to say.
    if (init.method !== "POST") return agent.fetch(input, init);
    const call = follow(init.signal ?? undefined);
    // The SDK has no limit for messages that get no answer, such as the one that ends the handshake.
    const timer = setTimeout(() => call.abort(lateError(url, limit)), limit * 1000);
    try {
      const response = await agent.fetch(input, { ...init, signal: call.signal });
      refusal = response.status >= 400 ? response : undefined;
      return response;
    } catch (error) {
      throw call.signal.aborted ? abortedError(call.signal) : networkError(error, url);
    } finally {
      clearTimeout(timer);
    }
  };
  return { fetch, refusal: () => refusal };
}

interface Circumstances {
  url: string;
  limit: number;
  refusal: Response | undefined;
  grant: string | undefined;
}

/** The error that `request` would tell; what the server says by JSON-RPC stays the server's word. */
function toldError(error: unknown, { url, limit, refusal, grant }: Circumstances): unknown {
  const known = isLate(error) ? lateError(url, limit) : connectionError(error, url);
  if (known) return known;
  const words = serverWords(error);
  if (refusal) {
    const answer = responseError(refusal, { requested: url, grant, words });
    if (words === undefined || answer.class !== "remote") return answer;
  }
  if (isAgentAuthError(error) || !(error instanceof Error)) return error;
  const message = `the MCP server ${quote(url)}: ${escapeText(words ?? error.message).slice(0, 300)}`;
  return new AgentAuthError("mcp_failed", message, { class: "remote", cause: error });
}

function lateError(url: string, limit: number): AgentAuthError {
  return new AgentAuthError("timeout", `${new URL(url).host}: no answer in ${limit} s`, {
    class: "unavailable",
    url: shownUrl(url),
    hint: "--timeout <seconds> allows more time",
  });
}
