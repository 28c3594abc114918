import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { SingleFlight } from "../../http/single-flight.js";
import { quote } from "../../redact.js";
import { type Events, observe, readKnownCode, readOrigin, readReason } from "../../telemetry/emit.js";
import type { EventFields } from "../../telemetry/events.js";
import { fitsPolicy } from "../dpop/dpop.js";
import type { GrantOptions } from "../grant/grant-requirements.js";
import { observeToken, type TokenResult } from "../grant/send-refresh.js";
import { isStorm, noteRefusal, type ServerTokens } from "../grant/token-fetch.js";
import type { Progress } from "../http/http.js";
import { coversScope, type Grant, type GrantKey, hasExpired, hasSameTokens, isFresh } from "../model/grant.js";
import { type GrantStore, isStoreFailure } from "../model/grant-store.js";
import { HEARTBEAT_MS, holderText, isPeerFailure, rethrowRecentFailure } from "../model/lease.js";
import { isSameIssuer } from "../model/metadata.js";
import { splitScope, unionScopes } from "../model/scope.js";
import { findStrategy, identify } from "./grant-strategies.js";
import { type MachineContext, type MachineRequest, requestMachineGrant } from "./machine-request.js";

export interface MachineTokenManagerContext extends MachineContext {
  store: GrantStore;
  clock: { epoch(): number };
  events: Events;
  onProgress?: ((progress: Progress) => void) | undefined;
}

type TokenRequest = Omit<MachineRequest, "previous" | "signal"> & {
  /** The grant to replace, if there is one. A newer one ends the request. */
  seen: Grant | undefined;
  isRefused?: boolean;
  /** Whether it is unusable even before it expires. */
  isUnusable?: boolean;
  signal: AbortSignal | undefined;
};
type Refused = Parameters<ServerTokens["replace"]>[1];

const SAVE_TRIES = 5;

/** Returns the tokens of a machine grant: the stored ones, else new ones, which one process at a time requests. */
export class MachineTokenManager {
  readonly #context: MachineTokenManagerContext;
  readonly #requests = new SingleFlight<Grant>();

  constructor(context: MachineTokenManagerContext) {
    this.#context = context;
  }

  /** The stored grant of the identity that the proof names now. */
  async find(key: GrantKey): Promise<Grant | undefined> {
    const { account } = await this.#identify();
    return this.#context.store.read({ ...key, account });
  }

  get(requested: GrantKey, options: GrantOptions): Promise<Grant> {
    return observeToken(this.#context.events, requested, () => this.#serve(requested, options));
  }

  async #serve(requested: GrantKey, options: GrantOptions): Promise<TokenResult> {
    const { clock } = this.#context;
    const { account, proof } = await this.#identify();
    const key = { ...requested, account };
    const { scope, signal, minTtl, challenge } = options;
    const seen = await this.#read(key);
    const satisfiesRequest = seen !== undefined && coversAll(seen, scope);
    if (satisfiesRequest && !options.forceRefresh && isFresh(seen, clock.epoch(), minTtl))
      return { grant: seen, source: "stored" };
    try {
      const isUnusable = !satisfiesRequest || options.forceRefresh === true;
      const parameters = { scope, previousScope: undefined, challenge };
      return await this.#requestOnce({ key, proof, ...parameters, seen, isUnusable, signal });
    } catch (error) {
      if (!isAgentAuthError(error) || !satisfiesRequest || options.forceRefresh || !isPeerFailure(error)) throw error;
      const { expiresAt } = seen.tokens;
      if (expiresAt === undefined || expiresAt <= clock.epoch()) throw error;
      return { grant: seen, source: "cached" };
    }
  }

  /** A new grant in place of one that its server rejected: once for the token, once for missing scopes. */
  async replace(refused: Grant, { scope, previousScope, challenge, signal }: Refused): Promise<Grant> {
    const { grant, store, clock } = this.#context;
    const lacksScope = challenge?.error === "insufficient_scope";
    if (lacksScope && findStrategy(grant).proof !== undefined) throw missingScopeError(refused, scope);
    if (!lacksScope) {
      const stored = await store.read(refused);
      if (stored && isStorm(stored, clock.epoch())) throw requestStormError(refused);
    }
    const { account, proof } = await this.#identify();
    const key = { profile: refused.profile, server: refused.server, account };
    const seen = account === refused.account ? refused : undefined;
    const parameters = { scope, previousScope, challenge };
    const request = { key, proof, ...parameters, seen, isRefused: !lacksScope, isUnusable: true, signal };
    return (await this.#requestOnce(request)).grant;
  }

  #identify() {
    const { grant, client } = this.#context;
    return identify(grant, client.clientId);
  }

