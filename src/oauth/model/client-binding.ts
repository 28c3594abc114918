/**
 * How a client was bound to an issuer. All values but `use` are a decision of the user; `use` is a login of a client
 * without a secret at an issuer that only the MCP server named, so no credential of the client may be sent there.
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

/** The issuer that a pre-registered client of a profile belongs to. It remains after logouts. */
export interface ClientBinding {
  /** The profile. */
  readonly profile: string;
  /** The `client_id`. */
  readonly clientId: string;
  /** The issuer identifier, byte for byte. */
  readonly issuer: string;
  /** How it was bound. */
  readonly boundBy: BoundBy;
  /** Unix milliseconds. */
  readonly boundAt: number;
}

/** Identifies a binding. */
export type BindingKey = Pick<ClientBinding, "profile" | "clientId">;

/** The part of a store that holds the issuers of pre-registered clients, apart from grants. */
export interface BindingStore {
  /** @throws `AgentAuthError` class `store` if the stored data cannot be used safely */
  readBinding(key: BindingKey): Promise<ClientBinding | undefined>;
  /**
   * Stores a binding if the stored one is exactly `expected` (undefined: none).
   *
   * @returns the binding that is stored afterwards: another one if the stored one was not `expected`
   */
  saveBinding(binding: ClientBinding, expected: ClientBinding | undefined): Promise<ClientBinding>;
  /** @returns whether there was one */
  removeBinding(key: BindingKey): Promise<boolean>;
  /** Every binding, of every profile. */
  listBindings(): Promise<ClientBinding[]>;
}

/** Whether two bindings are equal. */
export function isSameBinding(one: ClientBinding | undefined, other: ClientBinding | undefined): boolean {
  return one?.issuer === other?.issuer && one?.boundBy === other?.boundBy && one?.boundAt === other?.boundAt;
}
