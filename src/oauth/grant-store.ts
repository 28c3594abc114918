import type { ClientRecord, Grant } from "./grant.js";

/** Which grant is meant: one login of one profile at one MCP server. */
export interface GrantKey {
  profile: string;
  /** The MCP server, canonical. */
  server: string;
}

/**
 * Where grants live between calls. `agentauth` has one in memory, `agentauth/node` one in files.
 *
 * A store must give back what was saved, whole or not at all, and must refuse to overwrite what it was not told about:
 * `save` succeeds only when the stored generation is the expected one.
 */
export interface GrantStore {
  read(key: GrantKey): Promise<Grant | undefined>;
  /**
   * Saves a grant if the stored one has the generation `expected` (undefined: if there is none).
   *
   * @returns false when another generation is stored; nothing is changed then
   */
  save(grant: Grant, expected: number | undefined): Promise<boolean>;
  /** Removes a grant; does nothing when there is none. */
  remove(key: GrantKey): Promise<void>;
  list(): Promise<Grant[]>;
  /** The client registered with an issuer for a redirect form such as `http://127.0.0.1/callback`. */
  readClient(issuer: string, form: string): Promise<ClientRecord | undefined>;
  saveClient(client: ClientRecord, form: string): Promise<void>;
  removeClient(issuer: string, form: string): Promise<void>;
  /** Runs `work` while nobody else runs work under the same name. */
  lease<T>(name: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** Where it keeps things, for people. */
  readonly location: string;
}
