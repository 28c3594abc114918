import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { SingleFlight } from "../../http/single-flight.js";
import { quote } from "../../redact.js";
import type { FetchContext } from "../agent-fetch.js";
import type { Progress } from "../agent-progress.js";
import { fitsPolicy } from "../dpop/dpop.js";
import { coversScope, type Grant, hasEnded, isFresh, isSame, isStorm, noteRefusal } from "../grant/grant.js";
import type { GrantKey, GrantStore } from "../grant/grant-store.js";
import { HEARTBEAT_MS, isPeerFailure, rethrowRecentFailure } from "../grant/lease.js";
import type { TokenOptions } from "../grant/token-options.js";
import { union } from "../token/scope.js";
import { identify } from "./machine-grant.js";
import { type MachineContext, type MachineRequest, requestMachineGrant } from "./machine-request.js";

/** What the keeper of a machine's grants depends on. */
export interface MachineTokenManagerContext extends MachineContext {
  store: GrantStore;
  clock: { epoch(): number };
  onProgress?: ((progress: Progress) => void) | undefined;
}

type Asking = Omit<MachineRequest, "before" | "signal"> & {
  /** The grant that is not good enough, if there is one; a newer one does as well. */
  seen: Grant | undefined;
  /** Whether its server has refused it. */
  isRefused?: boolean;
  /** Whether it is of no use, however long it still lives. */
  isUrgent?: boolean;
  signal: AbortSignal | undefined;
};
type Refused = Parameters<FetchContext["replace"]>[1];

const SAVE_TRIES = 5;

/** The tokens of a machine grant: from the store, else asked for anew, by one process at a time and by no person. */
export class MachineTokenManager {
  readonly #context: MachineTokenManagerContext;
  readonly #flights = new SingleFlight<Grant>();

  constructor(context: MachineTokenManagerContext) {
    this.#context = context;
  }

  /** What is kept of whom the grant speaks for now. */
  async find(key: GrantKey): Promise<Grant | undefined> {
    const { account } = await this.#identify();
    return this.#context.store.read({ ...key, account });
  }

  /** A grant that is good for what is asked. */
  async get(asked: GrantKey, options: TokenOptions): Promise<Grant> {
    const { clock } = this.#context;
    const { account, proof } = await this.#identify();
    const key = { ...asked, account };
    const { scope, signal, minTtl } = options;
    const seen = await this.#read(key);
    const isGood = seen !== undefined && coversAll(seen, scope);
    if (isGood && !options.forceRefresh && isFresh(seen, clock.epoch(), minTtl)) return seen;
    try {
      const wish = { scope, previousScope: undefined, challenge: undefined };
      return await this.#ask({ key, proof, ...wish, seen, isUrgent: !isGood || options.forceRefresh === true, signal });
    } catch (error) {
      if (!isAgentAuthError(error) || !isGood || options.forceRefresh || !isPeerFailure(error)) throw error;
      const { expiresAt } = seen.tokens;
      if (expiresAt === undefined || expiresAt <= clock.epoch()) throw error;
      return seen;
    }
  }

  /** A grant for a request. */
  toSend(key: GrantKey, options: Pick<TokenOptions, "signal">): Promise<Grant> {
    return this.get(key, options);
  }

  /** A new grant in place of one that its server did not take: once for a refusal, once for scopes that it lacks. */
  async replace(refused: Grant, { scope, previousScope, challenge, signal }: Refused): Promise<Grant> {
    const { grant, store, clock } = this.#context;
    const lacksScope = challenge?.error === "insufficient_scope";
    if (lacksScope && grant.type !== "client_credentials") throw missingScope(refused, scope);
    if (!lacksScope) {
      const stored = await store.list();
      const ofIssuer = stored.filter(({ profile, issuer }) => profile === refused.profile && issuer === refused.issuer);
      if (isStorm(ofIssuer, clock.epoch())) throw storm(refused);
    }
    const { account, proof } = await this.#identify();
    const key = { profile: refused.profile, server: refused.server, account };
    const seen = account === refused.account ? refused : undefined;
    const wish = { scope, previousScope, challenge };
    return this.#ask({ key, proof, ...wish, seen, isRefused: !lacksScope, isUrgent: true, signal });
  }

