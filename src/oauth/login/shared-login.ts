import { AgentAuthError, type AgentAuthErrorJson, isAgentAuthError, withHint } from "../../errors.js";
import { quote } from "../../redact.js";
import { refuseDocument } from "../client/metadata-document.js";
import { unseenByLogin } from "../discovery/unseen-by-login.js";
import {
  findUnmetRequirement,
  LOGIN_HINT,
  type LoginParameters,
  loginRemedy,
  loginRequired,
} from "../grant/grant-requirements.js";
import type { Progress } from "../http/trace.js";
import type { AuthorizationParams } from "../model/authorization-params.js";
import type { BearerChallenge } from "../model/challenge.js";
import { coversScope, type Grant, type GrantKey, hasSameTokens, noteRefusal } from "../model/grant.js";
import { failureOf, HEARTBEAT_MS, holderText, type Lease } from "../model/lease.js";
import { splitScope } from "../model/scope.js";
import { type LoginContext, withParams } from "./login-context.js";
import { observeLogin } from "./login-event.js";
import { loginWith } from "./login-flow.js";
import type { LoginMethod } from "./login-method.js";

/** What a login of the user needs. */
export interface SharedLoginContext {
  /** How the user logs in; undefined if no login is allowed. */
  method: LoginMethod | undefined;
  /** Everything else that a login needs; the overrides of the earlier login remain in force for its issuer. */
  loginContext(key: GrantKey, before: Grant | undefined): LoginContext;
  onProgress?: ((progress: Progress) => void) | undefined;
}

/** Input of a shared login. */
export interface SharedLoginRequest {
  key: GrantKey;
  scope?: string | undefined;
  /** Parameters of the authorization request, for this login. */
  authorizationParams?: AuthorizationParams | undefined;
  /** The scopes requested before, in a step-up. */
  previousScope?: string | undefined;
  challenge?: BearerChallenge | undefined;
  /** The grant to replace, if there is one; a newer one is accepted as the result. */
  seen?: Grant | undefined;
  /** The same if its server rejected it. */
  refused?: Grant;
  /** Whether the user requested it, rather than a program that needs a token. */
  explicit?: boolean;
  signal?: AbortSignal | undefined;
}

/** How long programs do not request a login again after the user declined it. */
const DECLINED_MS = 5 * 60_000;
/** A token that its server rejects so soon after the login has not expired. */
const NEW_LOGIN_MS = 10 * 60_000;

/**
 * Logs the user in: one login at a time across all processes that share the store. The others wait for its result, so
 * that only one browser opens.
 */
export function shareLogin(
  context: SharedLoginContext,
  request: SharedLoginRequest & { signal: AbortSignal },
): Promise<Grant> {
  const { key, scope, seen, refused, explicit, signal } = request;
  const { profile, server, account } = key;
  const { method } = context;
  if (method === undefined) throw loginRequired(key, "not logged in");
  const before = seen ?? refused;
  const about = withParams(context.loginContext(key, before), request);
  const login = refused ? { ...about, refusals: noteRefusal(refused, about.clock.epoch()).refusals } : about;
  const { store, clock, http } = login;
  const wanted = splitScope(scope);
  // A grant that another process has stored since the one to replace was read.
  const newer = async () => {
    const stored = await store.read(key);
    if (!stored || stored.retired || !coversScope(stored, wanted) || findUnmetRequirement(stored, login))
      return undefined;
    return before && hasSameTokens(stored, before) ? undefined : stored;
  };
  return store.lease(
    `login ${profile} ${server} ${account ?? ""}`,
    async (lease) => {
      // Detects an unreadable store before the user is asked.
      const stored = await newer();
      if (stored && (lease.waited || !explicit)) return stored;
      const rejected = refused ? { ...refused, refusals: login.refusals } : seen;
      if (rejected && isRejectedDocument(rejected)) await refuseDocument(store, rejected.client, clock.epoch());
      const { previousScope, challenge } = request;
      const unseen = unseenByLogin(challenge, server);
      rethrowDeclined(lease, { key, explicit: explicit === true, now: clock.epoch(), unseen });
      try {
        const work = () => loginWith(login, { mcpUrl: server, method, scope, previousScope, challenge, signal });
        return await observeLogin(login.events, { server, flow: login.flow }, work);
      } catch (error) {
        http.forgetDocuments();
        throw withUnseenRemedy(error, key, unseen);
      }
    },
    {
      durationMs: HEARTBEAT_MS,
      extend: true,
      grant: key,
      signal,
      until: newer,
      onWait: (holder) => {
        const text = `${holderText(holder)} is logging in at ${server}; waiting for it`;
        context.onProgress?.({ about: "login", text });
      },
    },
  );
}

/**
 * Whether a server rejected the token of a login with our metadata document right after that login: some issuers support
 * such documents, and their servers accept only tokens of clients that are registered.
 */
function isRejectedDocument({ client, refusals, signedInAt }: Grant): boolean {
  return client.source === "metadata-document" && refusals.some((at) => at - signedInAt < NEW_LOGIN_MS);
}

interface LoginAttempt {
  key: GrantKey;
  explicit: boolean;
  now: number;
  unseen: LoginParameters;
}

/** What a stored failure says about the next login; its remedy may have any members. */
function readUnseen({ remedy }: AgentAuthErrorJson): LoginParameters {
  const { scope, resourceMetadata } = remedy?.action === "login" ? remedy : {};
  if (typeof resourceMetadata !== "string") return {};
  return { resourceMetadata, ...(typeof scope === "string" && { scope }) };
}

/** Adds to the failure of a login what the next one cannot find out: a program that comes then has seen no challenge. */
function withUnseenRemedy(error: unknown, key: GrantKey, unseen: LoginParameters): unknown {
  const isPlain = isAgentAuthError(error) && error.class === "auth" && error.remedy === undefined;
  if (!isPlain || unseen.resourceMetadata === undefined) return error;
  return withHint(error, error.hint ?? LOGIN_HINT, loginRemedy(key, unseen));
}

/**
 * Rethrows the failure of a recent login, so that a user who declined it is not asked again by every program that needs
 * a token.
 */
function rethrowDeclined(lease: Lease, { key, explicit, now, unseen }: LoginAttempt): void {
  const { failure, endedAt } = lease.before ?? {};
  if (failure === undefined || endedAt === undefined || failure.class === "aborted") return;
  // No user was asked, and the server may require a login by now.
  if (failure.code === "login_not_required") return;
  const isRemembered = failure.class === "auth" && now - endedAt <= DECLINED_MS && now >= endedAt;
  if (!lease.waited && (explicit || !isRemembered)) return;
  // The failure stays that of the attempt in which the user was asked, and so does its time.
  lease.rollback();
  if (lease.waited) throw failureOf(failure);
  const message = `the login at ${quote(key.server)} failed ${Math.round((now - endedAt) / 1000)} s ago: ${failure.message}`;
  const hint = "log in to be asked again";
  const remedy = loginRemedy(key, { ...readUnseen(failure), ...unseen });
  throw new AgentAuthError(failure.code, message, { class: "auth", hint, remedy });
}
