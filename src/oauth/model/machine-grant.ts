import type { Secret } from "../../redact.js";
import type { AuthMethod } from "./grant.js";

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
  /** How the client authenticates there. Default: HTTP Basic with a secret, then the form if that is rejected; else `none`. */
  authMethod?: AuthMethod | undefined;
}

/** What an assertion is requested for. */
export interface AssertionRequest {
  /** The audience that it must have. */
  audience: string;
  /** The issuer that it is sent to, and no other. */
  issuer: string;
  /** Where it is sent. */
  tokenEndpoint: string;
  /** The protected resource of the token, if the request names one. */
  resource: string | undefined;
  /** Aborts the request. */
  signal: AbortSignal | undefined;
}

/** A workload that proves itself by assertions of its platform (RFC 7523 section 2.1). */
export interface Workload {
  /** Gets an assertion: called once for each token request, right before it. The assertion is never stored. */
  assertion(request: AssertionRequest): string | Promise<string>;
  /**
   * Names the workload, so that its stored tokens are kept apart from those of other workloads of the same client. A
   * function is called on every use, for a workload that can become another one.
   */
  workload: string | (() => string);
  /** The audience to require. Default: the issuer of the token, or its token endpoint. */
  audience?: string | undefined;
}
/** What a user is identified with at an identity provider: an id token, or the refresh token of the login there. */
export type IdJagSubject = { idToken: string | Secret } | { refreshToken: string | Secret };

/**
 * A grant without an interactive login. Its proof is read again when a token is requested.
 *
 * - `client_credentials`: the client on its own behalf (RFC 6749 section 4.4)
 * - `jwt_bearer`: an assertion of a party that the issuer trusts (RFC 7523 section 2.1), such as a platform's token of a
 *   workload; it needs no client
 * - `id_jag`: the id token of a user whose company's identity provider decides (enterprise-managed authorization)
 */
export type MachineGrant = (
  | { type: "client_credentials" }
  | ({ type: "jwt_bearer" } & Workload)
  | {
      type: "id_jag";
      idToken: () => string | Promise<string>;
      idp: IdentityProvider;
      /** What is exchanged, read right before that; the id token then only says whose tokens they are. Default: the id token. */
      subject?: (() => Promise<IdJagSubject>) | undefined;
    }
) & {
  /** The issuer of the grant, as `client.issuer`: the proof is sent to no other. */
  issuer?: string | undefined;
};

/** The names of the grants. */
export type MachineGrantType = MachineGrant["type"];

export type MachineGrantOf<Type extends MachineGrantType> = Extract<MachineGrant, { type: Type }>;

const PREFIX = "grant:";
const TYPES = { client_credentials: true, jwt_bearer: true, id_jag: true } satisfies Record<MachineGrantType, true>;
const ACCOUNT = new RegExp(`^${PREFIX}(${Object.keys(TYPES).join("|")}):(.+?)(?::[0-9a-f]{16})?$`, "s");

/**
 * The account under which the tokens of a machine grant are stored, apart from those of users.
 *
 * @param clientId empty for a workload without a client
 * @param fingerprint the hash of whom the proof names; undefined for a grant without a proof
 */
export function buildMachineAccount(type: MachineGrantType, clientId: string, fingerprint?: string): string {
  return PREFIX + [type, clientId, fingerprint?.slice(0, 16)].filter(Boolean).join(":");
}

/** The account of a login at an identity provider, which is stored under the issuer of the provider. */
export const IDP_ACCOUNT = `${PREFIX}idp`;

/** Whether the tokens under an account are not those of a user's login at a server. */
export function isMachineAccount(account: string | undefined): account is string {
  return account?.startsWith(PREFIX) ?? false;
}

/** The type of the grant that an account belongs to; undefined for the account of a user. */
export function parseMachineAccount(account: string | undefined): MachineGrantType | undefined {
  return ACCOUNT.exec(account ?? "")?.[1] as MachineGrantType | undefined;
}