  /** The stored grant, if it is of the expected issuer and for the expected resource. */
  async #read(key: GrantKey): Promise<Grant | undefined> {
    const { store, loginContext } = this.#context;
    const stored = await store.read(key);
    if (stored === undefined || stored.retired) return undefined;
    const { resource = stored.resource, dpop, expectedIssuer = stored.issuer } = loginContext(key, stored);
    const isForTarget = stored.resource === resource && isSameIssuer(stored.issuer, expectedIssuer);
    return isForTarget && fitsPolicy(stored, dpop) ? stored : undefined;
  }

  /** Sends one request for all concurrent callers, in this process and in others. */
  async #requestOnce(request: TokenRequest): Promise<TokenResult> {
    const { key, scope } = request;
    const name = JSON.stringify([key.profile, key.server, key.account, scope]);
    // Stays false for a call that joins the request of another one.
    let requestedHere = false;
    const onSend = () => {
      requestedHere = true;
    };
    const work = (signal: AbortSignal) => this.#requestUnderLease({ ...request, signal }, onSend);
    const grant = await this.#requests.run(name, work, request.signal);
    return { grant, source: requestedHere ? "requested" : "joined" };
  }

  #requestUnderLease(request: TokenRequest & { signal: AbortSignal }, onSend: () => void): Promise<Grant> {
    const { store, clock, onProgress } = this.#context;
    const { key, scope, seen, isUnusable, signal } = request;
    const newer = async () => {
      const stored = await this.#read(key);
      const isNewer = stored !== undefined && !(seen && hasSameTokens(stored, seen));
      return isNewer && coversAll(stored, scope) ? stored : undefined;
    };
    return store.lease(
      `grant ${key.profile} ${key.server} ${key.account}`,
      async (lease) => {
        const stored = await newer();
        if (stored && isFresh(stored, clock.epoch(), 0)) return stored;
        const now = clock.epoch();
        const isNeeded = !seen || hasExpired(seen.tokens, now);
        rethrowRecentFailure(lease, now, isUnusable ? "forced" : isNeeded ? "needed" : "valid");
        onSend();
        return this.#send(request);
      },
      {
        durationMs: HEARTBEAT_MS,
        extend: true,
        grant: key,
        signal,
        until: newer,
        onWait: (holder) => {
          const text = `${holderText(holder)} is requesting a token for ${key.server}; waiting for it`;
          onProgress?.({ subject: "refresh", text });
        },
      },
    );
  }

  async #send({ isRefused, isUnusable, ...request }: TokenRequest & { signal: AbortSignal }): Promise<Grant> {
    const { clock } = this.#context;
    const previous = await this.#read(request.key);
    const previousScope = unionScopes(previous?.requestedScope, request.previousScope);
    const { grant: machineGrant, events } = this.#context;
    const trigger = isRefused ? "unauthorized" : isUnusable ? "requested" : "expired";
    const details = { trigger, grant: machineGrant.type, server: readOrigin(request.key.server) } as const;
    const grant = await observe(
      events,
      "refresh",
      () => requestMachineGrant(this.#context, { ...request, previousScope, previous }),
      (ended): Omit<EventFields<"refresh">, "durationMs"> => {
        if ("result" in ended) return { outcome: "refreshed", ...details, issuer: ended.result.issuer };
        const { error } = ended;
        const isRejected = isAgentAuthError(error) && error.class === "auth";
        const failure = { reason: readReason(error), code: readKnownCode(error), issuer: previous?.issuer };
        return { outcome: isRejected ? "rejected" : "failed", ...details, ...failure };
      },
    );
    const refusals = previous?.refusals ?? [];
    return this.#save(isRefused ? noteRefusal({ ...grant, refusals }, clock.epoch()) : { ...grant, refusals });
  }

  /** A token that cannot be saved is returned all the same: the next caller requests another one. */
  async #save(grant: Grant): Promise<Grant> {
    const { store, onProgress } = this.#context;
    let next = grant;
    try {
      for (let tries = 0; tries < SAVE_TRIES; tries++) {
        const stored = await store.read(grant);
        next = { ...grant, generation: (stored?.generation ?? 0) + 1 };
        if (await store.save(next, stored?.generation)) return next;
      }
    } catch (error) {
      if (!isStoreFailure(error)) throw error;
      const text = `the token for ${grant.server} cannot be saved in ${store.location}: ${error.message}`;
      onProgress?.({ subject: "login", text });
    }
    return next;
  }
}

/** Whether the scopes were granted, or requested and left out: another request would not add them. */
function coversAll(grant: Grant, scope: string | undefined): boolean {
  const wanted = splitScope(scope);
  if (coversScope(grant, wanted)) return true;
  const requested = new Set(splitScope(grant.requestedScope));
  return wanted.every((one) => requested.has(one));
}

function missingScopeError(grant: Grant, scope: string | undefined): AgentAuthError {
  const message = `the token for ${quote(grant.server)} lacks scopes: ${quote(scope ?? "not named")}`;
  const hint = "ask for them, if the issuer of the assertion allows them";
  const remedy = { action: "configure", option: "scope" } as const;
  return new AgentAuthError("insufficient_scope", message, { class: "auth", status: 403, hint, remedy });
}

function requestStormError(grant: Grant): AgentAuthError {
  const message = `${quote(grant.server)} rejected three new tokens within a minute; no other one is requested`;
  const hint = "wait a minute, and look at what the issuer lets this client do";
  return new AgentAuthError("renewal_storm", message, { class: "auth", hint });
}
