import { AgentAuthError, type AgentAuthErrorJson, isAgentAuthError, usageError, withHint } from "../../errors.js";
import type { Clock } from "../../http/deadline.js";
import { Lru } from "../../http/lru.js";
import { SingleFlight } from "../../http/single-flight.js";
import { quote } from "../../redact.js";
import { refuseDocument } from "../client/metadata-document.js";
import { challengeOnlyMetadata } from "../discovery/resource-metadata.js";
import {
  findUnmetRequirement,
  LOGIN_HINT,
  type LoginParameters,
  loginRemedy,
  loginRequired,
  machineAccountError,
} from "../grant/grant-requirements.js";
import { isStorm, noteRefusal } from "../grant/rejected-token.js";
import type { Progress } from "../http/trace.js";
import { type AuthorizationParams, paramsText } from "../model/authorization-params.js";
import type { BearerChallenge } from "../model/challenge.js";
import { coversScope, type Grant, type GrantKey, hasSameTokens } from "../model/grant.js";
import type { GrantStore } from "../model/grant-store.js";
import { failureOf, HEARTBEAT_MS, holderText, type Lease } from "../model/lease.js";
import { IDP_ACCOUNT, isMachineAccount } from "../model/machine-grant.js";
import { splitScope } from "../model/scope.js";
import { type LoginContext, withParams } from "./login-context.js";
import { loginWith, observeLogin } from "./login-flow.js";
import type { LoginMethod } from "./login-method.js";

/** How long no other login is requested after one that did not help. */
const REPEAT_LOGIN_MS = 5 * 60_000;
/** The logins of which this process knows more than the store. */
const MAX_LOGINS = 10_000;

/** What this process knows about the logins at one server, beside the stored grant. */
interface LoginState {
  /** The grant that its server rejected and a login is replacing now. */
  replacing?: Grant | undefined;
  /** The last login that replaced a rejected grant, and when. */
  replaced?: { at: number; grant: Grant };
  /** The result of a login whose token only this process may use, until its server rejects it. */
  own?: Grant | undefined;
}

/** The logins of a client: one at a time for each server and scope, and what this process knows about them. */
export class ClientLogins {
  readonly #context: SharedLoginContext;
  readonly #inFlight = new SingleFlight<Grant>();
  /** By lock name. */
  readonly #logins = new Lru<LoginState>(MAX_LOGINS);

  constructor(context: SharedLoginContext) {
    this.#context = context;
  }

