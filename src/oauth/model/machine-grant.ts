import type { Secret } from "../../redact.js";

/** An identity provider that asserts the identity of its users to other issuers. */
export interface IdentityProvider {
  /** Its token endpoint: https, or http to this machine. */
  tokenEndpoint: string;
  /** The client that is registered with it. */
  clientId: string;
  /** The secret of that client, if it has one. */
  clientSecret?: string | Secret | undefined;
  /** Its issuer identifier. Default: the origin of its token endpoint. */
  issuer?: string | undefined;
}

/**
 * A grant without an interactive login. Its proof is read again on every use: the file with an assertion may have changed.
 *
 * - `client_credentials`: the client on its own behalf (RFC 6749 section 4.4)
 * - `jwt_bearer`: an assertion of a party that the issuer trusts (RFC 7523 section 2.1), such as a platform's token of a
 *   workload
 * - `id_jag`: the id token of a user whose company's identity provider decides (enterprise-managed authorization)
 */
export type MachineGrant = (
  | { type: "client_credentials" }
  | { type: "jwt_bearer"; assertion: () => string | Promise<string> }
  | { type: "id_jag"; idToken: () => string | Promise<string>; idp: IdentityProvider }
) & {
  /** The issuer of the grant, as `client.issuer`: the proof is sent to no other. */
  issuer?: string | undefined;
};

/** The names of the grants. */
export type MachineGrantType = MachineGrant["type"];

/** The grant of one type. */
export type MachineGrantOf<Type extends MachineGrantType> = Extract<MachineGrant, { type: Type }>;
