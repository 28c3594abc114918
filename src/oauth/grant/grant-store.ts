import type { AgentAuthError } from "../../errors.js";
import type { BindingStore } from "../client/client-binding.js";
import type { ClientRecord, Grant } from "./grant.js";
import type { Lease, LeaseOptions } from "./lease.js";

/** Which grant is meant: one login of one profile, and where it has several accounts of one of them, at one MCP server. */
export interface GrantKey {
  /** The profile that the login belongs to. */
  readonly profile: string;
  /** The MCP server, canonical. */
  readonly server: string;
  /** The account that the login was asked for; undefined when none was named. */
  readonly account?: string | undefined;
}

/** Room for one save, taken beforehand: that a disk is full must be known before a token is spent, not after. */
export interface Reservation {
  /** As {@link GrantStore.save}. */
  save(grant: Grant, expected: number | undefined): Promise<boolean>;
  /** Gives the room back; needed also after a save, and allowed more than once. */
  release(): Promise<void>;
}

/**
 * Where grants live between calls. `agentauth` has one in memory, `agentauth/node` one in files and one in files that a
 * key in the keychain seals.
 *
 * A store must
 * - give back what was saved, whole or not at all, also after a crash in the middle of a save;
 * - refuse to save over what the caller was not told about: of many who save over one generation, one succeeds;
 * - keep every other grant usable when one is broken, and never delete what it cannot read;
 * - let at most one holder at a time work under a lease, over every process that shares the store, and give a lease of
 *   a holder that died to the next one.
 */
export interface GrantStore extends BindingStore {
  /** @throws `AgentAuthError` class `store` when what is stored cannot be used safely */
  read(key: GrantKey): Promise<Grant | undefined>;
  /**
   * Saves a grant if the stored one has the generation `expected` (undefined: if there is none). The grant's own
   * generation must be higher.
   *
   * @returns false when another generation is stored; nothing is changed then
   */
  save(grant: Grant, expected: number | undefined): Promise<boolean>;
  /** Makes sure that a save will find room, or throws. */
  reserve(key: GrantKey): Promise<Reservation>;
  /** Removes a grant; does nothing when there is none. */
  remove(key: GrantKey): Promise<void>;
  /**
   * Every grant that can be read.
   *
   * @param onUnusable hears of each one that cannot, with the error that reading it would end with
   */
  list(onUnusable?: (error: AgentAuthError) => void): Promise<Grant[]>;
  /** The client registered with an issuer for a redirect form such as `http://127.0.0.1/callback`. */
  readClient(issuer: string, form: string): Promise<ClientRecord | undefined>;
  /** Keeps a client for a redirect form. */
  saveClient(client: ClientRecord, form: string): Promise<void>;
  /**
   * Runs `work` while nobody else runs work under the same name, in any process that shares the store.
   *
   * A name is written down by its hash alone. What the work throws, if it is an `AgentAuthError`, is told to the next
   * holder as {@link PreviousAttempt.failure}.
   */
  lease<T>(name: string, work: (lease: Lease) => Promise<T>, options: LeaseOptions<T>): Promise<T>;
  /** Where it keeps things, for people. */
  readonly location: string;
}
