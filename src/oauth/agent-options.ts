import { AgentAuthError, abortedError, isAgentAuthError } from "../errors.js";
import type { Network } from "../http/network.js";
import { quote } from "../redact.js";
import type { Progress } from "./agent-progress.js";
import type { IssuerTrust } from "./client/issuer-binding.js";
import type { PreRegisteredClient } from "./client/pre-registered-client.js";
import type { Overrides } from "./discovery/discovery.js";
import type { Discovered } from "./discovery/types.js";
import { DPOP_POLICIES, type DpopPolicy } from "./dpop/dpop.js";
import type { GrantStore } from "./grant/grant-store.js";
import type { TokenOptions } from "./grant/token-options.js";
import type { OAuthHttpOptions } from "./http/http.js";
import type { TraceEntry } from "./http/trace.js";
import type { LoginMethod } from "./login/login-method.js";
import type { MachineGrant } from "./machine/types.js";
import { parseScope } from "./token/scope.js";

/** How an `AgentClient` works. */
export interface AgentClientOptions extends OAuthHttpOptions, Overrides, IssuerTrust {
  /** Where grants are kept. */
  store: GrantStore;
  /** How the user logs in; without it nobody is ever asked, and a needed login is an error. */
  login?: LoginMethod | undefined;
  /** What the client is called where the user gives consent. Default "agentauth". */
  clientName?: string | undefined;
  /**
   * What judges addresses by where their names lead, such as `nodeNetwork()` of `agentauth/node`; it takes the place of
   * `fetch`. Without it an address is judged by how it is written.
   */
  network?: Network | undefined;
  /** Keeps several accounts apart. Default "default". */
  profile?: string | undefined;
  /** A client that the issuer already knows. */
  client?: PreRegisteredClient | undefined;
  /**
   * How tokens come without the user, for the client that is named by `client`. Nobody is ever asked to log in then,
   * and what it gives is kept apart from the logins of people.
   */
  grant?: MachineGrant | undefined;
  /** Whether requests to issuers show a client certificate, for which they may have other addresses (RFC 8705 section 5). */
  mutualTls?: boolean | undefined;
  /**
   * Whether tokens are bound to a key of this client (RFC 9449), so that whoever steals one cannot use it. Such a token is
   * good with {@link AgentClient.fetch} alone, which proves the key at every request. Default "auto": where the server
   * takes no others, and its issuer can.
   */
  dpop?: DpopPolicy | undefined;
  /** The https address of this client's metadata document. */
  clientMetadataUrl?: string | undefined;
  /** Replaces the `resource` that the server's metadata names. */
  resource?: string | undefined;
  /** How the user logs in. Default "browser". */
  flow?: "browser" | "device" | undefined;
  /**
   * Milliseconds that the user may take with the flow "device", however long its code is good. Default: what `login`
   * says, else 300,000. In a browser it is `login` that waits.
   */
  loginTimeoutMs?: number | undefined;
  /** Which account is meant. */
  loginHint?: string | undefined;
  /** Hears of every request of the flow and what became of its answer. */
  onTrace?: ((entry: TraceEntry) => void) | undefined;
  /** Hears what goes on beyond single requests: whom it waits for, what is refreshed. */
  onProgress?: ((progress: Progress) => void) | undefined;
}

/** Milliseconds for a request of the flow. */
export const DEFAULT_TIMEOUT_MS = 15_000;

/** A program that contradicts itself is told so before anything is asked. */
export function checkOptions(options: AgentClientOptions): void {
  const { store, grant, client, loginHint, dpop, loginTimeoutMs: loginTimeout } = options;
  if (typeof store?.read !== "function") throw new TypeError("store is needed: where logins are kept");
  if (dpop !== undefined && !DPOP_POLICIES.includes(dpop))
    throw new TypeError('dpop must be "off", "auto" or "required"');
  if (loginTimeout !== undefined && !(loginTimeout > 0))
    throw new TypeError("loginTimeoutMs must be a number of milliseconds above 0");
  const issuers = new Set([options.issuer, client?.issuer, grant?.issuer].filter((one) => one !== undefined));
  if (issuers.size > 1)
    throw new TypeError("issuer, client.issuer and grant.issuer must be the same where they are set");
  if (grant === undefined) return;
  if (client === undefined) throw new TypeError("grant needs a client that the issuer knows: give client.clientId");
  if (loginHint !== undefined) throw new TypeError("grant and loginHint do not go together: a machine is no account");
}

/** The one issuer that the options name. */
export function expectedIssuer({ issuer, client, grant }: AgentClientOptions): string | undefined {
  return issuer ?? client?.issuer ?? grant?.issuer;
}

/**
 * Refuses what a call can never be right with, before anything is asked.
 *
 * @throws `TypeError` for a number that is none, `AgentAuthError` `usage` for scopes that are none, `aborted` where the
 * signal has fired already
 */
export function checkCall({ minTtl, scope, signal }: Pick<TokenOptions, "minTtl" | "scope" | "signal">): void {
  if (minTtl !== undefined && !(minTtl >= 0)) throw new TypeError("minTtl must be a number of seconds, 0 or more");
  if (scope !== undefined) checkScope(scope);
  if (signal?.aborted) throw abortedError(signal);
}

function checkScope(scope: string): void {
  try {
    parseScope(scope, "scope", "the caller");
  } catch (cause) {
    if (!isAgentAuthError(cause)) throw cause;
    const rule = "must be at most 64 scope tokens with blanks between them (RFC 6749 section 3.3)";
    throw new AgentAuthError("usage", `the scopes ${quote(scope)} ${rule}`, { class: "usage" });
  }
}

/** Everything that discovery did and found. */
export interface DiscoveryReport {
  /** What was found; undefined when it failed. */
  found: Discovered | undefined;
  /** Every request, in order, and what became of its answer. */
  trace: readonly TraceEntry[];
  /** Why it failed; undefined when it did not. */
  error: AgentAuthError | undefined;
}

/** What `AgentClient.status` tells. */
export interface StatusOptions extends Pick<TokenOptions, "signal"> {
  /** Whether of every profile. */
  all?: boolean;
  /** Hears of each login that is stored and cannot be read. */
  onUnusable?: (error: AgentAuthError) => void;
}
