/**
 * How a client came to be bound to an issuer. All but `use` are a user's word; `use` is a login of a client without a
 * secret, for which the MCP server alone named the issuer, so that no credential of the client follows it.
 */
export type BoundBy = "issuer" | "trust-named-issuer" | "confirmation" | "earlier-login" | "use";

/** The values of {@link BoundBy}. */
export const BOUND_BY = [
  "issuer",
  "trust-named-issuer",
  "confirmation",
  "earlier-login",
  "use",
] as const satisfies readonly BoundBy[];

/** The issuer that a pre-registered client of a profile belongs to. It outlives every login. */
export interface ClientBinding {
  /** The profile. */
  readonly profile: string;
  /** The `client_id`. */
  readonly clientId: string;
  /** The issuer identifier, byte for byte. */
  readonly issuer: string;
  /** Who said so. */
  readonly boundBy: BoundBy;
  /** Unix milliseconds. */
  readonly boundAt: number;
}

/** Which binding is meant. */
export type BindingKey = Pick<ClientBinding, "profile" | "clientId">;

/** The part of a store that holds the issuers of pre-registered clients, apart from grants. */
export interface BindingStore {
  /** @throws `AgentAuthError` class `store` when what is stored cannot be used safely */
  readBinding(key: BindingKey): Promise<ClientBinding | undefined>;
  /**
   * Stores a binding in place of exactly `expected` (undefined: where there is none).
   *
   * @returns the binding that is stored afterwards: another one where it was not `expected`
   */
  saveBinding(binding: ClientBinding, expected: ClientBinding | undefined): Promise<ClientBinding>;
  /** @returns whether there was one */
  removeBinding(key: BindingKey): Promise<boolean>;
  /** Every binding, of every profile. */
  listBindings(): Promise<ClientBinding[]>;
}

/** Whether two records say the same. */
export function isSameBinding(one: ClientBinding | undefined, other: ClientBinding | undefined): boolean {
  return one?.issuer === other?.issuer && one?.boundBy === other?.boundBy && one?.boundAt === other?.boundAt;
}
