import { abortedError } from "../../../errors.js";
import { shownUrl } from "../../../http/buffered-response.js";
import { followSignal } from "../../../http/deadline.js";
import { HttpRequest } from "../../../http/http-request.js";
import { networkError } from "../../../http/network-error.js";
import type { AgentClient } from "../../../oauth/agent.js";
import { lateError, limitOf, responseError } from "../../clients/http-error.js";
import { loginFirst } from "../../clients/login-first.js";
import type { Io } from "../../io/io.js";
import type { CommandContext } from "../../runtime/context.js";
import { type OutgoingRequest, type RequestFlags, readRequest } from "./input.js";
import { printResponse } from "./response-output.js";

const DEFAULT_TIMEOUT_S = 30;

/** `request`: one request with the token of its server. */
export async function runRequest(options: RequestFlags, context: CommandContext): Promise<undefined> {
  const request = await readRequest(options, context);
  const agent = await context.agent();
  await sendRequest(agent, request, options, context);
  return undefined;
}

/**
 * Sends a request and prints the response.
 *
 * @throws `AgentAuthError` `auth` for 401, `unavailable` for 429 and 5xx, `remote` for any other error, after the
 * response is printed; `unavailable` for a timeout
 */
export async function sendRequest(
  agent: Pick<AgentClient, "token" | "requiresLogin" | "status" | "discover" | "fetch">,
  { url, ...init }: OutgoingRequest,
  options: RequestFlags,
  context: CommandContext,
): Promise<void> {
  // A login, if needed, comes before the time limit starts.
  await loginFirst(agent, url, { scope: options.scope, signal: context.signal });
  const call = followSignal(context.signal);
  const limit = limitOf(options, context, DEFAULT_TIMEOUT_S);
  const timer = setTimeout(() => call.abort(lateError(url, limit, "no response started")), limit * 1000);
  try {
    const request = new HttpRequest(url, init);
    const response = await agent.fetch(request, { signal: call.signal }).catch((thrown: unknown) => {
      throw call.signal.aborted ? abortedError(call.signal) : networkError(thrown, url);
    });
    clearTimeout(timer);
    const foreign = reportRedirect(response, url, context.io);
    await printResponse(response, options.include === true, context.io);
    if (response.status >= 400) throw responseError(response, { requested: url, foreign, grant: options.grant });
  } finally {
    clearTimeout(timer);
    call.release();
  }
}

/** Reports a redirect. @returns whether another server sent the response */
function reportRedirect(response: Response, url: string, io: Io): boolean {
  if (!response.redirected) return false;
  const foreign = new URL(response.url).origin !== new URL(url).origin;
  const target = shownUrl(response.url);
  if (foreign)
    io.warn(`redirected to ${target}, another server: the request there had no token, and this is its response`);
  else io.say(`redirected to ${target}`);
  return foreign;
}
