import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import type { Clock } from "../../http/deadline.js";
import { SingleFlight } from "../../http/single-flight.js";
import { quote } from "../../redact.js";
import { challengeOnlyMetadata, checkFirstNamed, withUnseen } from "../discovery/resource-metadata.js";
import {
  findUnmetRequirement,
  type GrantOptions,
  type GrantRequirements,
  loginRequired,
  machineAccountError,
  missingParams,
  type TokenOptions,
} from "../grant/grant-requirements.js";
import { noRefreshTokenText, type RefreshContext, type RefreshTrigger, refreshGrant } from "../grant/refresh.js";
import { isLastToken, observeToken, type TokenResult, unsavedFor } from "../grant/refresh-outcome.js";
import type { PendingRefreshes } from "../grant/send-refresh.js";
import type { OAuthHttp } from "../http/http.js";
import type { BearerChallenge } from "../model/challenge.js";
import { coversScope, type Grant, type GrantKey, hasSameTokens, isFresh } from "../model/grant.js";
import type { GrantStore } from "../model/grant-store.js";
import { isPeerFailure } from "../model/lease.js";
import { IDP_ACCOUNT, isMachineAccount } from "../model/machine-grant.js";
import { splitScope, unionScopes } from "../model/scope.js";
import {
  ClientLogins,
  lockNameOf,
  type SharedLoginContext,
  type SharedLoginRequest,
  throwOnRenewalLoop,
} from "./shared-login.js";

export interface TokenManagerContext
  extends SharedLoginContext,
    Omit<RefreshContext, "unsaved" | "store" | "clock" | "http" | "pending"> {
  store: GrantStore;
  clock: Clock;
  /** What every grant must meet. */
  requirements: GrantRequirements;
  /** The HTTP client for the issuer of a grant. */
  httpFor(grant: Grant): OAuthHttp;
  pending: PendingRefreshes;
}

/** Decides, for every request for a token, whether to use the stored grant, refresh it, or log in. */
export class TokenManager {
  readonly #context: TokenManagerContext;
  readonly #inFlight = new SingleFlight<Grant>();
  readonly #unsaved = new Map<string, Grant>();
  readonly #logins: ClientLogins;

  constructor(context: TokenManagerContext) {
    this.#context = context;
    this.#logins = new ClientLogins(context);
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
    if (isFresh(grant, now, minTtl) || this.#logins.isOwn(grant)) return true;
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
    return this.#logins.isReplacing(grant) ? this.login(grant, { ...options, refused: grant }) : grant;
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
    return this.#logins.run(key, request);
  }

  /** Whether a grant comes from a login after a rejection, so recent that another login would not help. */
  followsRefusal(grant: Grant): boolean {
    return this.#logins.followsRefusal(grant);
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
    const grant = await this.#inFlight.run(`refresh ${lockNameOf(seen)}`, work, signal);
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
  return new AgentAuthError(
    "account_ambiguous",
    `several accounts are logged in at ${quote(key.server)} (profile ${key.profile}): ${accounts}`,
    { class: "usage", hint: "name one with the option account", remedy: { action: "configure", option: "account" } },
  );
}

function perhapsAmbiguousError(key: GrantKey, { account }: Grant, unusable: AgentAuthError): AgentAuthError {
  const message = `${quote(account ?? "")} is logged in at ${quote(key.server)} (profile ${key.profile}), and perhaps another account: ${unusable.message}`;
  const hint = unusable.hint ?? "repair the file";
  const remedy = { action: "configure", option: "account" } as const;
  return new AgentAuthError("account_ambiguous", message, { class: "store", hint, remedy, cause: unusable });
}
