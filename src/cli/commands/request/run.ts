import { AgentAuthError, abortedError } from "../../../errors.js";
import { shownUrl } from "../../../http/buffered-response.js";
import { follow } from "../../../http/deadline.js";
import { networkError } from "../../../http/network-error.js";
import type { AgentClient } from "../../../oauth/agent.js";
import { responseError } from "../../clients/http-error.js";
import type { Io } from "../../io/io.js";
import type { CommandContext } from "../../runtime/context.js";
import { type OutgoingRequest, readRequest } from "./input.js";
import type { RequestFlags } from "./options.js";
import { printResponse } from "./response-output.js";

const DEFAULT_TIMEOUT_S = 30;
const DEFAULT_LOGIN_TIMEOUT_S = 300;

/** `request`: one request with the token of its server. */
export async function runRequest(options: RequestFlags, context: CommandContext): Promise<undefined> {
  const request = await readRequest(options, context);
  const agent = await context.agent();
  await exchange(agent, request, options, context);
  return undefined;
}

/**
 * Sends a request and prints its answer.
 *
 * @throws `AgentAuthError` `auth` for 401, `unavailable` for 429 and 5xx, `remote` for any other error, once the answer
 * is printed; `unavailable` where there is none in time
 */
export async function exchange(
  agent: Pick<AgentClient, "token" | "fetch">,
  { url, ...init }: OutgoingRequest,
  options: RequestFlags,
  context: CommandContext,
): Promise<void> {
  // Whoever has to sign in first does so before the server's time begins.
  await agent.token(url, { scope: options.scope, signal: context.signal });
  const call = follow(context.signal);
  const limit = limitOf(options, context);
  const timer = setTimeout(() => call.abort(lateError(url, limit)), limit * 1000);
  try {
    const response = await agent.fetch(url, { ...init, signal: call.signal }).catch((thrown: unknown) => {
      throw call.signal.aborted ? abortedError(call.signal) : networkError(thrown, url);
    });
    clearTimeout(timer);
    const foreign = tellRedirect(response, url, context.io);
    await printResponse(response, options.include === true, context.io);
    if (response.status >= 400) throw responseError(response, { requested: url, foreign, grant: options.grant });
  } finally {
    clearTimeout(timer);
    call.release();
  }
}

/** Seconds until the answer has to begin. A person who has to sign in once more is not hurried by it. */
function limitOf(options: RequestFlags, context: CommandContext): number {
  const { timeout = DEFAULT_TIMEOUT_S, loginTimeout = DEFAULT_LOGIN_TIMEOUT_S } = options;
  return context.mayLogin() ? timeout + loginTimeout : timeout;
}

/** Says where the answer comes from when that is somewhere else; whether it is another server's. */
function tellRedirect(response: Response, url: string, io: Io): boolean {
  if (!response.redirected) return false;
  const foreign = new URL(response.url).origin !== new URL(url).origin;
  const target = shownUrl(response.url);
  if (foreign)
    io.warn(`redirected to ${target}, another server: it was asked without the token, and this is its answer`);
  else io.say(`redirected to ${target}`);
  return foreign;
}

function lateError(url: string, limit: number): AgentAuthError {
  return new AgentAuthError("timeout", `${new URL(url).host}: no answer began in ${limit} s`, {
    class: "unavailable",
    url: shownUrl(url),
    hint: "--timeout <seconds> allows more time",
  });
}
