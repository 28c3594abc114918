import { AgentAuthError, type AgentAuthErrorJson, isAgentAuthError, usageError, withHint } from "../../errors.js";
import type { Clock } from "../../http/deadline.js";
import { Lru } from "../../http/lru.js";
import { SingleFlight } from "../../http/single-flight.js";
import { quote } from "../../redact.js";
import { refuseDocument } from "../client/metadata-document.js";
import { challengeOnlyMetadata, checkFirstNamed, withUnseen } from "../discovery/resource-metadata.js";
import type { GrantOptions, GrantRequirements, LoginParameters, TokenOptions } from "../grant/grant-requirements.js";
import {
  findUnmetRequirement,
  LOGIN_HINT,
  loginRemedy,
  loginRequired,
  machineAccountError,
  missingParams,
} from "../grant/grant-requirements.js";
import { noRefreshTokenText, type RefreshTrigger, refreshGrant } from "../grant/refresh.js";
import type { PendingRefreshes, RefreshContext, TokenResult } from "../grant/send-refresh.js";
import { isLastToken, observeToken, unsavedFor } from "../grant/send-refresh.js";
import { isStorm, noteRefusal } from "../grant/token-fetch.js";
import type { OAuthHttp } from "../http/http.js";
import { type AuthorizationParams, paramsText } from "../model/authorization-params.js";
import type { BearerChallenge } from "../model/challenge.js";
import { coversScope, type Grant, type GrantKey, hasSameTokens, isFresh } from "../model/grant.js";
import { HEARTBEAT_MS, holderText, isPeerFailure, type Lease, restoreFailure } from "../model/lease.js";
import { IDP_ACCOUNT, isMachineAccount } from "../model/machine-grant.js";
import { splitScope, unionScopes } from "../model/scope.js";
import { type LoginContext, withParams } from "./authorization.js";
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

/** Throws if requests to the issuer, or to the user, would repeat without end. */
async function throwOnRenewalLoop({ store, clock }: TokenManagerContext, grant: Grant) {
  const stored = await store.read(grant);
  if (stored && isStorm(stored, clock.epoch())) throw renewalLoopError(grant);
}

function renewalLoopError(grant: Grant): AgentAuthError {
  const message = `${quote(grant.server)} has rejected three new tokens within a minute; no other one is requested`;
  const hint = "wait a minute, or log in again";
  return new AgentAuthError("renewal_storm", message, { class: "auth", hint, remedy: loginRemedy(grant) });
}

/** What distinguishes the logins, and the refreshes, of a client. */
function loginLockName({ profile, server, account }: GrantKey): string {
  return JSON.stringify([profile, server, account]);
}

/**
 * Whether the access token expired when it was issued (`expires_in` 0) and nothing refreshes it. Only the process that
 * logged in uses it: otherwise each of its requests would need a login.
 */
function isForOneProcess({ tokens }: Grant): boolean {
  return tokens.refreshToken === undefined && tokens.expiresAt === tokens.obtainedAt;
}

export interface SharedLoginRequest {
  key: GrantKey;
  scope?: string | undefined;
  authorizationParams?: AuthorizationParams | undefined;
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
function shareLogin(context: TokenManagerContext, request: SharedLoginRequest & { signal: AbortSignal }) {
  const { key, scope, seen, refused, explicit, signal } = request;
  const { profile, server, account } = key;
  const { method } = context;
  if (method === undefined) {
    if (!explicit) throw loginRequired(key, "not logged in");
    throw usageError("this client has no way to log a user in", "set its option login, or call startLogin()");
  }
  const previous = seen ?? refused;
  const details = withParams(context.loginContext(key, previous), request);
  const login = refused ? { ...details, refusals: noteRefusal(refused, details.clock.epoch()).refusals } : details;
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
        context.onProgress?.({ subject: "login", text });
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
  if (lease.waited) throw restoreFailure(failure);
  const message = `the login at ${quote(key.server)} failed ${Math.round((now - endedAt) / 1000)} s ago: ${failure.message}`;
  const hint = "log in to be asked again";
  const remedy = loginRemedy(key, { ...readUnseen(failure), ...unseen });
  throw new AgentAuthError(failure.code, message, { class: "auth", hint, remedy });
}

export interface TokenManagerContext extends Omit<RefreshContext, "unsaved" | "clock" | "http" | "pending"> {
  clock: Clock;
  requirements: GrantRequirements;
  /** How the user logs in; undefined if no login is allowed. */
  method: LoginMethod | undefined;
  /** Everything else that a login needs; the overrides of the earlier login remain in force for its issuer. */
  loginContext(key: GrantKey, previous: Grant | undefined): LoginContext;
  httpFor(grant: Grant): OAuthHttp;
  pending: PendingRefreshes;
}

/** Decides, for every request for a token, whether to use the stored grant, refresh it, or log in. */
export class TokenManager {
  readonly #context: TokenManagerContext;
  /** Logins and refreshes: one at a time of each login, and for each scope. */
  readonly #inFlight = new SingleFlight<Grant>();
  readonly #unsaved = new Map<string, Grant>();
  /** By lock name. */
  readonly #logins = new Lru<LoginState>(MAX_LOGINS);

