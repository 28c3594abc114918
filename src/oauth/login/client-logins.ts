import { AgentAuthError } from "../../errors.js";
import type { Clock } from "../../http/deadline.js";
import { Lru } from "../../http/lru.js";
import { SingleFlight } from "../../http/single-flight.js";
import { quote } from "../../redact.js";
import { loginRemedy, machineAccountError } from "../grant/grant-requirements.js";
import { paramsText } from "../model/authorization-params.js";
import { type Grant, type GrantKey, hasSameTokens, isForOneProcess, isStorm } from "../model/grant.js";
import type { GrantStore } from "../model/grant-store.js";
import { IDP_ACCOUNT, isMachineAccount } from "../model/machine-grant.js";
import { type SharedLoginContext, type SharedLoginRequest, shareLogin } from "./shared-login.js";

/** What the logins of a client need. */
export interface ClientLoginsContext extends SharedLoginContext {
  store: GrantStore;
  clock: Pick<Clock, "epoch">;
}

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
  readonly #context: ClientLoginsContext;
  readonly #inFlight = new SingleFlight<Grant>();
  /** By lock name. */
  readonly #logins = new Lru<LoginState>(MAX_LOGINS);

  constructor(context: ClientLoginsContext) {
    this.#context = context;
  }

  /** Logs the user in; concurrent calls with the same key and scope share the result. */
  run(key: GrantKey, request: Omit<SharedLoginRequest, "key">): Promise<Grant> {
    const { scope, refused, authorizationParams = {} } = request;
    if (isMachineAccount(key.account) && key.account !== IDP_ACCOUNT) throw machineAccountError(key.account);
    const name = lockNameOf(key);
    const work = async (signal: AbortSignal) => {
      if (refused) await rejectStorm(this.#context, refused);
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
export async function rejectStorm(
  { store, clock }: Pick<ClientLoginsContext, "store" | "clock">,
  grant: Grant,
): Promise<void> {
  const stored = await store.read(grant);
  if (stored && isStorm(stored, clock.epoch())) throw refreshStormError(grant);
}

function refreshStormError(grant: Grant): AgentAuthError {
  const message = `${quote(grant.server)} has rejected three new tokens within a minute; no other one is requested`;
  const hint = "wait a minute, or log in again";
  return new AgentAuthError("renewal_storm", message, { class: "auth", hint, remedy: loginRemedy(grant) });
}

/** What distinguishes the logins, and the refreshes, of a client. */
export function lockNameOf({ profile, server, account }: GrantKey): string {
  return JSON.stringify([profile, server, account]);
}
