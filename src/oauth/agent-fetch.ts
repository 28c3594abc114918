import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import { type BearerChallenge, bearerChallenge } from "./discovery/challenge.js";
import { sendWithToken } from "./dpop/bound-fetch.js";
import type { Nonces } from "./dpop/nonces.js";
import type { Grant } from "./grant/grant.js";
import { replayable } from "./http/replay.js";
import { loginCommand } from "./login/login-command.js";
import { unionScopes } from "./token/scope.js";

/** What `fetch` needs of its agent. */
export interface FetchContext {
  /** How requests with the token of a grant leave. */
  fetchFor(grant: Grant): typeof globalThis.fetch;
  grant(url: string, options: { signal?: AbortSignal | undefined }): Promise<Grant>;
  refresh(grant: Grant, signal: AbortSignal | undefined): Promise<Grant>;
  /**
   * A new login in place of a grant that the server did not take; whoever comes late gets what another one logged in.
   */
  replace(
    refused: Grant,
    request: {
      scope?: string;
      previousScope?: string | undefined;
      challenge?: BearerChallenge;
      signal?: AbortSignal | undefined;
    },
  ): Promise<Grant>;
  mayLogin: boolean;
  /**
   * Whether the user has just logged in because a server refused the grant before this one: once more will not help.
   */
  followsRefusal(grant: Grant): boolean;
  /** What servers want to see in proofs, where tokens are bound to a key. */
  nonces: Nonces;
}

/**
 * Sends a request with the token of its server. Each remedy is tried once: a refused token is refreshed, then replaced
 * by a new login; missing scopes are asked for. What is refused after that is the answer.
 */
export async function fetchWithToken(
  context: FetchContext,
  input: string | URL | Request,
  init: RequestInit,
): Promise<Response> {
  const signal = init.signal ?? (input instanceof Request ? input.signal : undefined) ?? undefined;
  const replay = replayable(input, init);
  const { url } = replay;
  let grant = await context.grant(url, { signal });
  const tried = { renewal: false, signIn: false, stepUp: false };
  for (;;) {
    const response = await sendWithToken(context.fetchFor(grant), replay, grant, context.nonces);
    // What another server said after a redirect is no verdict on this server's token.
    if (response.redirected && new URL(response.url).origin !== new URL(url).origin) return response;
    const challenge = bearerChallenge(response.headers);
    const remedy = remedyFor({ response, challenge, grant, tried }, context);
    if (remedy === undefined) return response;
    await response.body?.cancel().catch(() => undefined);
    replay.require();
    tried[remedy] = true;
    const renewed = remedy === "renewal" ? await tryRefresh(context, grant, signal) : undefined;
    if (remedy === "renewal" && renewed === undefined) tried.signIn = true;
    const scope = remedy === "stepUp" && challenge?.scope !== undefined ? { scope: challenge.scope } : {};
    const previousScope = remedy === "stepUp" ? previousScopes(grant) : undefined;
    grant =
      renewed ?? (await context.replace(grant, { ...scope, previousScope, ...(challenge && { challenge }), signal }));
  }
}

/** All scopes that were asked for or granted so far. */
function previousScopes(grant: Grant): string | undefined {
  return unionScopes(grant.requestedScope, grant.tokens.scope);
}

type Remedy = "renewal" | "signIn" | "stepUp";

interface RejectedRequest {
  response: Response;
  challenge: BearerChallenge | undefined;
  grant: Grant;
  tried: Record<Remedy, boolean>;
}

function remedyFor(
  { response, challenge, grant, tried }: RejectedRequest,
  { mayLogin, followsRefusal: cameOfRefusal }: Pick<FetchContext, "mayLogin" | "followsRefusal">,
): Remedy | undefined {
  const isInVain = cameOfRefusal(grant);
  if (response.status === 401) {
    if (!tried.renewal && !tried.signIn && grant.tokens.refreshToken !== undefined) return "renewal";
    return mayLogin && !tried.signIn && !isInVain ? "signIn" : undefined;
  }
  if (response.status !== 403 || challenge?.error !== "insufficient_scope" || tried.stepUp) return undefined;
  const wasAsked = wasRequested(grant, challenge.scope);
  if (mayLogin && !(isInVain && wasAsked)) return "stepUp";
  const lacks = isInVain && wasAsked ? "still lacks scopes after a sign-in that was for them" : "lacks scopes";
  throw new AgentAuthError(
    "insufficient_scope",
    `the token for ${quote(grant.server)} ${lacks}: ${quote(challenge.scope ?? "not told which")}`,
    {
      class: "auth",
      status: 403,
      hint: stepUpCommand(grant, challenge.scope),
    },
  );
}

/** Whether the scopes that are missing were asked for in the login that gave this grant. */
function wasRequested({ requestedScope }: Grant, missing: string | undefined): boolean {
  const asked = new Set(requestedScope?.split(" "));
  return (missing ?? "").split(" ").every((one) => one === "" || asked.has(one));
}

/** The command that asks for what was there and what is missing. */
function stepUpCommand(grant: Grant, missing: string | undefined): string {
  return loginCommand(grant, { scope: unionScopes(previousScopes(grant), missing) });
}

/** A refresh that the issuer refuses leads to the next remedy. */
async function tryRefresh(
  context: FetchContext,
  grant: Grant,
  signal: AbortSignal | undefined,
): Promise<Grant | undefined> {
  try {
    return await context.refresh(grant, signal);
  } catch (error) {
    if (isAgentAuthError(error) && error.code === "login_required" && context.mayLogin) return undefined;
    throw error;
  }
}