  constructor(context: TokenManagerContext) {
    this.#context = context;
  }

  /** The stored grant of a key; without an account, the only login at the server. */
  async find(key: GrantKey): Promise<Grant | undefined> {
    const { store } = this.#context;
    const exact = await store.read(key);
    if (exact || key.account !== undefined) return exact;
    const unusable: AgentAuthError[] = [];
    const { profile, server } = key;
    const grants = await store.list({ profile, server }, (error) => unusable.push(error));
    const [one, ...others] = grants.filter(({ account }) => !isMachineAccount(account));
    if (one && others.length > 0) throw ambiguousAccountError(key, [one, ...others]);
    // The broken file may hold another account at this server: do not guess the account.
    if (one && unusable[0]) throw perhapsAmbiguousError(key, one, unusable[0]);
    return one;
  }

  /**
   * A grant that meets the options: the stored one, a refreshed one, or that of a new login.
   *
   * | stored grant | its access token | what is done |
   * |---|---|---|
   * | none, rejected by its issuer, lacks a scope or does not meet a requirement | | login |
   * | good | fresh, or for this process alone | used, unless a refresh is forced |
   * | good | valid until it expires, since the response to its refresh was lost | used, unless a refresh is forced |
   * | good, with a refresh token | any other | refresh; login if the issuer rejects the grant or leaves out a scope |
   * | good, without a refresh token | any other | login |
   *
   * @param found the stored grant, if it has just been read
   */
  get(key: GrantKey, options: GrantOptions, found?: Grant): Promise<Grant> {
    return observeToken(this.#context.events, key, () => this.#serve(key, options, found));
  }

  async #serve(key: GrantKey, options: GrantOptions, found: Grant | undefined): Promise<TokenResult> {
    const requestedScopes = splitScope(options.scope);
    const grant = found ?? (await this.find(key));
    if (grant && this.#satisfiesRequest(grant, requestedScopes)) {
      if (!options.forceRefresh && this.#isUsable(grant, options.minTtl)) return { grant, source: "stored" };
      const refreshed = grant.tokens.refreshToken && (await this.#refreshOrUse(grant, options));
      if (refreshed && coversScope(refreshed.grant, requestedScopes)) return refreshed;
    }
    return this.#loginAfter(grant, key, options);
  }

  /** Whether the issuer has not rejected a grant, and it has the scopes and meets the requirements. */
  #satisfiesRequest(grant: Grant, requestedScopes: readonly string[]): boolean {
    const isRetired = grant.retired !== undefined && !this.#isUnsaved(grant);
    const { requirements } = this.#context;
    return !isRetired && coversScope(grant, requestedScopes) && findUnmetRequirement(grant, requirements) === undefined;
  }

  #isUsable(grant: Grant, minTtl: number | undefined): boolean {
    const now = this.#context.clock.epoch();
    const own = this.#stateOf(grant)?.own;
    if (isFresh(grant, now, minTtl) || (own !== undefined && hasSameTokens(own, grant))) return true;
    return isLastToken(grant, now) && !this.#isUnsaved(grant);
  }