  #identify() {
    const { grant, client } = this.#context;
    return identify(grant, client.clientId);
  }

  /** What is kept, as far as it is of the issuer and for the resource that are meant. */
  async #read(key: GrantKey): Promise<Grant | undefined> {
    const { store, loginContext } = this.#context;
    const stored = await store.read(key);
    if (stored === undefined || stored.retired) return undefined;
    const { resource = stored.resource, dpop, expectedIssuer = stored.issuer } = loginContext(key, stored);
    const isSame = stored.resource === resource && stored.issuer === expectedIssuer;
    return isSame && fitsPolicy(stored, dpop) ? stored : undefined;
  }

  /** Asks once for all who want the same at the same time, in this process and in any other. */
  #ask(asking: Asking): Promise<Grant> {
    const { key, scope } = asking;
    const name = JSON.stringify([key.profile, key.server, key.account, scope]);
    return this.#flights.run(name, (signal) => this.#askAlone({ ...asking, signal }), asking.signal);
  }

  #askAlone(asking: Asking & { signal: AbortSignal }): Promise<Grant> {
    const { store, clock, onProgress } = this.#context;
    const { key, scope, seen, isUrgent, signal } = asking;
    const newer = async () => {
      const stored = await this.#read(key);
      const isNewer = stored !== undefined && !(seen && isSame(stored, seen));
      return isNewer && coversAll(stored, scope) ? stored : undefined;
    };
    return store.lease(
      `grant ${key.profile} ${key.server} ${key.account}`,
      async (lease) => {
        const stored = await newer();
        if (stored && isFresh(stored, clock.epoch(), 0)) return stored;
        const now = clock.epoch();
        rethrowRecentFailure(lease, now, isUrgent === true || !seen || hasEnded(seen.tokens, now));
        return this.#request(asking);
      },
      {
        duration: HEARTBEAT_MS,
        extend: true,
        signal,
        until: newer,
        onWait: ({ pid }) => {
          const text = `process ${pid ?? "?"} is asking for a token for ${key.server}; waiting for it`;
          onProgress?.({ about: "renewal", text });
        },
      },
    );
  }

  async #request({ isRefused, isUrgent: _, ...asking }: Asking & { signal: AbortSignal }): Promise<Grant> {
    const { clock } = this.#context;
    const before = await this.#read(asking.key);
    const previousScope = union(before?.requestedScope, asking.previousScope);
    const grant = await requestMachineGrant(this.#context, { ...asking, previousScope, before });
    const refusals = before?.refusals ?? [];
    return this.#keep(isRefused ? noteRefusal({ ...grant, refusals }, clock.epoch()) : { ...grant, refusals });
  }

  /** A token that cannot be kept is as good as one that can: the next one who needs it asks again. */
  async #keep(grant: Grant): Promise<Grant> {
    const { store, onProgress } = this.#context;
    let next = grant;
    try {
      for (let tries = 0; tries < SAVE_TRIES; tries++) {
        const stored = await store.read(grant);
        next = { ...grant, generation: (stored?.generation ?? 0) + 1 };
        if (await store.save(next, stored?.generation)) return next;
      }
    } catch (error) {
      if (!isAgentAuthError(error) || error.class !== "store") throw error;
      const text = `the token for ${grant.server} cannot be kept in ${store.location}: ${error.message}`;
      onProgress?.({ about: "sign-in", text });
    }
    return next;
  }
}

/** Whether the scopes wanted were granted, or asked for and left out: asking again would give no more. */
function coversAll(grant: Grant, scope: string | undefined): boolean {
  const wanted = scope?.split(" ").filter(Boolean);
  if (coversScope(grant, wanted)) return true;
  const asked = new Set(grant.requestedScope?.split(" "));
  return wanted?.every((one) => asked.has(one)) ?? true;
}

function missingScope(grant: Grant, scope: string | undefined): AgentAuthError {
  return new AgentAuthError(
    "insufficient_scope",
    `the token for ${quote(grant.server)} lacks scopes: ${quote(scope ?? "not told which")}`,
    { class: "auth", status: 403, hint: "ask for them: --scope <scopes>, if whoever made the assertion allows them" },
  );
}

function storm(grant: Grant): AgentAuthError {
  return new AgentAuthError(
    "renewal_storm",
    `${quote(grant.server)} has refused three tokens within a minute, each of them new; it is not asked with another one`,
    { class: "auth", hint: "wait a minute, and look at what the issuer lets this client do" },
  );
}
