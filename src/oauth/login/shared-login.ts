import { AgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import type { Progress } from "../agent-progress.js";
import type { BearerChallenge } from "../discovery/challenge.js";
import { coversScope, type Grant, hasSameTokens, noteRefusal } from "../grant/grant.js";
import { unmetRequirement } from "../grant/grant-requirements.js";
import type { GrantKey } from "../grant/grant-store.js";
import { failureOf, HEARTBEAT_MS, type Lease } from "../grant/lease.js";
import { splitScope } from "../token/scope.js";
import { loginCommand, loginRequired } from "./login-command.js";
import type { LoginContext } from "./login-context.js";
import { loginWith } from "./login-flow.js";
import type { LoginMethod } from "./login-method.js";

/** What logging the user in depends on. */
export interface SharedLoginContext {
  /** How the user logs in; undefined where nobody may be asked. */
  method: LoginMethod | undefined;
  /** Everything else that a login needs; what the user lifted for the login before stays lifted for its issuer. */
  loginContext(key: GrantKey, before: Grant | undefined): LoginContext;
  onProgress?: ((progress: Progress) => void) | undefined;
}

/** What one login is for. */
export interface SharedLoginRequest {
  key: GrantKey;
  scope?: string | undefined;
  /** The scopes asked for before, in a step-up. */
  previousScope?: string | undefined;
  challenge?: BearerChallenge;
  /** The grant that is not good enough, if there is one; a newer one does as well. */
  seen?: Grant | undefined;
  /** The same where its server did not take it. */
  refused?: Grant;
  /** Whether the user asked for it, rather than a program that found it needed. */
  explicit?: boolean;
  signal?: AbortSignal | undefined;
}

/** How long a login that the user turned down is not asked for again by programs. */
const DECLINED_MS = 5 * 60_000;

/**
 * Logs the user in: one at a time for all processes that share the store. Those that come while one is on its way wait
 * for its result, so that no more than one browser opens.
 */
export function sharedLogin(
  context: SharedLoginContext,
  request: SharedLoginRequest & { signal: AbortSignal },
): Promise<Grant> {
  const { key, scope, seen, refused, explicit, signal } = request;
  const { profile, server, account } = key;
  const { method } = context;
  if (method === undefined) throw loginRequired(key, "nobody is signed in");
  const before = seen ?? refused;
  const about = context.loginContext(key, before);
  const login = refused ? { ...about, refusals: noteRefusal(refused, about.clock.epoch()).refusals } : about;
  const { store, clock, http } = login;
  const wanted = splitScope(scope);
  // What somebody else logged in since the grant that is not good enough was read.
  const newer = async () => {
    const stored = await store.read(key);
    if (!stored || stored.retired || !coversScope(stored, wanted) || unmetRequirement(stored, login)) return undefined;
    return before && hasSameTokens(stored, before) ? undefined : stored;
  };
  return store.lease(
    `login ${profile} ${server} ${account ?? ""}`,
    async (lease) => {
      // A store that cannot be read is found out before the user is troubled.
      const stored = await newer();
      if (stored && (lease.waited || !explicit)) return stored;
      rethrowDeclined(lease, { key, explicit: explicit === true, now: clock.epoch() });
      const { previousScope, challenge } = request;
      try {
        return await loginWith(login, { mcpUrl: server, method, scope, previousScope, challenge, signal });
      } catch (error) {
        http.forgetDocuments();
        throw error;
      }
    },
    {
      duration: HEARTBEAT_MS,
      extend: true,
      signal,
      until: newer,
      onWait: ({ pid }) => {
        const text = `process ${pid ?? "?"} is signing in at ${server}; waiting for it`;
        context.onProgress?.({ about: "login", text });
      },
    },
  );
}

interface LoginAttempt {
  key: GrantKey;
  explicit: boolean;
  now: number;
}

/** The user who said no, or did not come, is not asked again at once by every program that would like a token. */
function rethrowDeclined(lease: Lease, { key, explicit, now }: LoginAttempt): void {
  const { failure, endedAt } = lease.before ?? {};
  if (failure === undefined || endedAt === undefined || failure.class === "aborted") return;
  const isRemembered = failure.class === "auth" && now - endedAt <= DECLINED_MS && now >= endedAt;
  if (!lease.waited && (explicit || !isRemembered)) return;
  // It stays the failure of the attempt in which the user was asked, and the time since then is what counts.
  lease.rollback();
  if (lease.waited) throw failureOf(failure);
  throw new AgentAuthError(
    failure.code,
    `the sign-in at ${quote(key.server)} ended ${Math.round((now - endedAt) / 1000)} s ago: ${failure.message}`,
    { class: "auth", hint: `to be asked again: ${loginCommand(key)}` },
  );
}