  /** Logs the user in; concurrent calls with the same key and scope share the result. */
  run(key: GrantKey, request: Omit<SharedLoginRequest, "key">): Promise<Grant> {
    const { scope, refused, authorizationParams = {} } = request;
    if (isMachineAccount(key.account) && key.account !== IDP_ACCOUNT) throw machineAccountError(key.account);
    const name = lockNameOf(key);
    const work = async (signal: AbortSignal) => {
      if (refused) await throwOnRenewalLoop(this.#context, refused);
      if (refused && scope === undefined) this.#note(name, { replacing: refused, own: undefined });
      try {
        const grant = await shareLogin(this.#context, { ...request, key, signal });
        if (refused) this.#note(name, { replaced: { at: this.#context.clock.epoch(), grant } });
        if (isForOneProcess(grant)) this.#note(name, { own: grant });
        return grant;
      } finally {
        if (this.#logins.get(name)) this.#note(name, { replacing: undefined });
      }
    };
    const what = `login ${name} ${scope ?? ""} ${paramsText(authorizationParams)}`;
    return this.#inFlight.run(what, work, request.signal);
  }

  /** Whether a login is replacing the token of a grant now, because its server rejected it. */
  isReplacing(grant: Grant): boolean {
    const refused = this.#logins.get(lockNameOf(grant))?.replacing;
    return refused !== undefined && hasSameTokens(refused, grant);
  }

  /** Whether a grant comes from a login after a rejection, so recent that another login would not help. */
  followsRefusal(grant: Grant): boolean {
    const last = this.#logins.get(lockNameOf(grant))?.replaced;
    if (last === undefined || this.#context.clock.epoch() - last.at >= REPEAT_LOGIN_MS) return false;
    return grant.signedInAt === last.grant.signedInAt && grant.generation >= last.grant.generation;
  }

  /** Whether a grant is that of a login whose token only this process may use, until its server rejects it. */
  isOwn(grant: Grant): boolean {
    const own = this.#logins.get(lockNameOf(grant))?.own;
    return own !== undefined && hasSameTokens(own, grant);
  }

  #note(name: string, change: LoginState): void {
    this.#logins.set(name, { ...this.#logins.get(name), ...change });
  }
}

/** Throws if requests to the issuer, or to the user, would repeat without end. */
export async function throwOnRenewalLoop(
  { store, clock }: Pick<SharedLoginContext, "store" | "clock">,
  grant: Grant,
): Promise<void> {
  const stored = await store.read(grant);
  if (stored && isStorm(stored, clock.epoch())) throw renewalLoopError(grant);
}

function renewalLoopError(grant: Grant): AgentAuthError {
  const message = `${quote(grant.server)} has rejected three new tokens within a minute; no other one is requested`;
  const hint = "wait a minute, or log in again";
  return new AgentAuthError("renewal_storm", message, { class: "auth", hint, remedy: loginRemedy(grant) });
}

/** What distinguishes the logins, and the refreshes, of a client. */
export function lockNameOf({ profile, server, account }: GrantKey): string {
  return JSON.stringify([profile, server, account]);
}

/**
 * Whether the access token expired when it was issued (`expires_in` 0) and nothing refreshes it. Only the process that
 * logged in uses it: otherwise each of its requests would need a login.
 */
function isForOneProcess({ tokens }: Grant): boolean {
  return tokens.refreshToken === undefined && tokens.expiresAt === tokens.obtainedAt;
}

/** What a login of the user needs. */
export interface SharedLoginContext {
  store: GrantStore;
  clock: Pick<Clock, "epoch">;
  /** How the user logs in; undefined if no login is allowed. */
  method: LoginMethod | undefined;
  /** Everything else that a login needs; the overrides of the earlier login remain in force for its issuer. */
  loginContext(key: GrantKey, previous: Grant | undefined): LoginContext;
  onProgress?: ((progress: Progress) => void) | undefined;
}

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
function shareLogin(
  context: SharedLoginContext,
  request: SharedLoginRequest & { signal: AbortSignal },
): Promise<Grant> {
  const { key, scope, seen, refused, explicit, signal } = request;
  const { profile, server, account } = key;
  const { method } = context;
  if (method === undefined) {
    if (!explicit) throw loginRequired(key, "not logged in");
    throw usageError("this client has no way to log a user in", "set its option login, or call startLogin()");
  }
  const previous = seen ?? refused;
  const about = withParams(context.loginContext(key, previous), request);
  const login = refused ? { ...about, refusals: noteRefusal(refused, about.clock.epoch()).refusals } : about;
  const { store, clock, http } = login;
  const requestedScopes = splitScope(scope);
  // A grant that another process has stored since the one to replace was read.
  const newer = async () => {
    const stored = await store.read(key);
    if (!stored || stored.retired || !coversScope(stored, requestedScopes) || findUnmetRequirement(stored, login))
      return undefined;
    return previous && hasSameTokens(stored, previous) ? undefined : stored;
  };
  return store.lease(
    `login ${profile} ${server} ${account ?? ""}`,
    async (lease) => {
      // Detects an unreadable store before the user is prompted.
      const stored = await newer();
      if (stored && (lease.waited || !explicit)) return stored;
      const rejected = refused ? { ...refused, refusals: login.refusals } : seen;
      if (rejected && isRejectedDocument(rejected)) await refuseDocument(store, rejected.client, clock.epoch());
      const { previousScope, challenge } = request;
      const unseen = challengeOnlyMetadata(challenge, server);
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
 * Rethrows the failure of a recent login, so that a user who declined it is not prompted again by every program that needs
 * a token.
 */
function rethrowDeclined(lease: Lease, { key, explicit, now, unseen }: LoginAttempt): void {
  const { failure, endedAt } = lease.previous ?? {};
  if (failure === undefined || endedAt === undefined || failure.class === "aborted") return;
  // No user was prompted, and the server may require a login by now.
  if (failure.code === "login_not_required") return;
  const isRemembered = failure.class === "auth" && now - endedAt <= DECLINED_MS && now >= endedAt;
  if (!lease.waited && (explicit || !isRemembered)) return;
  // The failure stays that of the attempt in which the user was prompted, and so does its time.
  lease.rollback();
  if (lease.waited) throw failureOf(failure);
  const message = `the login at ${quote(key.server)} failed ${Math.round((now - endedAt) / 1000)} s ago: ${failure.message}`;
  const hint = "log in to be asked again";
  const remedy = loginRemedy(key, { ...readUnseen(failure), ...unseen });
  throw new AgentAuthError(failure.code, message, { class: "auth", hint, remedy });
}
