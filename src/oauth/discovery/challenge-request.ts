import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { discardBody, isEventStream, readText, saysJson } from "../../http/buffered-response.js";
import { Cookies } from "../../http/cookies.js";
import { followSignal, untilAborted } from "../../http/deadline.js";
import { HttpRequest } from "../../http/http-message.js";
import { networkError } from "../../http/network-error.js";
import { sendWithinOrigin } from "../../http/redirect.js";
import { isJsonObject, type JsonObject, parseStrictJson, StrictJsonError } from "../../http/strict-json.js";
import { quote } from "../../redact.js";
import type { TraceEntry } from "../http/http.js";
import { type BearerChallenge, bearerChallenge, responseChallenges } from "../model/challenge.js";

export interface ChallengeRequestContext {
  fetch: typeof globalThis.fetch;
  userAgent: string;
  timeoutMs: number;
  trace: (entry: TraceEntry) => void;
}

export interface UnauthenticatedResponse {
  challenge: BearerChallenge | undefined;
  status: number;
  /** Why a redirect in it was not followed. */
  refused?: AgentAuthError | undefined;
  /** Whether it is a response of MCP: the server did what was requested. */
  isAnswered: boolean;
}

// Sent without a session: only the challenge matters, and some servers accept `initialize` without a token.
const TOOLS = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
const REVISION = "2025-11-25";
const CLIENT = { name: "agentauth", version: "1" };
const INITIALIZE = {
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: REVISION, capabilities: {}, clientInfo: CLIENT },
};

/** The revision without sessions: each request names it, and its client. */
const SESSIONLESS_REVISION = "2026-07-28";
const META = "io.modelcontextprotocol/";
const SESSIONLESS_TOOLS = {
  ...TOOLS,
  params: {
    _meta: {
      [`${META}protocolVersion`]: SESSIONLESS_REVISION,
      [`${META}clientInfo`]: CLIENT,
      [`${META}clientCapabilities`]: {},
    },
  },
};
const SESSIONLESS_HEADERS = { "mcp-protocol-version": SESSIONLESS_REVISION, "mcp-method": TOOLS.method };
/** The error of a server that does not speak the revision of a request; `data.supported` lists those that it does. */
const UNSUPPORTED_REVISION = -32_022;

/**
 * Sends a request without a token to the MCP server, to get its challenge: a second one, in the newest revision, to a
 * server that speaks no earlier one.
 *
 * @throws `AgentAuthError` a network error
 */
export async function requestChallenge(context: ChallengeRequestContext, mcpUrl: string, signal?: AbortSignal) {
  const first = await sendTraced(context, mcpUrl, { body: TOOLS, signal });
  if (!first.wantsSessionless) return first;
  return sendTraced(context, mcpUrl, { body: SESSIONLESS_TOOLS, headers: SESSIONLESS_HEADERS, signal });
}

async function sendTraced(context: ChallengeRequestContext, mcpUrl: string, parts: RequestParts): Promise<Received> {
  const received = await sendProbe(context, mcpUrl, parts);
  const { challenge, status, headers } = received;
  const schemes = [...new Set(responseChallenges(headers).map(({ scheme }) => scheme))];
  const asks = schemes.length > 0 ? `; it sends challenges of the schemes ${quote(schemes.join(" "), 80)}` : "";
  const why = challenge
    ? challenge.schemes.length > 0
      ? `the server requires a bearer token${schemes.length > challenge.schemes.length ? asks : ""}`
      : `the server names its resource metadata${asks}`
    : received.wantsSessionless
      ? `the server speaks revision ${SESSIONLESS_REVISION} alone`
      : `the server does not explicitly require a bearer token${asks}`;
  context.trace({ step: "challenge", method: "POST", url: mcpUrl, status, used: challenge !== undefined, why });
  return received;
}

/** Whether a server may have refused a request because it belongs to no session. */
export function mayWantSession({ status }: UnauthenticatedResponse): boolean {
  return status === 400 || status === 404;
}

/**
 * Whether a server answers requests without a token, in a new session if it may want one first; `absent` if there is no
 * MCP server at the address.
 *
 * @throws `AgentAuthError` a network error
 */
export async function classifyOpenness(
  context: ChallengeRequestContext,
  mcpUrl: string,
  first: UnauthenticatedResponse,
  signal?: AbortSignal,
): Promise<"open" | "closed" | "absent"> {
  if (first.isAnswered) return "open";
  if (!mayWantSession(first)) return "closed";
  const cookies = new Cookies();
  const opened = await sendProbe(context, mcpUrl, { body: INITIALIZE, cookies, signal });
  const session = opened.headers.get("mcp-session-id");
  if (first.status === 404 && opened.status === 404) return "absent";
  if (!opened.isAnswered || session === null) return "closed";
  const headers = { "mcp-session-id": session, "mcp-protocol-version": REVISION };
  return (await answersIn({ headers, cookies, signal }, context, mcpUrl)) ? "open" : "closed";
}