  /** Whether this process holds newer tokens that it could not save. */
  #isUnsaved(grant: Grant): boolean {
    return unsavedFor({ unsaved: this.#unsaved }, grant) !== undefined;
  }

  /** Logs in where that is allowed; else the error says which login is needed. */
  async #loginAfter(grant: Grant | undefined, key: GrantKey, options: GrantOptions): Promise<TokenResult> {
    const { method, requirements } = this.#context;
    if (isMachineAccount(key.account) && key.account !== IDP_ACCOUNT) throw machineAccountError(key.account);
    if (options.login !== false && method !== undefined) {
      const request = { ...options, previousScope: grant?.requestedScope, seen: grant };
      return { grant: await this.login(grant ?? key, request), source: "login" };
    }
    const requestedScopes = splitScope(options.scope);
    // A login for these scopes alone would lose those granted before.
    const scope = requestedScopes.length > 0 ? unionScopes(grant?.requestedScope, options.scope) : undefined;
    const parameters = {
      ...challengeOnlyMetadata(options.challenge, key.server),
      ...(scope !== undefined && { scope }),
    };
    const reason = explainLogin(grant, requestedScopes, requirements, options);
    this.#checkChallenge(grant ?? key, grant, options.challenge);
    const authorizationParams = grant && missingParams(grant);
    throw loginRequired(grant ?? key, reason, { ...parameters, dpop: requirements.dpop, authorizationParams });
  }

  /** Throws what a login would fail with: an option that the user has to decide about is named before the login. */
  #checkChallenge(key: GrantKey, grant: Grant | undefined, challenge: BearerChallenge | undefined): void {
    const { overrides } = this.#context.loginContext(key, grant);
    if (challenge === undefined || overrides.allowCrossOriginMetadata === true) return;
    try {
      checkFirstNamed(challenge, key.server);
    } catch (error) {
      throw withUnseen(error, challenge, key.server);
    }
  }

  /** A grant for a request; while a login replaces a token that its server rejected, waits for that. */
  async toSend(
    key: GrantKey,
    options: Pick<GrantOptions, "scope" | "signal" | "challenge" | "login">,
    found?: Grant,
  ): Promise<Grant> {
    const grant = await this.get(key, options, found);
    const replacing = this.#stateOf(grant)?.replacing;
    if (replacing === undefined || !hasSameTokens(replacing, grant)) return grant;
    return this.login(grant, { ...options, refused: grant });
  }

