import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import type { Clock } from "../../http/deadline.js";
import { SingleFlight } from "../../http/single-flight.js";
import { quote } from "../../redact.js";
import type { OAuthHttp } from "../http/http.js";
import { loginCommand, loginRequired } from "../login/login-command.js";
import { type SharedLoginContext, type SharedLoginRequest, sharedLogin } from "../login/shared-login.js";
import { isMachineAccount, noPerson } from "../machine/machine-grant.js";
import { unionScopes } from "../token/scope.js";
import { coversScope, type Grant, hasSameTokens, isFresh, isStorm } from "./grant.js";
import { type GrantRequirements, unmetRequirement } from "./grant-requirements.js";
import type { GrantKey, GrantStore } from "./grant-store.js";
import { isPeerFailure } from "./lease.js";
import { isLastToken } from "./lost-refresh.js";
import { type RefreshContext, type RefreshReason, refreshGrant, unsavedFor } from "./refresh.js";
import type { TokenOptions } from "./token-options.js";

/** What the keeper of grants depends on. */
export interface TokenManagerContext
  extends SharedLoginContext,
    Omit<RefreshContext, "unsaved" | "store" | "clock" | "http"> {
  store: GrantStore;
  clock: Clock;
  /** What a login has to be like, whatever is asked of its token. */
  requirements: GrantRequirements;
  /** How requests to the issuer of a grant leave. */
  httpFor(grant: Grant): OAuthHttp;
}

/** How long a login that did not help is not asked for again. */
const REPEAT_LOGIN_MS = 5 * 60_000;

/** Decides, for every request for a token, whether the stored grant does, must be refreshed, or needs the user. */
export class TokenManager {
  readonly #context: TokenManagerContext;
  readonly #inFlight = new SingleFlight<Grant>();
  readonly #unsaved = new Map<string, Grant>();
  // Servers whose token is being replaced by a login, with the grant that they refused.
  readonly #replacing = new Map<string, Grant>();

  // Logins that took the place of a grant which a server had refused, by when they were and what came of them.
  readonly #replaced = new Map<string, { at: number; grant: Grant }>();

  constructor(context: TokenManagerContext) {
    this.#context = context;
  }

  /** The grant that is meant; a server with one login needs no account to be named. */
  async find(key: GrantKey): Promise<Grant | undefined> {
    const { store } = this.#context;
    const exact = await store.read(key);
    if (exact || key.account !== undefined) return exact;
    const unusable: AgentAuthError[] = [];
    const grants = await store.list((error) => unusable.push(error));
    const [one, ...others] = grants.filter(({ profile, server, account }) => {
      return profile === key.profile && server === key.server && !isMachineAccount(account);
    });
    if (one && others.length > 0) throw ambiguous(key, [one, ...others]);
    // It may be of another account at this server: nobody is to be taken for somebody else by a file that broke.
    if (one && unusable[0]) throw perhapsAmbiguous(key, one, unusable[0]);
    return one;
  }

