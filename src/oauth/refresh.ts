import { AgentAuthError, isAgentAuthError } from "../errors.js";
import type { Clock } from "../http/deadline.js";
import { quote, shellWord } from "../redact.js";
import { type Grant, mergeAnswer, retire } from "./grant.js";
import type { GrantStore } from "./grant-store.js";
import type { OAuthHttp } from "./http.js";
import { refreshTokens } from "./token.js";

/** What a refresh depends on. */
export interface RefreshContext {
  store: GrantStore;
  http: OAuthHttp;
  clock: Pick<Clock, "epoch">;
  /** Grants that were renewed but could not be saved, by the token before them: the only copy of what the issuer gave. */
  unsaved: Map<string, Grant>;
}

// The issuer's word that the grant itself is over. Everything else may pass, and loses nobody a session.
const VERDICTS = new Set(["invalid_grant", "invalid_client", "unauthorized_client"]);

/**
 * Gets the next generation of a grant: under the store's lease, from what is stored now, saved before it is used.
 *
 * Whoever comes second finds the work done and takes its result. A refusal counts only when the store still holds the
 * grant that was refused; then it is marked as over, and kept.
 *
 * @param seen the grant that is no longer good enough
 * @throws `AgentAuthError` `login_required` where the grant is over, `store_failed`, or a network error that loses nothing
 */
export function refreshGrant(context: RefreshContext, seen: Grant, signal: AbortSignal | undefined): Promise<Grant> {
  const { store } = context;
  const key = { profile: seen.profile, server: seen.server };
  return store.lease(
    `refresh ${seen.profile} ${seen.server}`,
    async () => {
      const current = await store.read(key);
      if (!current) throw loginRequired(seen, "it was signed out meanwhile");
      if (current.generation !== seen.generation && !current.retired) return current;
      if (current.retired) throw loginRequired(current, current.retired.reason);
      if (current.tokens.refreshToken === undefined)
        throw loginRequired(current, "the token has ended, and there is no refresh token");
      const held = context.unsaved.get(current.tokens.accessToken.reveal());
      if (held?.generation === current.generation + 1) return keep(context, current, held);
      try {
        // Without the caller's signal: a request that was sent may have been obeyed, and its answer is then the session.
        const { issuer, client, endpoints } = current;
        const call = { ...context, issuer, tokenEndpoint: endpoints.token, client, signal: undefined };
        return await keep(context, current, mergeAnswer(current, await refreshTokens(call, current)));
      } catch (error) {
        if (!isAgentAuthError(error) || !VERDICTS.has(error.code)) throw error;
        const stored = await store.read(key);
        if (stored && stored.generation !== current.generation && !stored.retired) return stored;
        const reason = `the issuer refused to renew it: ${error.code}`;
        await store.save(retire(current, reason, context.clock.epoch()), current.generation);
        throw loginRequired(current, reason, error);
      }
    },
    signal,
  );
}

/** Saves the next generation. Until that worked it is held here: asking the issuer again would end the session. */
async function keep({ store, unsaved }: RefreshContext, current: Grant, next: Grant): Promise<Grant> {
  const before = current.tokens.accessToken.reveal();
  unsaved.set(before, next);
  const saved = await store.save(next, current.generation);
  unsaved.delete(before);
  if (saved) return next;
  // Somebody signed in while we asked: theirs is the newer word.
  const stored = await store.read({ profile: next.profile, server: next.server });
  if (stored && !stored.retired) return stored;
  throw loginRequired(next, "it was signed out meanwhile");
}

/** The error for a server that needs a person: it names the profile and the command. */
export function loginRequired(
  { profile, server }: { profile: string; server: string },
  reason: string,
  cause?: unknown,
): AgentAuthError {
  const flag = profile === "default" ? "" : ` --profile ${profile}`;
  return new AgentAuthError(
    "login_required",
    `sign-in is needed for ${quote(server)} (profile ${profile}): ${reason}`,
    {
      class: "auth",
      hint: `agentauth login ${shellWord(server)}${flag}`,
      cause,
    },
  );
}
