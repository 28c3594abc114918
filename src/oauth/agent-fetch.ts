import { AgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import { type BearerChallenge, bearerChallenge } from "./challenge.js";
import type { Grant } from "./grant.js";

/** What `fetch` needs of its agent. */
export interface FetchContext {
  fetch: typeof globalThis.fetch;
  grant(url: string, options: { signal?: AbortSignal | undefined }): Promise<Grant>;
  renew(grant: Grant, signal: AbortSignal | undefined): Promise<Grant>;
  signInAgain(
    url: string,
    request: { scope?: string; previousScope?: string | undefined; challenge?: BearerChallenge; signal?: AbortSignal | undefined },
  ): Promise<Grant>;
  mayLogin: boolean;
}

/**
 * Sends a request with the token of its server. Each remedy is tried once: a refused token is renewed, then replaced by
 * a new sign-in; missing scopes are asked for. What is refused after that is the answer.
 */
export async function fetchWithToken(context: FetchContext, input: string | URL | Request, init: RequestInit): Promise<Response> {
  const url = input instanceof Request ? input.url : String(input);
  const signal = init.signal ?? (input instanceof Request ? input.signal : undefined) ?? undefined;
  const replay = replayable(input, init);
  let grant = await context.grant(url, { signal });
  const tried = { renewal: false, signIn: false, stepUp: false };
  for (;;) {
    const response = await context.fetch(...replay.next(grant));
    const challenge = bearerChallenge(response.headers);
    const remedy = remedyFor(response, challenge, grant, tried, context.mayLogin);
    if (remedy === undefined) return response;
    replay.require();
    await response.body?.cancel().catch(() => undefined);
    tried[remedy] = true;
    if (remedy === "renewal") {
      grant = await context.renew(grant, signal).catch((error: unknown) => afterRenewal(error, context, grant));
    } else {
      const scope = remedy === "stepUp" && challenge?.scope !== undefined ? { scope: challenge.scope } : {};
      const previousScope = remedy === "stepUp" ? (grant.tokens.scope ?? grant.requestedScope) : undefined;
      grant = await context.signInAgain(url, { ...scope, previousScope, ...(challenge && { challenge }), signal });
    }
  }
}

type Remedy = "renewal" | "signIn" | "stepUp";

function remedyFor(
  response: Response,
  challenge: BearerChallenge | undefined,
  grant: Grant,
  tried: Record<Remedy, boolean>,
  mayLogin: boolean,
): Remedy | undefined {
  if (response.status === 401) {
    if (!tried.renewal && !tried.signIn && grant.tokens.refreshToken !== undefined) return "renewal";
    return mayLogin && !tried.signIn ? "signIn" : undefined;
  }
  if (response.status !== 403 || challenge?.error !== "insufficient_scope" || tried.stepUp) return undefined;
  if (mayLogin) return "stepUp";
  throw new AgentAuthError("insufficient_scope", `the token for ${quote(grant.server)} lacks scopes: ${quote(challenge.scope ?? "not told which")}`, {
    class: "auth",
    status: 403,
    hint: `agentauth login ${grant.server}${challenge.scope === undefined ? "" : ` --scope ${quote(challenge.scope)}`}`,
  });
}

/** A renewal that the issuer refuses leads to the next remedy; the request is sent as it was to find out which. */
function afterRenewal(error: unknown, context: FetchContext, grant: Grant): Grant {
  if (error instanceof AgentAuthError && error.code === "login_required" && context.mayLogin) return grant;
  throw error;
}

/** The same request again and again, as far as its body allows. */
function replayable(input: string | URL | Request, init: RequestInit) {
  const once = init.body instanceof ReadableStream;
  const request = input instanceof Request ? input : undefined;
  return {
    /** The arguments for `fetch`, with the grant's token. */
    next(grant: Grant): [string | URL | Request, RequestInit] {
      const headers = new Headers(init.headers ?? request?.headers);
      headers.set("authorization", `Bearer ${grant.tokens.accessToken.reveal()}`);
      // A redirect would take the token along inside the origin only, but an answer elsewhere is not this server's.
      const options: RequestInit = { ...init, headers, redirect: init.redirect ?? request?.redirect ?? "follow" };
      return [request?.body ? request.clone() : input, options];
    },
    require(): void {
      if (!once) return;
      throw new AgentAuthError("body_not_replayable", "the server refused the token, and the request's body is a stream that can be sent only once", {
        class: "auth",
        hint: "give the body as a string, bytes or a form",
      });
    },
  };
}
