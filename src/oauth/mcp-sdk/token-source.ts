import { AgentAuthError } from "../../errors.js";
import type { Clock } from "../../http/deadline.js";
import { SingleFlight } from "../../http/single-flight.js";
import { quote } from "../../redact.js";
import { loginRequired } from "../grant/grant-requirements.js";
import { chooseRecovery, recoverToken, type ServerTokens, wasRequested } from "../grant/rejected-token.js";
import type { BearerChallenge } from "../model/challenge.js";
import { coversScope, type Grant, hasSameTokens } from "../model/grant.js";
import { splitScope } from "../model/scope.js";
import type { ProviderOptions } from "./types.js";

/** What a provider needs from its agent. */
export interface SdkTokenContext extends ServerTokens {
  clock: Pick<Clock, "now">;
  /** The challenge to a request without a token. */
  challenge(url: string, signal: AbortSignal): Promise<BearerChallenge | undefined>;
  /** Adds to an error whose remedy is a login the function that begins it. */
  offerLogin<T>(work: Promise<T>): Promise<T>;
}

const NO_CHALLENGE: BearerChallenge = { resourceMetadata: [], scope: undefined, error: undefined, schemes: [] };

/** How long after its replacement a token may still be rejected by requests that were in flight. */
const LATE_MS = 5_000;

/** How long a rejection of a refreshed token means that the next refresh would not help either. */
const REPEAT_REFRESH_MS = 60_000;

/**
 * The tokens of one MCP server, for an SDK that sends the requests itself. It reports a rejection without the token that
 * was rejected, so this class assumes the last one that it returned.
 */
export class SdkTokenSource {
  readonly #context: SdkTokenContext;
  readonly #server: string;
  readonly #options: ProviderOptions;
  readonly #recoveries = new SingleFlight<Grant | undefined>();
  #sent: { grant: Grant; times: number[] } | undefined;
  // The last grant that replaced another, whether because the other was rejected, and how many rejections may still arrive.
  #replaced: { grant: Grant; at: number; late: number; wasRejected: boolean } | undefined;

  constructor(context: SdkTokenContext, server: string, options: ProviderOptions) {
    this.#context = context;
    this.#server = server;
    this.#options = options;
  }

  /** A grant whose token is valid; undefined if the server requires no login. */
  token(): Promise<Grant | undefined> {
    return this.#context.offerLogin(this.#token());
  }

  async #token(challenge?: BearerChallenge): Promise<Grant | undefined> {
    const grant = await this.#context.grant(this.#server, { ...this.#options, challenge });
    if (grant === undefined) return undefined;
    if (grant.proofKey !== undefined) throw boundToKeyError(grant);
    const now = this.#context.clock.now();
    const recent = (this.#sent?.times ?? []).filter((at) => now - at < LATE_MS);
    const isSame = this.#sent !== undefined && hasSameTokens(this.#sent.grant, grant);
    // Requests with an expired token may be in flight when the grant is refreshed for the next request.
    if (!isSame && !(this.#replaced && hasSameTokens(this.#replaced.grant, grant)))
      this.#replaced = { grant, at: now, late: recent.length, wasRejected: false };
    this.#sent = { grant, times: isSame ? [...recent, now] : [now] };
    return grant;
  }

  /**
   * Replaces the token that the server rejected; concurrent rejections share the result.
   *
   * @param challenge that of the response; without it the server is requested to send one
   * @param scope the scopes that the response named
   * @throws `AgentAuthError` `login_required` or `insufficient_scope` if a login is needed and not possible or futile
   */
  async recover(challenge: BearerChallenge | undefined, scope = challenge?.scope): Promise<void> {
    const work = (signal: AbortSignal) => this.#replace(challenge, scope, signal);
    await this.#context.offerLogin(this.#recoveries.run(scope ?? "", work, this.#options.signal));
  }

  async #replace(
    received: BearerChallenge | undefined,
    scope: string | undefined,
    signal: AbortSignal,
  ): Promise<Grant | undefined> {
    if (this.#sent === undefined) {
      this.#context.onRejected(this.#server);
      return this.#token(received);
    }
    const { grant, times } = this.#sent;
    const lacksScope = !coversScope(grant, splitScope(scope)) && !wasRequested(grant, scope);
    if (!lacksScope && this.#isLate(grant)) return grant;
    // A challenge makes a login read the server's metadata again, which may name another issuer by now.
    const fresh = received ?? (await this.#context.challenge(this.#server, signal)) ?? NO_CHALLENGE;
    const challenge = lacksScope ? { ...fresh, scope, error: "insufficient_scope" } : fresh;
    const tried = {
      refresh: this.#replacedWithin(REPEAT_REFRESH_MS, grant)?.wasRejected === true,
      login: false,
      stepUp: false,
    };
    const rejection = { status: lacksScope ? 403 : 401, challenge, grant, tried };
    const recovery = chooseRecovery(rejection, this.#context);
    if (recovery === undefined) throw loginRequired(grant, "the server rejected the token");
    const next = await recoverToken(this.#context, recovery, { ...rejection, signal });
    this.#replaced = { grant: next, at: this.#context.clock.now(), late: times.length - 1, wasRejected: true };
    return next;
  }

  /** The last replacement, if it led to this grant within this time. */
  #replacedWithin(milliseconds: number, grant: Grant) {
    const last = this.#replaced;
    if (!last || !hasSameTokens(last.grant, grant)) return undefined;
    return this.#context.clock.now() - last.at < milliseconds ? last : undefined;
  }

  /** Whether the rejection is probably of a request that was sent before the token was replaced. */
  #isLate(grant: Grant): boolean {
    const last = this.#replacedWithin(LATE_MS, grant);
    return last !== undefined && last.late-- > 0;
  }
}

function boundToKeyError({ server }: Grant): AgentAuthError {
  const message = `the token for ${quote(server)} is bound to a key, and the transport of an MCP SDK sends no proof of it (RFC 9449)`;
  return new AgentAuthError("usage", message, {
    class: "usage",
    hint: "pass agent.fetch as the fetch of the transport instead of a provider",
  });
}