  /** Refreshes a grant whose token its server rejected, unless that was just tried without success. */
  async refreshRefused(grant: Grant, signal: AbortSignal | undefined): Promise<Grant> {
    await throwOnRenewalLoop(this.#context, grant);
    return (await this.#refreshOnce(grant, { isRefused: true, isForced: true }, signal)).grant;
  }

  /** A newer generation of a grant: that of another process, else the result of a refresh. */
  async renew(seen: Grant, signal: AbortSignal | undefined): Promise<Grant> {
    return (await this.#refreshOnce(seen, { isRefused: false, isForced: true }, signal)).grant;
  }

  /**
   * Refreshes an unused grant, so that it does not expire.
   *
   * @param dueAt when it is due again, in Unix milliseconds
   * @returns whether this process did, and no other one
   * @throws also `lease_busy` if another process is refreshing it
   */
  async keepAlive(seen: Grant, dueAt: number, isForced: boolean): Promise<boolean> {
    const trigger = { isRefused: false, isForced, dueAt };
    return (await this.#refreshOnce(seen, trigger, undefined)).source === "refreshed";
  }

  /** Logs the user in; concurrent calls with the same key and scope share the result. */
  login(key: GrantKey, request: Omit<SharedLoginRequest, "key">): Promise<Grant> {
    const { scope, refused, authorizationParams = {} } = request;
    if (isMachineAccount(key.account) && key.account !== IDP_ACCOUNT) throw machineAccountError(key.account);
    const work = async (signal: AbortSignal) => {
      if (refused) await throwOnRenewalLoop(this.#context, refused);
      if (refused && scope === undefined) this.#note(key, { replacing: refused, own: undefined });
      try {
        const grant = await shareLogin(this.#context, { ...request, key, signal });
        if (refused) this.#note(key, { replaced: { at: this.#context.clock.epoch(), grant } });
        if (isForOneProcess(grant)) this.#note(key, { own: grant });
        return grant;
      } finally {
        if (this.#stateOf(key)) this.#note(key, { replacing: undefined });
      }
    };
    const name = `login ${loginLockName(key)} ${scope ?? ""} ${paramsText(authorizationParams)}`;
    return this.#inFlight.run(name, work, request.signal);
  }

  #stateOf(key: GrantKey): LoginState | undefined {
    return this.#logins.get(loginLockName(key));
  }

  #note(key: GrantKey, change: LoginState): void {
    this.#logins.set(loginLockName(key), { ...this.#stateOf(key), ...change });
  }

  /** Whether a grant comes from a login after a rejection, so recent that another login would not help. */
  followsRefusal(grant: Grant): boolean {
    const last = this.#stateOf(grant)?.replaced;
    if (last === undefined || this.#context.clock.epoch() - last.at >= REPEAT_LOGIN_MS) return false;
    return grant.signedInAt === last.grant.signedInAt && grant.generation >= last.grant.generation;
  }

  /**
   * Refreshes. What a failure means:
   *
   * | failure | the token of the grant | result |
   * |---|---|---|
   * | of the issuer, a proxy or the store, or this client is closed | valid, and no refresh is forced | the grant |
   * | a login is needed: the issuer rejected the grant, or nothing refreshes it | any | undefined if a login is allowed, else the error |
   * | any other | any | the error |
   */
  async #refreshOrUse(grant: Grant, options: TokenOptions): Promise<TokenResult | undefined> {
    try {
      const isForced = options.forceRefresh === true;
      return await this.#refreshOnce(grant, { isRefused: false, isForced }, options.signal);
    } catch (error) {
      if (!isAgentAuthError(error)) throw error;
      const { tokens } = grant;
      const { clock } = this.#context;
      const isValid = !grant.retired && tokens.expiresAt !== undefined && tokens.expiresAt > clock.epoch();
      // With a status it is the issuer's own `login_required` (OpenID Connect Core section 3.1.2.6).
      const needsLogin = error.code === "login_required" && error.status === undefined;
      const { isClosed } = this.#context.pending;
      const isPassing = isClosed || (!needsLogin && error.code !== "grant_not_saved" && isPeerFailure(error));
      if (isPassing && isValid && !options.forceRefresh) return { grant, source: "cached" };
      if (!needsLogin || options.login === false || this.#context.method === undefined) throw error;
      return undefined;
    }
  }

  async #refreshOnce(seen: Grant, trigger: RefreshTrigger, signal: AbortSignal | undefined): Promise<TokenResult> {
    const context = { ...this.#context, http: this.#context.httpFor(seen), unsaved: this.#unsaved };
    // Stays false for a call that joins the refresh of another one.
    let refreshedHere = false;
    const work = async (within: AbortSignal) => {
      const result = await this.#context.pending.run(() => refreshGrant(context, seen, trigger, within));
      ({ refreshedHere } = result);
      return result.grant;
    };
    const grant = await this.#inFlight.run(`refresh ${loginLockName(seen)}`, work, signal);
    return { grant, source: refreshedHere ? "refreshed" : hasSameTokens(grant, seen) ? "cached" : "joined" };
  }
}

function explainLogin(
  grant: Grant | undefined,
  requestedScopes: readonly string[],
  requirements: GrantRequirements,
  { forceRefresh }: TokenOptions,
): string {
  if (!grant) return "not logged in";
  if (grant.retired) return grant.retired.reason;
  const reason = findUnmetRequirement(grant, requirements);
  if (reason !== undefined) return reason;
  if (!coversScope(grant, requestedScopes)) return `the token lacks the scope ${requestedScopes.join(" ")}`;
  return noRefreshTokenText(forceRefresh === true);
}

function ambiguousAccountError(key: GrantKey, grants: readonly Grant[]): AgentAuthError {
  const accounts = grants.map(({ account }) => quote(account ?? "")).join(", ");
  const message = `several accounts are logged in at ${quote(key.server)} (profile ${key.profile}): ${accounts}`;
  const hint = "name one with the option account";
  const remedy = { action: "configure", option: "account" } as const;
  return new AgentAuthError("account_ambiguous", message, { class: "usage", hint, remedy });
}

function perhapsAmbiguousError(key: GrantKey, { account }: Grant, unusable: AgentAuthError): AgentAuthError {
  const message = `${quote(account ?? "")} is logged in at ${quote(key.server)} (profile ${key.profile}), and perhaps another account: ${unusable.message}`;
  const hint = unusable.hint ?? "repair the file";
  const remedy = { action: "configure", option: "account" } as const;
  return new AgentAuthError("account_ambiguous", message, { class: "store", hint, remedy, cause: unusable });
}
