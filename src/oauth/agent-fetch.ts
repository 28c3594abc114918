import { isAgentAuthError } from "../errors.js";
import { isRequest, isResponse } from "../http/own-fetch.js";
import { quote, type Secret } from "../redact.js";
import { noResourceMetadata } from "./discovery/resource-metadata.js";
import { type Replay, sendWithToken, toReplay } from "./dpop/bound-fetch.js";
import { chooseRecovery, recoverToken, type ServerTokens } from "./grant/rejected-token.js";
import type { Nonces } from "./http/nonces.js";
import { bearerChallenge } from "./model/challenge.js";
import type { Grant } from "./model/grant.js";

/** What `AgentClient.fetch` takes beside the options of `fetch`. */
export interface AgentRequestInit extends RequestInit {
  /** The MCP server whose token the request carries, if the address is below that of the server. Default: the address. */
  server?: string | undefined;
  /** The scopes that the token must have, separated by blanks. */
  scope?: string | undefined;
  /** Gets each token right before it is sent, such as to mask it in what the server answers. */
  onToken?: ((token: Secret) => void) | undefined;
}

/** What `fetch` needs from its agent. */
export interface FetchContext extends ServerTokens {
  /** The `fetch` for requests to a server, with the token of a grant if there is one. */
  fetchFor(url: string, grant: Grant | undefined): typeof globalThis.fetch;
  /** DPoP nonces of the servers. */
  nonces: Nonces;
}

/**
 * Sends a request with the token of its server. Each recovery is tried once: a rejected token is refreshed, then replaced
 * by a new login; missing scopes are requested. If the server still rejects the request, its response is returned.
 */
export async function fetchWithToken(
  context: FetchContext,
  input: string | URL | Request,
  { server: named, scope, onToken, ...init }: AgentRequestInit,
): Promise<Response> {
  const signal = init.signal ?? (isRequest(input) ? input.signal : undefined) ?? undefined;
  const replay = toReplay(input, init);
  const { url } = replay;
  const server = named === undefined ? url : serverOf(named, url);
  const options = { signal, ...(scope !== undefined && { scope }) };
  const first = (await context.grant(server, options)) ?? (await sendWithout(context, replay, server, options));
  if (isResponse(first)) return first;
  let grant = first;
  const tried = { refresh: false, login: false, stepUp: false };
  for (;;) {
    onToken?.(grant.tokens.accessToken);
    const response = await sendWithToken(context.fetchFor(url, grant), replay, grant, context.nonces);
    // The response of another server after a redirect says nothing about this server's token.
    if (response.redirected && new URL(response.url).origin !== new URL(url).origin) return response;
    const challenge = bearerChallenge(response.headers);
    const rejection = { status: response.status, challenge, grant, tried };
    const recovery = chooseRecovery(rejection, context);
    if (recovery === undefined) return response;
    await response.body?.cancel().catch(() => undefined);
    replay.require();
    grant = await recoverToken(context, recovery, { ...rejection, signal });
  }
}

/** Sends a request without a token. @returns the response, or the grant to send it with if it was rejected */
async function sendWithout(
  context: FetchContext,
  replay: Replay,
  server: string,
  options: { signal: AbortSignal | undefined; scope?: string },
): Promise<Response | Grant> {
  const { url } = replay;
  const response = await sendWithToken(context.fetchFor(url, undefined), replay, undefined, context.nonces);
  const { status } = response;
  const challenge = bearerChallenge(response.headers);
  const isRejected = status === 401 || (status === 403 && challenge !== undefined);
  if (!isRejected || response.redirected) return response;
  context.onRejected(server);
  const grant = await context.grant(server, { ...options, challenge }).catch((error: unknown) => {
    throw isLoginUnknown(error) && challenge?.resourceMetadata.length === 0
      ? noResourceMetadata(server, { status, challenge })
      : error;
  });
  if (grant === undefined) return response;
  await response.body?.cancel().catch(() => undefined);
  replay.require();
  return grant;
}

/** The server whose token a request carries. @throws `TypeError` if the address is not below it */
function serverOf(server: string, url: string): string {
  const [base, target] = [new URL(server), new URL(url)];
  const folder = base.pathname.replace(/\/?$/, "/");
  const isBelow = target.pathname === base.pathname || target.pathname.startsWith(folder);
  if (base.origin === target.origin && isBelow) return server;
  throw new TypeError(`the option server is ${quote(server)}, and the address ${quote(url)} is not below it`);
}

/** Whether a login is required that would find out no more than the request did. */
function isLoginUnknown(error: unknown): boolean {
  return isAgentAuthError(error) && error.code === "login_required" && error.status === undefined;
}