  /** A grant that is good for what is asked. */
  async get(key: GrantKey, options: TokenOptions): Promise<Grant> {
    const { clock, method, requirements: wish } = this.#context;
    const wanted = options.scope?.split(" ").filter(Boolean);
    const grant = await this.find(key);
    const isOver = grant?.retired !== undefined && unsavedFor({ unsaved: this.#unsaved }, grant) === undefined;
    if (grant && !isOver && coversScope(grant, wanted) && unmetRequirement(grant, wish) === undefined) {
      if (!options.forceRefresh && isFresh(grant, clock.epoch(), options.minTtl)) return grant;
      const isHeld = unsavedFor({ unsaved: this.#unsaved }, grant) !== undefined;
      if (!options.forceRefresh && !isHeld && isLastToken(grant, clock.epoch())) return grant;
      if (grant.tokens.refreshToken) {
        const renewed = await this.#refreshOrUse(grant, options);
        if (renewed && coversScope(renewed, wanted)) return renewed;
      }
    }
    if (isMachineAccount(key.account)) throw noPerson(key.account);
    if (options.login === false || method === undefined) {
      // A login for what is wanted alone would lose what was granted before.
      const scope = wanted?.length ? unionScopes(grant?.requestedScope, options.scope) : undefined;
      throw loginRequired(grant ?? key, whyLogin(grant, wanted, wish), { scope, dpop: wish.dpop });
    }
    return this.login(grant ?? key, { ...options, previousScope: grant?.requestedScope, seen: grant });
  }

  /** A grant for a request; a token that its server has refused is not sent again while the user logs in again. */
  async toSend(key: GrantKey, options: { signal?: AbortSignal | undefined }): Promise<Grant> {
    const grant = await this.get(key, options);
    const refused = this.#replacing.get(lockNameOf(grant));
    return refused && hasSameTokens(refused, grant) ? this.login(grant, { ...options, refused: grant }) : grant;
  }

  /** Refreshes a grant whose token a server has refused; not when refreshing has just been tried and did not help. */
  async refreshRefused(grant: Grant, signal: AbortSignal | undefined): Promise<Grant> {
    await this.#rejectStorm(grant);
    return this.#refreshOnce(grant, { isRefused: true, isForced: true }, signal);
  }

  /** Ends what would be asked of an issuer, or of the user, again and again. */
  async #rejectStorm(grant: Grant): Promise<void> {
    const { store, clock } = this.#context;
    const stored = await store.list();
    const ofIssuer = stored.filter(({ profile, issuer }) => profile === grant.profile && issuer === grant.issuer);
    if (isStorm(ofIssuer, clock.epoch())) throw storm(grant);
  }

  /** Logs the user in; all who ask for the same at the same time get the one result. */
  login(key: GrantKey, request: Omit<SharedLoginRequest, "key">): Promise<Grant> {
    const { scope, refused } = request;
    if (isMachineAccount(key.account)) throw noPerson(key.account);
    const name = lockNameOf(key);
    const work = async (signal: AbortSignal) => {
      if (refused) await this.#rejectStorm(refused);
      if (refused && scope === undefined) this.#replacing.set(name, refused);
      try {
        const grant = await sharedLogin(this.#context, { ...request, key, signal });
        if (refused) this.#replaced.set(name, { at: this.#context.clock.epoch(), grant });
        return grant;
      } finally {
        this.#replacing.delete(name);
      }
    };
    return this.#inFlight.run(`login ${name} ${scope ?? ""}`, work, request.signal);
  }

  /**
   * Whether a grant came of a login that a refusal led to, so short a time ago that the user would be asked in vain.
   */
  followsRefusal(grant: Grant): boolean {
    const last = this.#replaced.get(lockNameOf(grant));
    if (last === undefined || this.#context.clock.epoch() - last.at >= REPEAT_LOGIN_MS) return false;
    return grant.signedInAt === last.grant.signedInAt && grant.generation >= last.grant.generation;
  }

  /** Refreshes; where the issuer gives none, a token that still lives is better than nothing. Undefined: log in. */
  async #refreshOrUse(grant: Grant, options: TokenOptions): Promise<Grant | undefined> {
    try {
      const isUrgent = options.forceRefresh === true;
      return await this.#refreshOnce(grant, { isRefused: false, isForced: isUrgent }, options.signal);
    } catch (error) {
      if (!isAgentAuthError(error)) throw error;
      const { tokens } = grant;
      const { clock } = this.#context;
      const lives = !grant.retired && tokens.expiresAt !== undefined && tokens.expiresAt > clock.epoch();
      // With a status it is the issuer's word for something else (OpenID Connect Core section 3.1.2.6).
      const isOver = error.code === "login_required" && error.status === undefined;
      const isPassing = !isOver && error.code !== "grant_not_saved" && isPeerFailure(error);
      if (isPassing && lives && !options.forceRefresh) return grant;
      if (!isOver || options.login === false || this.#context.method === undefined) throw error;
      return undefined;
    }
  }

  #refreshOnce(grant: Grant, why: RefreshReason, signal: AbortSignal | undefined): Promise<Grant> {
    const context = { ...this.#context, http: this.#context.httpFor(grant), unsaved: this.#unsaved };
    const work = (within: AbortSignal) => refreshGrant(context, grant, why, within);
    return this.#inFlight.run(`refresh ${lockNameOf(grant)}`, work, signal);
  }
}

function lockNameOf({ profile, server, account }: GrantKey): string {
  return JSON.stringify([profile, server, account]);
}

function whyLogin(grant: Grant | undefined, wanted: readonly string[] | undefined, wish: GrantRequirements): string {
  if (!grant) return "nobody is signed in";
  if (grant.retired) return grant.retired.reason;
  const reason = unmetRequirement(grant, wish);
  if (reason !== undefined) return reason;
  if (!coversScope(grant, wanted)) return `the token lacks the scope ${wanted?.join(" ")}`;
  return "the token has expired, and there is no refresh token";
}

function ambiguous(key: GrantKey, grants: readonly Grant[]): AgentAuthError {
  const accounts = grants.map(({ account }) => quote(account ?? "")).join(", ");
  return new AgentAuthError(
    "account_ambiguous",
    `several accounts are signed in at ${quote(key.server)} (profile ${key.profile}): ${accounts}`,
    { class: "usage", hint: "name one with --account-hint" },
  );
}

function perhapsAmbiguous(key: GrantKey, { account }: Grant, unusable: AgentAuthError): AgentAuthError {
  return new AgentAuthError(
    "account_ambiguous",
    `${quote(account ?? "")} is signed in at ${quote(key.server)} (profile ${key.profile}), and perhaps another account: ${unusable.message}`,
    {
      class: "store",
      hint: `name the account with --account-hint, or ${unusable.hint ?? "repair the file"}`,
      cause: unusable,
    },
  );
}

function storm(grant: Grant): AgentAuthError {
  return new AgentAuthError(
    "renewal_storm",
    `${quote(grant.server)} has refused three tokens within a minute, each of them new; it is not asked with another one`,
    { class: "auth", hint: `wait a minute, or sign in again: ${loginCommand(grant)}` },
  );
}