async function answersIn(
  session: Omit<RequestParts, "method" | "body">,
  context: ChallengeRequestContext,
  mcpUrl: string,
): Promise<boolean> {
  const { status, isAnswered } = await sendProbe(context, mcpUrl, { ...session, body: TOOLS });
  const why = isAnswered ? "the server answers without a token" : "the server does not answer without a token";
  context.trace({ step: "challenge", method: "POST", url: mcpUrl, status, used: isAnswered, why });
  // The server may not let clients end a session.
  await sendProbe(context, mcpUrl, { ...session, method: "DELETE" }).catch(() => undefined);
  return isAnswered;
}

/** The challenge of a refusal, and of any response that says where the metadata is. */
function readChallenge({ status, headers }: Response): BearerChallenge | undefined {
  const challenge = bearerChallenge(headers);
  const isRefusal = status === 401 || status === 403 || (challenge?.resourceMetadata.length ?? 0) > 0;
  return isRefusal ? challenge : undefined;
}

interface RequestParts {
  method?: "POST" | "DELETE";
  body?: object;
  headers?: Record<string, string>;
  /** Those of the session that the request belongs to. */
  cookies?: Cookies;
  signal: AbortSignal | undefined;
}

interface Received extends UnauthenticatedResponse {
  headers: Headers;
  /** Whether the server refused the request for its revision, and speaks the one without sessions. */
  wantsSessionless: boolean;
}

async function sendProbe(
  context: ChallengeRequestContext,
  mcpUrl: string,
  { method = "POST", body, headers, cookies, signal }: RequestParts,
): Promise<Received> {
  const call = followSignal(signal, context.timeoutMs, () => {
    const message = `${new URL(mcpUrl).host}: no response in ${context.timeoutMs / 1000} s`;
    return new AgentAuthError("timeout", message, { class: "unavailable" });
  });
  try {
    const types = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const given = { ...types, "user-agent": context.userAgent, ...headers };
    const content = body === undefined ? null : JSON.stringify(body);
    const sent = await sendWithinOrigin({ method, url: mcpUrl, mayRepeat: true, cookies }, async (url, _hop, more) => {
      const own = { ...given, ...more };
      const request = new HttpRequest(url, { method, headers: own, body: content, redirect: "manual" });
      return { response: await untilAborted(context.fetch(request, { signal: call.signal }), call.signal) };
    });
    const { reply, refused } = sent;
    const { response } = reply;
    const { status, headers: received } = response;
    const isStream = status === 200 && isEventStream(response);
    const message = await readMessage(response, mcpUrl, call.signal);
    return {
      challenge: readChallenge(response),
      status,
      refused,
      headers: received,
      isAnswered: isStream || (status === 200 && message !== undefined && "result" in message),
      wantsSessionless: status === 400 && isForSessionless(message),
    };
  } catch (thrown) {
    const error =
      call.signal.aborted && isAgentAuthError(call.signal.reason) ? call.signal.reason : networkError(thrown, mcpUrl);
    context.trace({ step: "challenge", method, url: mcpUrl, used: false, why: error.message });
    throw error;
  } finally {
    call.release();
  }
}

/** The most that is read of an answer. */
const MAX_ANSWER_BYTES = 256 * 1024;

/** The message of JSON-RPC in a response; undefined in a web page and in an event stream, which would not end. */
async function readMessage(response: Response, mcpUrl: string, signal: AbortSignal): Promise<JsonObject | undefined> {
  if ((response.status !== 200 && response.status !== 400) || !saysJson(response.headers)) {
    await discardBody(response);
    return undefined;
  }
  try {
    const message = parseStrictJson(await untilAborted(readText(response, mcpUrl, MAX_ANSWER_BYTES, true), signal));
    return isJsonObject(message) ? message : undefined;
  } catch (error) {
    const isMalformed = error instanceof StrictJsonError || (isAgentAuthError(error) && error.class === "refused");
    if (isMalformed) return undefined;
    throw error;
  }
}

function isForSessionless(message: JsonObject | undefined): boolean {
  const error = message?.["error"];
  if (!isJsonObject(error) || error["code"] !== UNSUPPORTED_REVISION || !isJsonObject(error["data"])) return false;
  const { supported } = error["data"];
  return Array.isArray(supported) && supported.includes(SESSIONLESS_REVISION);
}

/** The error for a server that answers requests without a token, and names no issuer. */
export function loginNotRequiredError(server: string): AgentAuthError {
  const message = `${server} requires no login, so there is no token`;
  const hint = "send the requests without a token, as fetch() does";
  const remedy = { action: "connect", server } as const;
  return new AgentAuthError("login_not_required", message, { class: "auth", hint, remedy });
}

export function isLoginNotRequired(error: unknown): boolean {
  return isAgentAuthError(error, "login_not_required");
}

export function nothingThereError(mcpUrl: string): AgentAuthError {
  const message = `nothing is at ${quote(mcpUrl)}: it answered HTTP 404`;
  const hint = "check the path of the address";
  return new AgentAuthError("not_found", message, { class: "remote", status: 404, url: mcpUrl, hint });
}

export function isNothingThere(error: unknown): boolean {
  return isAgentAuthError(error, "not_found");
}

/** Takes a login for required where a server did not answer; throws where there is no server. */
export function requiredUnlessAbsent(error: unknown): true {
  if (isNothingThere(error)) throw error;
  return true;
}
